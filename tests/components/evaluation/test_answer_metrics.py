"""Scores of one answer, each expectation worked out by hand."""

import json

from haystack import Document, GeneratedAnswer

from shiguan.evaluation.answer_metrics import answer_record, is_right, score_answer
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
    record = answer("In 758 Diwu Qi made salt a monopoly of the state. [1]", [1])
    assert (is_right(ASKED, record), record["confidence"]) == (True, 0.8)
    assert score_answer(ASKED, record) == {
        "correct": 1.0,
        "contains_answer": 1.0,
        "gold_read": 1.0,
        "gold_cited": 1.0,
        "citation_precision": 1.0,
        "citation_recall": 1.0,
        "claims_supported": 1.0,
        "false_refusal": 0.0,
    }


def test_the_wrong_passage_is_cited():
    record = answer("Zhang Xun held the town of Suiyang for ten months. [2]", [2])
    scored = score_answer(ASKED, record)
    assert (scored["contains_answer"], scored["gold_cited"], scored["gold_read"]) == (0, 0, 1)
    assert scored["citation_precision"] == 1.0
    assert is_right(ASKED, record) is False


def test_quotations_are_scored_by_what_they_quote_and_not_as_citations():
    citation = {"number": 1, "quote": "In 758 Diwu Qi made salt a monopoly.", "verdict": "quoted"}
    meta = {"status": "quoted", "citations": [citation], "claims": [], "confidence": 0.8}
    record = answer_record(GeneratedAnswer("Intro.\n\n[1] a\n\n> **In 758**", "q", [], meta))
    assert (record["answer"], record["cited"]) == (citation["quote"], [1])
    question = Question("q", "Who made salt a monopoly?", answers=["Diwu Qi"])
    assert (is_right(question, record), record["confidence"]) == (True, 0.8)
    assert "citation_precision" not in score_answer(question, record)


def test_a_false_refusal_is_wrong_in_all_that_could_be_right():
    record = answer("The sources do not say this.", status="not_found", confidence=0.1)
    assert (is_right(ASKED, record), record["confidence"]) == (None, 0.1)
    assert score_answer(ASKED, record) == {
        "correct": 0.0,
        "contains_answer": 0.0,
        "gold_read": 1.0,
        "gold_cited": 0.0,
        "false_refusal": 1.0,
    }


def test_a_right_refusal_is_correct_and_has_nothing_else():
    scored = score_answer(UNANSWERABLE, answer("The sources do not say this.", status="not_found"))
    assert scored == {"correct": 1.0, "correct_refusal": 1.0}


def test_an_answer_that_should_have_been_refused_is_wrong_however_well_it_is_cited():
    record = answer("In 758 Diwu Qi made salt a monopoly of the state. [1]", [1])
    scored = score_answer(UNANSWERABLE, record)
    assert scored["correct_refusal"] == 0.0
    assert scored["correct"] == 0.0
    assert scored["citation_recall"] == 1.0
    assert is_right(UNANSWERABLE, record) is False


def test_without_a_written_answer_the_cited_passage_decides():
    asked = Question("q", "Who held Suiyang?", gold=(GoldPassage("Zhang Xun held"),))
    right = answer("Zhang Xun held the town of Suiyang for ten months. [2]", [2])
    wrong = answer("In 758 Diwu Qi made salt a monopoly of the state. [1]", [1])
    assert (is_right(asked, right), is_right(asked, wrong)) == (True, False)
    assert "contains_answer" not in score_answer(asked, right)


def test_only_known_metrics_are_given():
    scored = score_answer(ASKED, answer("In 758. [1]", [1], verdict="partial"))
    assert set(scored) <= set(KNOWN)
    assert scored["claims_supported"] == 0.0
