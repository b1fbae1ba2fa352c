import pytest
from haystack import Document
from hypothesis import given, settings
from hypothesis import strategies as st

from shiguan.errors import ModelMissingError
from shiguan.ingest.parent_child_splitter import ParentChildSplitter

SPLITTER = ParentChildSplitter()
# Ten tokens: nine Han characters and the stop.
TEN = "玄宗幸蜀郭子儀守朔。"


def block(content, source="s", **meta):
    return Document(content=content, meta={"tenant_id": "t", "source_id": source, "source": "a.txt", **meta})


def split(*blocks):
    return SPLITTER.run(list(blocks))


def check_passages(blocks, result):
    """What holds for every split of one source: exact slices, in order, all text, no overlap."""
    text = "\n\n".join(b.content for b in blocks if b.content.strip())
    at = 0
    by_id = {parent.id: parent for parent in result["parents"]}
    assert len(by_id) == len(result["parents"])
    assert len({child.id for child in result["children"]}) == len(result["children"])
    for position, parent in enumerate(result["parents"]):
        start, end = parent.meta["start"], parent.meta["end"]
        assert text[start:end] == parent.content
        assert at <= start
        assert not text[at:start].strip()
        assert parent.meta["position"] == position
        assert all(0 <= part["start"] < part["end"] <= len(parent.content) for part in parent.meta["blocks"])
        at = end
    assert not text[at:].strip()
    for child in result["children"]:
        parent = by_id[child.meta["parent_id"]]
        assert parent.content[child.meta["start"] : child.meta["end"]] == child.content == child.content.strip()
    assert "".join("".join(c.content for c in result["children"]).split()) == "".join(text.split())


def test_a_small_section_is_one_parent_with_its_meta():
    result = split(block("玄宗幸蜀。郭子儀收復兩京。", title="唐", section=["卷一"], language="zh", author="劉昫"))
    (parent,) = result["parents"]
    (child,) = result["children"]
    of_both = {
        "tenant_id": "t", "source_id": "s", "source": "a.txt", "title": "唐", "section": ["卷一"], "language": "zh",
        "author": "劉昫", "kind": "text", "position": 0, "start": 0, "end": 13,
    }  # fmt: skip
    assert parent.meta == of_both | {
        "anchor": {"offset": 0},
        "tokens": 13,
        "units": 1,
        "paragraph": 1,
        "blocks": [{"start": 0, "end": 13, "kind": "text", "anchor": {"offset": 0}}],
    }
    assert child.meta == of_both | {"parent_id": parent.id}
    assert result["warnings"] == []


def test_sizes_are_shared_out_evenly():
    # 1,000 tokens: two parents of 500 beat one of 800 and a rest of 200.
    result = split(block(TEN * 100))
    assert [p.meta["tokens"] for p in result["parents"]] == [500, 500]
    # 500 tokens: six children of 80 or 90, since 85 is liked best.
    sizes = [len(c.content) for c in result["children"][:6]]
    assert sum(sizes) == 500
    assert set(sizes) <= {80, 90}
    # A parent ends at a paragraph where sizes allow it.
    assert [p.content for p in split(block("\n\n".join([TEN * 45] * 2)))["parents"]] == [TEN * 45] * 2


def test_a_parent_never_crosses_a_section_even_when_both_are_tiny():
    blocks = [block(TEN, section=["一"]), block(TEN, section=["一"]), block(TEN, section=["一", "甲"])]
    result = split(*blocks)
    assert [p.content for p in result["parents"]] == [f"{TEN}\n\n{TEN}", TEN]
    assert [p.meta["section"] for p in result["parents"]] == [["一"], ["一", "甲"]]
    assert [(p.meta["start"], p.meta["end"]) for p in result["parents"]] == [(0, 22), (24, 34)]
    assert [p.meta["position"] for p in result["parents"]] == [0, 1]


def test_a_huge_sentence_is_cut_at_commas_and_only_as_often_as_needed():
    clause = "玄宗幸蜀郭子儀守朔，"  # ten tokens
    text = clause * 29 + "玄宗幸蜀郭子儀守朔。"
    result = split(block(text))
    assert [len(c.content) for c in result["children"]] == [150, 150]
    assert all(c.content.endswith(("，", "。")) for c in result["children"])
    # One without commas is cut between words.
    result = split(block("general " * 399 + "general"))
    assert len(result["parents"]) == 1
    assert {c.content.replace("general", "").strip() for c in result["children"]} == {""}
    assert max(len(c.content.split()) for c in result["children"]) <= 150


def test_no_cut_falls_inside_a_combining_sequence_or_an_emoji():
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    text = "e\u0301" * 3_000 + family * 500
    result = split(block(text))
    check_passages([block(text)], result)
    for child in result["children"]:
        assert child.content[0] not in "\u0301\u200d"
        assert not child.content.endswith("\u200d")


def test_every_block_keeps_its_kind_and_its_place_in_the_book():
    anchors = [{"href": "c.xhtml", "spine": 1, "path": f"/p[{n}]", "offset": 0} for n in (1, 2)]
    result = split(block(TEN, kind="text", anchor=anchors[0]), block("引文" + TEN, kind="quote", anchor=anchors[1]))
    (parent,) = result["parents"]
    assert parent.meta["kind"] == "text"
    assert parent.meta["anchor"] == anchors[0]
    assert parent.meta["blocks"] == [
        {"start": 0, "end": 10, "kind": "text", "anchor": anchors[0]},
        {"start": 12, "end": 24, "kind": "quote", "anchor": anchors[1]},
    ]
    # What was left out of a file is told with each of its passages.
    (parent,) = split(block(TEN, file_id="f", left_out={"menu": 4}), block(TEN, file_id="f"))["parents"]
    assert parent.meta["left_out"] == {"menu": 4}
    # Notes move with their block, and an anchor with a block that is cut in two.
    note = {"start": 4, "end": 11, "anchor": {"href": "n.xhtml"}}
    (parent,) = split(block(TEN), block("玄宗幸蜀[脚注：成都]。", notes=[note]))["parents"]
    assert parent.meta["blocks"][1]["notes"] == [{"start": 16, "end": 23, "anchor": {"href": "n.xhtml"}}]
    assert parent.content[16:23] == "[脚注：成都]"
    _, second = split(block(TEN * 100, anchor={"href": "c.xhtml", "offset": 7}))["parents"]
    assert second.meta["anchor"] == {"href": "c.xhtml", "offset": 507}
    assert second.meta["blocks"] == [{"start": 0, "end": 500, "kind": "text", "anchor": second.meta["anchor"]}]


