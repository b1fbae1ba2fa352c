"""Scores of one answer, each expectation worked out by hand."""

import json

import pytest
from haystack import Document, GeneratedAnswer

from shiguan.evaluation.answer_metrics import answer_record, score_answer
from shiguan.evaluation.metrics import KNOWN
from shiguan.evaluation.questions import GoldPassage, Question

SALT = Document(id="a", content="In 758 Diwu Qi made salt a monopoly of the state.", meta={"number": 1})
SIEGE = Document(id="b", content="Zhang Xun held the town of Suiyang for ten months.", meta={"number": 2})
ASKED = Question("q", "When was salt made a monopoly?", answers=["758"], gold=(GoldPassage("In 758"),))
UNANSWERABLE = Question("u", "How tall was Diwu Qi?", answerable=False)


def answer(text, cited=(), status="answered", verdict="supported", confidence=0.8):
    meta = {
        "status": status,
        "confidence": confidence,
        "citations": [{"number": number, "verdict": verdict} for number in cited],
        "claims": [] if status == "not_found" else [{"verdict": verdict}],
    }
    whole = GeneratedAnswer(data=text, query="", documents=[SALT, SIEGE], meta=meta)
    return json.loads(json.dumps(answer_record(whole)))  # what a stopped run reads again


def test_a_right_answer_with_its_passage_has_everything():
    scored = score_answer(ASKED, answer("In 758 Diwu Qi made salt a monopoly of the state. [1]", [1]))
    assert scored.metrics == {
        "correct": 1.0,
        "exact_match": 0.0,
        "token_f1": pytest.approx(2 / 10),  # one token of nine is wanted: P 1/9, R 1
        "contains_answer": 1.0,
        "gold_read": 1.0,
        "gold_cited": 1.0,
        "citation_precision": 1.0,
        "citation_recall": 1.0,
        "claims_supported": 1.0,
        "false_refusal": 0.0,
    }
    assert scored.right is True
    assert scored.confidence == 0.8


def test_the_wrong_passage_is_cited():
    scored = score_answer(ASKED, answer("Zhang Xun held the town of Suiyang for ten months. [2]", [2]))
    assert (scored.metrics["contains_answer"], scored.metrics["gold_cited"], scored.metrics["gold_read"]) == (0, 0, 1)
    assert scored.metrics["citation_precision"] == 1.0
    assert scored.right is False


def test_quotations_are_scored_by_what_they_quote_and_not_as_citations():
    citation = {"number": 1, "quote": "In 758 Diwu Qi made salt a monopoly.", "verdict": "quoted"}
    meta = {"status": "quoted", "citations": [citation], "claims": [], "confidence": 0.8}
    record = answer_record(GeneratedAnswer("Intro.\n\n[1] a\n\n> **In 758**", "q", [], meta))
    assert (record["answer"], record["cited"]) == (citation["quote"], [1])
    scored = score_answer(Question("q", "Who made salt a monopoly?", answers=["Diwu Qi"]), record)
    assert (scored.right, scored.confidence) == (True, 0.8)
    assert "citation_precision" not in scored.metrics


def test_a_false_refusal_is_wrong_in_all_that_could_be_right():
    scored = score_answer(ASKED, answer("The sources do not say this.", status="not_found", confidence=0.1))
    assert scored.metrics == {
        "correct": 0.0,
        "exact_match": 0.0,
        "token_f1": 0.0,
        "contains_answer": 0.0,
        "gold_read": 1.0,
        "gold_cited": 0.0,
        "false_refusal": 1.0,
    }
    assert (scored.right, scored.confidence) == (None, 0.1)


def test_a_right_refusal_is_correct_and_has_nothing_else():
    scored = score_answer(UNANSWERABLE, answer("The sources do not say this.", status="not_found"))
    assert scored.metrics == {"correct": 1.0, "correct_refusal": 1.0}


def test_an_answer_that_should_have_been_refused_is_wrong_however_well_it_is_cited():
    scored = score_answer(UNANSWERABLE, answer("In 758 Diwu Qi made salt a monopoly of the state. [1]", [1]))
    assert scored.metrics["correct_refusal"] == 0.0
    assert scored.metrics["correct"] == 0.0
    assert scored.metrics["citation_recall"] == 1.0
    assert scored.right is False


def test_without_a_written_answer_the_cited_passage_decides():
    asked = Question("q", "Who held Suiyang?", gold=(GoldPassage("Zhang Xun held"),))
    right = score_answer(asked, answer("Zhang Xun held the town of Suiyang for ten months. [2]", [2]))
    wrong = score_answer(asked, answer("In 758 Diwu Qi made salt a monopoly of the state. [1]", [1]))
    assert (right.right, wrong.right) == (True, False)
    assert "exact_match" not in right.metrics


def test_only_known_metrics_are_given():
    scored = score_answer(ASKED, answer("In 758. [1]", [1], verdict="partial"))
    assert set(scored.metrics) <= set(KNOWN)
    assert scored.metrics["claims_supported"] == 0.0
