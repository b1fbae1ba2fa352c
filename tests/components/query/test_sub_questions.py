"""Reading a plan, ordering it, and filling what an earlier answer gave."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiguan.query.sub_questions import MOST, filled, levels, read_plan

WHOLE = "Who was the father of the general who took Caizhou?"


def part(number, text, needs=()):
    return {"number": number, "text": text, "needs": list(needs)}


def read(*entries):
    return read_plan(json.dumps({"questions": list(entries)}), WHOLE)


@pytest.mark.parametrize(
    ("entries", "plan"),
    [
        ([{"text": "Who took Caizhou?", "needs": []}, {"text": "Who was the father of {1}?", "needs": [1]}],
         [part(1, "Who took Caizhou?"), part(2, "Who was the father of {1}?", (1,))]),
        # A placeholder is a need, and needs of what is not there are dropped.
        ([{"text": "Who took Caizhou?", "needs": [1, 7, "x", True]}, {"text": "When did {1} and {9} die?"}],
         [part(1, "Who took Caizhou?"), part(2, "When did {1} and  die?", (1,))]),
        # What is left out moves the numbers of those behind.
        ([{"text": WHOLE.upper()}, {"text": "Who took Caizhou?"}, {"text": "who took caizhou"}, {"text": "Who was the father of {2}?", "needs": [2]}],
         [part(1, "Who took Caizhou?"), part(2, "Who was the father of {1}?", (1,))]),
        # A part needs only earlier ones, so that there is no circle.
        ([{"text": "Who is {2}?", "needs": [2]}, {"text": "Where is {1}?", "needs": [1, 2]}], [part(1, "Who is {2}?"), part(2, "Where is {1}?", (1,))]),
        # More than four are cut.
        ([{"text": f"What is the {word}?"} for word in "abcdef"], [part(at, f"What is the {word}?") for at, word in enumerate("abcd", 1)]),
    ],
)  # fmt: skip
def test_a_plan_is_read_with_its_needs(entries, plan):
    assert read(*entries) == plan


@pytest.mark.parametrize(
    "reply", ["", "no", "[1, 2]", '{"questions": "Who?"}', '{"questions": []}', '{"questions": [{"text": "Who?"}]}']
)
def test_fewer_than_two_parts_are_no_plan(reply):
    assert read_plan(reply, WHOLE) == []


def test_levels_stand_side_by_side_after_what_they_need():
    plan = [part(1, "a"), part(2, "b", (1,)), part(3, "c"), part(4, "d", (2, 3))]
    assert [[sub["number"] for sub in level] for level in levels(plan)] == [[1, 3], [2], [4]]


def test_a_placeholder_gets_the_answer_or_else_what_was_asked():
    plan = [part(1, "Who took Caizhou?"), part(2, "Where was { 1 } born?", (1,))]
    assert filled(plan[1]["text"], plan, {1: "Li Su"}) == "Where was Li Su born?"
    assert filled(plan[1]["text"], plan, {1: r"\1 {1}"}) == r"Where was \1 {1} born?"
    assert filled(plan[1]["text"], plan, {}) == "Where was (Who took Caizhou) born?"


entries = st.one_of(
    st.none(),
    st.integers(),
    st.text(max_size=20),
    st.fixed_dictionaries(
        {"text": st.one_of(st.text(max_size=30), st.sampled_from(["When {1}?", "Who {2}?", "Why {3}?"]), st.none())},
        optional={"needs": st.one_of(st.none(), st.integers(), st.lists(st.integers(-1, 6), max_size=6))},
    ),
)


@given(st.lists(entries, max_size=8))
def test_whatever_a_model_plans_every_part_is_asked_once_and_after_what_it_needs(found):
    plan = read(*found)
    assert len(plan) <= MOST
    assert [sub["number"] for sub in plan] == list(range(1, len(plan) + 1))
    ordered = levels(plan)
    asked = [sub["number"] for level in ordered for sub in level]
    assert sorted(asked) == [sub["number"] for sub in plan]
    done = set()
    for level in ordered:
        assert all(done.issuperset(sub["needs"]) for sub in level)
        done |= {sub["number"] for sub in level}