@pytest.mark.parametrize(
    ("text", "meta", "pages"),
    [
        ("第一頁。\f第二頁。\f\f第四頁。", {}, [(1, "第一頁。"), (2, "第二頁。"), (4, "第四頁。")]),
        ("甲。\f乙。", {"anchor": {"page": 5, "offset": 0}}, [(5, "甲。"), (6, "乙。")]),  # a section that begins there
    ],
)
def test_pages_are_kept_as_anchors(text, meta, pages):
    (parent,) = split(block(text, **meta))["parents"]
    found = [(b["anchor"], parent.content[b["start"] : b["end"]]) for b in parent.meta["blocks"]]
    assert found == [({"page": page, "offset": 0}, words) for page, words in pages]


def test_a_heading_line_stays_with_the_text_below_it():
    text = "\n\n".join(f"# {n}\n{TEN * 8}" for n in range(12))
    result = split(block(text))
    assert all(child.content.startswith("# ") for child in result["children"] if "#" in child.content)
    assert not any(child.content.rstrip().rsplit("\n", 1)[-1].startswith("# ") for child in result["children"])


def test_ids_are_the_same_for_the_same_input_and_differ_for_any_other():
    text = TEN * 60
    assert split(block(text)) == split(block(text))
    variants = [
        block(text), block(text, source="other"), block(text, tenant_id="u"), block(TEN * 59), block(text, title="new"),
    ]  # fmt: skip
    ids = [{d.id for kind in ("parents", "children") for d in split(one)[kind]} for one in variants]
    assert len(set().union(*ids)) == sum(map(len, ids))
    assert split(block(""), block(" \n\n ")) == {"parents": [], "children": [], "warnings": []}


@pytest.mark.parametrize("missing", ["tenant_id", "source_id"])
def test_a_block_without_a_stamp_is_refused(missing):
    document = block(TEN)
    del document.meta[missing]
    with pytest.raises(ValueError, match=f"`{missing}`.*SourceStamper"):
        split(document)


def test_a_missing_tokenizer_counts_characters_and_warns(monkeypatch):
    def missing():
        raise ModelMissingError("The weights are not here.")

    monkeypatch.setattr("shiguan.models.token_counter.tokenizer", missing)
    result = ParentChildSplitter().run([block(TEN * 100)])
    assert [p.meta["tokens"] for p in result["parents"]] == [500, 500]
    assert "characters" in result["warnings"][0]


def test_how_much_is_counted_at_once_changes_no_passage(monkeypatch):
    whole = split(block(TEN * 100), block("general " * 399))
    monkeypatch.setattr("shiguan.models.token_counter._AT_ONCE", 50)
    assert ParentChildSplitter().run([block(TEN * 100), block("general " * 399)]) == whole


def test_the_space_between_two_sentences_counts_for_the_child_that_has_both():
    # 140 + 10 tokens, and one for the line's end between them.
    text = "\n".join(["字" * 139 + "。", TEN])
    counter = SPLITTER._counter
    assert (counter.count("字" * 139 + "。"), counter.count(TEN), counter.count(text)) == (140, 10, 151)
    (parent,) = (result := split(block(text)))["parents"]
    assert [child.content for child in result["children"]] == text.split("\n")
    assert parent.meta["tokens"] == 150


SENTENCES = st.sampled_from(
    [TEN, "He came. ", "Mr. Li saw 3.14 of them (e.g. here). ", "“走？”", "……", "\n", "\n\n", "\f", "word " * 200,
     "字" * 180, "e\u0301" * 40, "x" * 300, "، نعم. ", "\u3000", "# h\n"]
)  # fmt: skip
TEXTS = st.lists(SENTENCES, max_size=40).map("".join)


@settings(max_examples=80)
@given(st.lists(st.tuples(TEXTS, st.sampled_from(["a", "b"])), max_size=5))
def test_children_are_exact_slices_that_hold_all_text_in_order(parts):
    blocks = [block(text, section=[section]) for text, section in parts]
    result = split(*blocks)
    check_passages(blocks, result)
    counter = SPLITTER._counter
    assert all(counter.count(c.content) <= 150 for c in result["children"])
    assert all(p.meta["tokens"] <= 800 for p in result["parents"])


@settings(max_examples=60)
@given(st.lists(st.integers(1, 30), min_size=30, max_size=120))
def test_sizes_lie_in_their_ranges_wherever_sentences_are_short(lengths):
    text = "".join("字" * length + "。" for length in lengths)
    result = split(block(text))
    if len(text) >= 300:
        assert all(300 <= p.meta["tokens"] <= 800 for p in result["parents"])
    for parent in result["parents"]:
        sizes = [len(c.content) for c in result["children"] if c.meta["parent_id"] == parent.id]
        assert all(size <= 150 for size in sizes)
        assert parent.meta["tokens"] < 50 or all(size >= 50 for size in sizes)
