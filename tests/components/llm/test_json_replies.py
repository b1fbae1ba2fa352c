import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiguan.llm.json_replies import json_number, json_object, json_strings, without_thoughts

Q = {"queries": ["安史之乱的起因", "Who led the revolt?"]}

OBJECTS = {
    "strict": ('{"queries": ["安史之乱的起因", "Who led the revolt?"]}', Q),
    "fenced": ('```json\n{"queries": ["安史之乱的起因", "Who led the revolt?"]}\n```', Q),
    "fence never closed": ('```json\n{"score": 8}', {"score": 8}),
    "text before a fence": ('Sure! Here it is:\n```json\n{"score": 8}\n```\nTell me more.', {"score": 8}),
    "Chinese text around": ('好的，结果如下：{"score": 8}。', {"score": 8}),
    "braces in the text before": ('Of the form {query}: {"score": 8}', {"score": 8}),
    "a bracket in the text before": ('As in [1], {"score": 8}', {"score": 8}),
    "an example before, the key decides": ('Like {"a": 1, "b": 2}. So: {"score": 8}', {"score": 8}),
    "hidden thoughts": ('<think>maybe {"score": 1}</think>{"score": 8}', {"score": 8}),
    "trailing comma in a list": ('{"score": [1, 2,],}', {"score": [1, 2]}),
    "missing comma between lines": ('{"score": "a"\n "reason": "x"}', {"score": "a", "reason": "x"}),
    "single quotes": ("{'score': 'a', 'ok': True, 'no': None}", {"score": "a", "ok": True, "no": None}),
    "apostrophe in single quotes": ("{'score': 'Guo Ziyi's army'}", {"score": "Guo Ziyi's army"}),
    "curly quotes": ("{“score”: “a”}", {"score": "a"}),
    "full-width punctuation": ('{"score"：8，"reason"："乱"}', {"score": 8, "reason": "乱"}),
    "unquoted keys": ("{score: 8, reason: 'x'}", {"score": 8, "reason": "x"}),
    "comments": ('{"score": 8, // good\n "reason": /* why */ "x"}', {"score": 8, "reason": "x"}),
    "line break in a string": ('{"score": "one\ntwo"}', {"score": "one\ntwo"}),
    "quotation marks in a string": (
        '{"score": "he said "no" to them", "b": 1}',
        {"score": 'he said "no" to them', "b": 1},
    ),
    "surrogate pair": ('{"score": "\\ud840\\udc00",}', {"score": "𠀀"}),
    "lone surrogate": ('{"score": "\\ud840 x",}', {"score": "\ufffd x"}),
    "lone surrogate in strict JSON": ('{"score": ["\\ud840 x"]}', {"score": ["\ufffd x"]}),
    "unknown escape": (r'{"score": "50\% of \d",}', {"score": r"50\% of \d"}),
    "not a number": ('{"score": NaN, "b": 1,}', {"score": "NaN", "b": 1}),  # no number for `json_number` either
    "plus and leading point": ('{"score": +8, "b": .5,}', {"score": 8, "b": 0.5}),
    "cut off in a string": ('{"score": 8, "reason": "because of', {"score": 8}),
    "cut off in a list": ('{"score": ["one", "two", "thr', {"score": ["one", "two"]}),
    "cut off between brackets": ('{"score": {"a": [1, 2]', {"score": {"a": [1, 2]}}),
    "nothing but an opening": ("{", None),
    "empty": ("", None),
    "no JSON": ("I cannot answer that.", None),
    "a list": ("[1, 2]", None),
    "an empty object": ("{}", {}),
    "too deep": ('{"a":' * 2000 + "1" + "}" * 2000, None),
    "many brackets": ("{[" * 5000, None),
    "control characters": ('{"score": "a\x00b"}', {"score": "a\x00b"}),
}


@pytest.mark.parametrize(("reply", "expected"), OBJECTS.values(), ids=OBJECTS)
def test_object_is_found(reply, expected):
    assert json_object(reply, "score") == expected


