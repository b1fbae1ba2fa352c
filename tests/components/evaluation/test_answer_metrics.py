"""Scores of one answer, each expectation worked out by hand."""

import json

import pytest
from haystack import Document, GeneratedAnswer
from hypothesis import given
from hypothesis import strategies as st

from shiguan.evaluation.metrics import KNOWN
from shiguan.evaluation.questions import GoldPassage, Question
from shiguan.evaluation.scoring import (
    answer_record,
    answer_tokens,
    contains_answer,
    is_right,
    score_answer,
    score_citations,
    without_marks,
)

SALT = "In 758 Diwu Qi made salt a monopoly of the state."
SIEGE = "Zhang Xun held the town of Suiyang for ten months."
DOCUMENTS = [Document(id=text[:6], content=text, meta={"number": at}) for at, text in enumerate((SALT, SIEGE), start=1)]
ASKED = Question("q", "When was salt made a monopoly?", answers=["758"], gold=(GoldPassage("In 758"),))
UNANSWERABLE = Question("u", "How tall was Diwu Qi?", answerable=False)


def answer(text, cited=(), status="answered", verdict="supported", confidence=0.8):
    meta = {
        "status": status,
        "confidence": confidence,
        "citations": [{"number": number, "verdict": verdict} for number in cited],
        "claims": [] if status == "not_found" else [{"verdict": verdict}],
    }
    whole = GeneratedAnswer(data=text, query="", documents=DOCUMENTS, meta=meta)
    return json.loads(json.dumps(answer_record(whole)))  # what a stopped run reads again


REFUSED = answer("The sources do not say this.", status="not_found", confidence=0.1)
HELD = Question("q", "Who held Suiyang?", gold=(GoldPassage("Zhang Xun held"),))
READ = {"gold_read": 1, "false_refusal": 0}
CITED = {"citation_precision": 1, "citation_recall": 1, "claims_supported": 1}


RIGHT, WRONG = (
    {"correct": 1, "contains_answer": 1, "gold_cited": 1},
    {"correct": 0, "contains_answer": 0, "gold_cited": 0},
)
SCORED = {
    "a right answer with its passage": (ASKED, answer(f"{SALT} [1]", [1]), True, {**RIGHT, **READ, **CITED}),
    "another passage, well cited": (ASKED, answer(f"{SIEGE} [2]", [2]), False, {**WRONG, **READ, **CITED}),
    "the mode itself was in doubt": (
        ASKED, answer(f"{SALT} [1]", [1], verdict="partial"), True, {**RIGHT, **READ, **CITED, "claims_supported": 0},
    ),
    "a false refusal": (ASKED, REFUSED, None, {**WRONG, "gold_read": 1, "false_refusal": 1}),
    "a right refusal": (UNANSWERABLE, REFUSED, None, {"correct": 1, "correct_refusal": 1}),
    "an answer that should have been refused": (
        UNANSWERABLE, answer(f"{SALT} [1]", [1]), False, {"correct": 0, "correct_refusal": 0, **CITED},
    ),
    "no written answer, and the gold passage is cited": (
        HELD, answer(f"{SIEGE} [2]", [2]), True, {"correct": 1, "gold_cited": 1, **READ, **CITED},
    ),
    "no written answer, and another is cited": (
        HELD, answer(f"{SALT} [1]", [1]), False, {"correct": 0, "gold_cited": 0, **READ, **CITED},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("asked", "record", "right", "scores"), SCORED.values(), ids=SCORED)
def test_an_answer_is_scored(asked, record, right, scores):
    assert is_right(asked, record) is right
    assert score_answer(asked, record) == scores
    assert scores.keys() <= KNOWN.keys()


def test_quotations_are_scored_by_what_they_quote_and_not_as_citations():
    citation = {"number": 1, "quote": "In 758 Diwu Qi made salt a monopoly.", "verdict": "quoted"}
    meta = {"status": "quoted", "citations": [citation], "claims": [], "confidence": 0.8}
    record = answer_record(GeneratedAnswer("Intro.\n\n[1] a\n\n> **In 758**", "q", [], meta))
    assert (record["answer"], record["cited"]) == (citation["quote"], [1])
    question = Question("q", "Who made salt a monopoly?", answers=["Diwu Qi"])
    assert (is_right(question, record), record["confidence"]) == (True, 0.8)
    assert "citation_precision" not in score_answer(question, record)


@pytest.mark.parametrize(
    ("answer", "claims", "recalled", "citations", "precise"),
    [
        pytest.param(f"{SALT} [1] {SIEGE} [2]", 2, 2, 2, 2, id="quotations with their passages"),
        pytest.param(f"{SALT} [2]", 1, 0, 1, 0, id="the wrong passage"),
        pytest.param(f"{SALT} [1] {SIEGE}", 2, 1, 1, 1, id="no citation"),
        pytest.param(f"{SALT} [1][3]", 1, 1, 2, 1, id="one more that adds nothing"),
        pytest.param(f"{SALT[:-1]} and {SIEGE} [1][2]", 1, 1, 2, 2, id="only together they support it"),
        pytest.param(f"{SALT} [9]", 1, 0, 1, 0, id="a number that no passage has"),
        pytest.param(f"{SALT.replace('758', '785')} [1]", 1, 0, 1, 0, id="a swapped number"),
        pytest.param("The sources do not say this.", 0, 0, 0, 0, id="nothing is claimed"),
        pytest.param("顏真卿起兵響應朝廷。[4]王維寫下輞川詩。[4]", 2, 1, 2, 1, id="Chinese"),
    ],
)
def test_claims_are_recalled_and_citations_precise(answer, claims, recalled, citations, precise):
    others = {3: "Du Fu wrote of a broken country whose rivers remain.", 4: "平原太守颜真卿起兵响应朝廷。"}
    scores = score_citations(answer, {1: SALT, 2: SIEGE, **others})
    assert scores == (claims, recalled, citations, precise)
    assert scores.recall == (recalled / claims if claims else 0)
    assert scores.precision == (precise / citations if citations else 0)


@pytest.mark.parametrize(
    ("answer", "right", "value"),
    [
        ("It was sold at 110 cash a peck.", ["110 cash"], 1.0), ("It was sold at 1100 cash.", ["110"], 0.0),
        ("杜甫写下悲陳陶", ["悲陈陶"], 1.0), ("他读的是论语。", ["《论语》"], 1.0),
        ("叛乱者是安禄山、史思明。", ["安禄山，史思明"], 1.0), ("anything", ["。"], 0.0),
    ],
)  # fmt: skip
def test_an_answer_in_a_sentence_is_found_as_whole_tokens(answer, right, value):
    assert contains_answer(answer, right) == value


def test_citation_marks_are_no_words():
    assert without_marks("Li Su took Caizhou [1][2].") == "Li Su took Caizhou."


@given(st.text(min_size=1))
def test_every_answer_with_a_token_holds_itself(text):
    assert contains_answer(text, [text]) == bool(answer_tokens(text))
