"""Ragas' metrics by a judge over real HTTP, where Ragas is installed."""

import gc
import importlib.util
import sys

import pytest
from tests.doubles.stand_in_llm import Rule

from shiguan.errors import AnswerError, ConfigurationError
from shiguan.evaluation.judges import RagasJudge
from shiguan.evaluation.questions import Question

installed = pytest.mark.skipif(
    importlib.util.find_spec("ragas") is None, reason="the extra `ragas` is not installed (650 MB)"
)
# Ragas and the client that it holds back warn of themselves.
pytestmark = pytest.mark.filterwarnings("ignore")
GOLDEN = Question("q", "When did An Lushan rise?", answers=["16 December 755"])
RECORDS = {
    "q": {
        "status": "answered",
        "answer": "The blow came on 16 December 755. [1]",
        "documents": [{"content": "The blow came on 16 December 755."}],
    }
}
RULES = [
    Rule("noncommittal", {"question": "When did An Lushan rise?", "noncommittal": 0}),
    Rule("attributed", {"classifications": [{"statement": "755", "reason": "stated", "attributed": 1}]}),
    Rule("useful in arriving", {"reason": "useful", "verdict": 1}),
    Rule("break.*statements|fully understandable statements", {"statements": ["An Lushan rose."]}),
    Rule(
        "directly inferred|faithfulness",
        {"statements": [{"statement": "An Lushan rose.", "reason": "stated", "verdict": 1}]},
    ),
]


@pytest.fixture(autouse=True)
def collected():
    """Let Ragas' clients go while their warnings are heard by nobody: they leave their connections open."""
    yield
    gc.collect()


def test_without_ragas_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "haystack_integrations.components.evaluators.ragas", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'shiguan\[ragas\]'"):
        RagasJudge()


@installed
def test_every_metric_is_judged_and_kept(tmp_path, stand_in_llm, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", stand_in_llm.url)
    monkeypatch.setenv("OPENAI_MODEL", "stand-in")
    stand_in_llm.rules = list(RULES)
    judge = RagasJudge()
    found = judge.judge([GOLDEN], RECORDS, tmp_path)
    asked = ("faithfulness", "answer_relevancy", "context_precision", "context_recall")
    assert found["q"] == {f"ragas_{name}": pytest.approx(1.0) for name in asked}
    assert judge.notes() == []
    calls = stand_in_llm.calls
    assert RagasJudge().judge([GOLDEN], RECORDS, tmp_path) == found
    assert stand_in_llm.calls == calls


@installed
def test_a_judge_that_answers_nonsense_is_an_error_and_no_zero(tmp_path, stand_in_llm, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", stand_in_llm.url)
    monkeypatch.setenv("OPENAI_MODEL", "stand-in")
    with pytest.raises(AnswerError, match="no judgement that can be read"):
        RagasJudge().judge([GOLDEN], RECORDS, tmp_path)


@installed
def test_without_an_endpoint_nothing_is_judged():
    with pytest.raises(ConfigurationError, match="none is configured"):
        RagasJudge()