def test_long_strict_json_is_read_whole_and_a_long_broken_one_from_its_beginning():
    items = [f"item {number:05}" for number in range(1500)]
    text = json.dumps({"score": items})
    assert json_object(f"Here: {text} Done.", "score") == {"score": items}
    found = json_object(text.replace("]", ",]"), "score")["score"]
    assert found == items[: len(found)]
    assert 400 < len(found) < 800


STRINGS = {
    "asked for": ('{"queries": ["a", "b"]}', ["a", "b"]),
    "one string instead of a list": ('{"queries": "a"}', ["a"]),
    "another key": ('{"questions": ["a", "b"]}', ["a", "b"]),
    "a bare list": ('["a", "b"]', ["a", "b"]),
    "objects with one string": ('{"queries": [{"q": "a"}, {"q": "b", "rank": 2}]}', ["a", "b"]),
    "objects with two strings": ('{"queries": [{"q": "a", "why": "b"}]}', []),
    "repeated and empty ones": ('{"queries": [" a ", "a", "", null, 7, "b"]}', ["a", "b"]),
    "an empty list": ('{"queries": []}', []),
    "cut off": ('{"queries": ["a", "b', ["a"]),
    "a bare list cut off": ('["a", "b", "c', ["a", "b"]),
    "a citation mark loses against the list": ('See [1]. ["a", "b"]', ["a", "b"]),
    "a string with a bracket cut off": ('{"queries": ["a", "of [b] and', ["a"]),
    "no JSON": ("1. a\n2. b", []),
    "empty": ("", []),
}


@pytest.mark.parametrize(("reply", "expected"), STRINGS.values(), ids=STRINGS)
def test_strings_are_read(reply, expected):
    assert json_strings(reply, "queries") == expected


@pytest.mark.parametrize(("value", "expected"), [
    (8, 8.0), (8.5, 8.5), ("8", 8.0), (" 8/10 ", 8.0), ("7.5 / 10", 7.5), ("9分", 9.0), (0, 0.0), (10, 10.0),
    (11, None), (-1, None), ("11", None), (True, None), (None, None), ("high", None), ("NaN", None), ("8 or 9", None),
    ([8], None), (float("nan"), None), (float("inf"), None), (10**400, None),
])  # fmt: skip
def test_number_is_read_within_its_range(value, expected):
    assert json_number(value, low=0, high=10) == expected


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(st.text(max_size=8), values, min_size=1, max_size=4)


@given(objects, st.booleans())
def test_what_json_writes_is_read_back_unchanged(value, ascii_only):
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert json_object(text) == value
    assert json_object(f"```json\n{text}\n```") == value


plain = st.text(
    alphabet=st.characters(exclude_characters="\"'“”‘’「」`\\", exclude_categories=["Cs", "Cc"]), max_size=20
)


@given(st.dictionaries(plain.filter(bool), st.lists(plain, min_size=1), min_size=1), st.data())
def test_a_reply_cut_anywhere_gives_nothing_that_was_not_in_it(value, data):
    text = json.dumps(value, ensure_ascii=False)
    cut = text[: data.draw(st.integers(0, len(text)))]
    found = json_object(cut) or {}
    for key, items in found.items():
        assert items == value[key][: len(items)]


@given(st.text())
def test_no_text_is_an_error(text):
    json_object(text)
    json_strings(text, "queries")


@given(st.text(alphabet="{}[]\"':,\\ a1/*`\n", max_size=200))
def test_no_broken_json_is_an_error(text):
    json_object(text)


@pytest.mark.parametrize(
    ("reply", "left"),
    [
        ("<think>Who?</think>He rose.", "He rose."),
        ("<Thinking>Who?</Thinking>\nHe rose.", "He rose."),
        ("He rose. <reasoning>And then", "He rose."),
        ("Who was it? I see.</think>He rose.", "He rose."),  # the prompt had opened the block
        ("5 < 6, and he rose.", "5 < 6, and he rose."),
        ("</answer>He rose.", "</answer>He rose."),
    ],
)
def test_thoughts_are_taken_off(reply, left):
    assert without_thoughts(reply) == left
