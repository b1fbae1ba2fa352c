"""Metrics of a judge over real HTTP."""

import pytest
from tests.doubles.stand_in_llm import Rule

from shiguan.errors import AnswerError, ConfigurationError
from shiguan.evaluation.json_lines import read_json_lines, write_review
from shiguan.evaluation.judges import AnswerJudge, for_review, judgement
from shiguan.evaluation.questions import Question

GOLDEN = [Question(name, "When did An Lushan rise?", answers=["755"]) for name in ("a", "b")]
SAID = "He rose in 755. He had three eyes. [1]"
ANSWERED = {"status": "answered", "answer": SAID, "documents": [{"content": "He rose in 755."}]}
RECORDS = {"a": ANSWERED, "b": {**ANSWERED, "status": "not_found"}}
RULES = [
    Rule("statement_scores", {"statements": ["He rose in 755.", "He had three eyes."], "statement_scores": [1, 0]}),
    Rule("evades the question", {"score": 0.8}),
    Rule("context_scores", {"context_scores": [0, 1, 1]}),
    Rule("reference_scores", {"reference_scores": [1, 1, 0, 0]}),
]
OF_THE_ANSWER = {"faithfulness": 0.5, "answer_relevancy": 0.8}
ALL = {**OF_THE_ANSWER, "judged_context_precision": (1 / 2 + 2 / 3) / 2, "judged_context_recall": 0.5}


@pytest.fixture
def endpoint(endpoint, monkeypatch):
    monkeypatch.setenv("OPENAI_MODEL", "stand-in")
    endpoint.rules = list(RULES)
    return endpoint


def test_given_answers_are_judged_and_refusals_are_not(endpoint):
    assert AnswerJudge().judge(GOLDEN, RECORDS) == ({"a": pytest.approx(ALL)}, [])
    assert endpoint.calls == 4
    assert AnswerJudge().judge(GOLDEN[1:], RECORDS) == ({}, [])
    # Without a right answer the contexts are not judged.
    assert AnswerJudge().judge([Question("a", "When did An Lushan rise?")], RECORDS)[0] == {"a": OF_THE_ANSWER}
    assert endpoint.calls == 6


def test_half_a_judgement_is_no_zero_and_none_is_an_error(endpoint):
    endpoint.rules = RULES[1:]
    judged, notes = AnswerJudge().judge(GOLDEN, RECORDS)
    assert judged == {"a": pytest.approx({name: value for name, value in ALL.items() if name != "faithfulness"})}
    assert notes == ["1 judgements of `stand-in` could not be read and are left out."]
    endpoint.rules = []
    with pytest.raises(AnswerError, match="no readable judgement for any of 1 answers"):
        AnswerJudge().judge(GOLDEN, RECORDS)


def test_without_an_endpoint_nothing_is_judged():
    with pytest.raises(ConfigurationError, match="none is configured"):
        AnswerJudge()


@pytest.mark.parametrize(
    ("name", "reply", "value"),
    [
        ("faithfulness", {"statement_scores": [1, 0, 1, 1]}, 0.75), ("faithfulness", {"statement_scores": []}, None),
        ("answer_relevancy", {"score": 7}, 1.0), ("answer_relevancy", {"score": "high"}, None),
        ("answer_relevancy", {"score": float("nan")}, None), ("answer_relevancy", {"score": 10**400}, 1.0),
        ("answer_relevancy", None, None), ("judged_context_precision", {"context_scores": [1, 0, 1]}, (1 + 2 / 3) / 2),
        ("judged_context_precision", {"context_scores": [0, 0]}, 0.0),
        ("judged_context_recall", {"reference_scores": [1, [1]]}, None),
    ],
)  # fmt: skip
def test_a_judgement_is_read_or_left_out(name, reply, value):
    assert judgement(name, reply) == (None if value is None else pytest.approx(value))


def test_one_judged_answer_in_ten_goes_to_a_person(tmp_path):
    questions = [Question(f"q{at}", "When?", answers=["755"]) for at in range(30)]
    records = dict.fromkeys((one.id for one in questions), ANSWERED)
    judged = {one.id: {"faithfulness": 0.5} for one in questions}
    write_review(tmp_path / "review.jsonl", for_review(questions, records, judged))
    rows = [row for _, row in read_json_lines(tmp_path / "review.jsonl")]
    assert len({row["id"] for row in rows}) == 3
    assert rows[0] | {"id": ""} == {
        "id": "", "person": "", "question": "When?", "answer": ANSWERED["answer"], "contexts": ["He rose in 755."],
        "references": ["755"], "judge": {"faithfulness": 0.5},
    }  # fmt: skip
    (tmp_path / "review.jsonl").write_text("reviewed", encoding="utf-8")
    write_review(tmp_path / "review.jsonl", for_review(questions, records, judged))
    assert (tmp_path / "review.jsonl").read_text(encoding="utf-8") == "reviewed"
