"""Haystack's evaluators by a judge over real HTTP."""

import pytest
from tests.doubles.stand_in_llm import Rule

from shiguan.errors import AnswerError, ConfigurationError
from shiguan.evaluation.judges import AnswerJudge
from shiguan.evaluation.questions import Question

GOLDEN = [Question(name, "When did An Lushan rise?", answers=["755"]) for name in ("a", "b")]
ANSWERED = {
    "status": "answered",
    "answer": "He rose in 755. He had three eyes. [1]",
    "documents": [{"content": "He rose in 755."}],
}
RECORDS = {"a": ANSWERED, "b": {**ANSWERED, "status": "not_found"}}
RULES = [
    Rule("statement_scores", {"statements": ["He rose in 755.", "He had three eyes."], "statement_scores": [1, 0]}),
    Rule("relevant_statements", {"relevant_statements": ["He rose in 755."]}),
]


@pytest.fixture
def endpoint(stand_in_llm, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", stand_in_llm.url)
    monkeypatch.setenv("OPENAI_MODEL", "stand-in")
    stand_in_llm.rules = list(RULES)
    return stand_in_llm


def test_given_answers_are_judged_and_refusals_are_not(endpoint):
    found = AnswerJudge().judge(GOLDEN, RECORDS)
    assert found == ({"a": {"haystack_faithfulness": 0.5, "haystack_context_relevance": 1.0}}, [])
    assert endpoint.calls == 2
    assert AnswerJudge().judge(GOLDEN[1:], RECORDS) == ({}, [])


def test_half_a_judgement_is_no_zero_and_is_told(endpoint):
    endpoint.rules = [RULES[1]]
    note = "1 judgements of `stand-in` could not be read and are left out."
    assert AnswerJudge().judge(GOLDEN, RECORDS) == ({"a": {"haystack_context_relevance": 1.0}}, [note])


def test_a_judge_that_answers_nonsense_is_an_error(endpoint):
    endpoint.rules = []
    with pytest.raises(AnswerError, match="no readable judgement for any of 1 answers"):
        AnswerJudge().judge(GOLDEN, RECORDS)


def test_without_an_endpoint_nothing_is_judged():
    with pytest.raises(ConfigurationError, match="none is configured"):
        AnswerJudge()
