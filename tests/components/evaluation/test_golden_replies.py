"""What a model wrote for a golden set, good and broken."""

import json

import pytest

from shiguan.evaluation.golden_maker import cohens_kappa, read_judgements, read_questions

PASSAGE = "In 758 Diwu Qi created a salt monopoly. Salt was sold at 110 cash a peck."
GOOD = {
    "type": "time",
    "question": "When did the monopoly begin?",
    "answer": "758",
    "quote": "In 758 Diwu Qi created a salt monopoly.",
}


def replied(*items):
    return json.dumps({"questions": list(items)})


def test_a_good_question_is_kept_with_the_words_of_the_passage():
    assert read_questions(replied({**GOOD, "quote": "in 758  Diwu Qi created a salt monopoly."}), PASSAGE) == (
        [GOOD],
        {},
    )


def test_a_bad_quote_gives_way_to_the_answer():
    (row,), _ = read_questions(replied({**GOOD, "quote": "The monopoly began early."}), PASSAGE)
    assert row["quote"] == "758"


@pytest.mark.parametrize(
    ("item", "fault"),
    [
        ({**GOOD, "answer": "759"}, "answer not in the passage"),
        ({**GOOD, "answer": ""}, "answer not in the passage"),
        ({**GOOD, "question": "What happened in 758?"}, "answer in the question"),
        ({**GOOD, "type": "riddle"}, "unknown type"),
        ({**GOOD, "type": "unanswerable"}, "unanswerable with an answer"),
        ({**GOOD, "question": ""}, "malformed"),
        ({**GOOD, "question": ["a"]}, "malformed"),
        ("When?", "malformed"),
    ],
)
def test_what_cannot_be_right_is_thrown_out_and_counted(item, fault):
    assert read_questions(replied(item, GOOD), PASSAGE) == ([GOOD], {fault: 1})


def test_an_unanswerable_question_comes_without_an_answer():
    item = {"type": "unanswerable", "question": "Who drank the first cup of tea?", "answer": None}
    (row,), _ = read_questions(replied(item), PASSAGE)
    assert (row["answer"], row["quote"]) == ("", "")


@pytest.mark.parametrize("reply", ["", "I cannot.", "{}", '{"questions": []}', '{"questions": "none"}'])
def test_nonsense_is_counted(reply):
    assert read_questions(reply, PASSAGE) == ([], {"nonsense": 1})


@pytest.mark.parametrize(
    ("reply", "verdicts"),
    [
        ('{"verdicts": [{"id": 2, "verdict": "Reject"}, {"id": 1, "verdict": "accept"}]}', ["accept", "reject"]),
        ('{"verdicts": [{"id": 9, "verdict": "accept"}, {"id": 1, "verdict": "perhaps"}, 3]}', ["none", "none"]),
        ("no idea", ["none", "none"]),
        ('{"verdicts": "all"}', ["none", "none"]),
    ],
)
def test_a_judges_verdicts_are_read_or_missing(reply, verdicts):
    assert read_judgements(reply, 2) == verdicts


def test_kappa_of_a_table_from_a_textbook():
    pairs = [("a", "a")] * 20 + [("a", "r")] * 5 + [("r", "a")] * 10 + [("r", "r")] * 15
    assert cohens_kappa(pairs) == pytest.approx(0.4)  # observed .7, by chance .5


def test_kappa_is_one_for_full_agreement_and_undefined_without_variety():
    assert cohens_kappa([("a", "a"), ("r", "r")]) == 1
    assert cohens_kappa([("a", "a")]) is None
    assert cohens_kappa([]) is None
