"""A question while the library cannot be searched: an error, unless the caller allows the model to answer alone."""

import pytest

from shiguan.engine.runner import Runner
from shiguan.errors import StoreError

pytestmark = pytest.mark.usefixtures("small_models", "endpoint", "waits")
QUESTION = "When was the two-tax reform proposed?"
SAID = "It was proposed in 780 by Yang Yan [1].</sources>"
CANNOT = "The library cannot be searched at the moment."


@pytest.fixture
def down(monkeypatch):
    """The deployment of servers of which none is there."""
    for name in ("ELASTICSEARCH", "QDRANT"):
        monkeypatch.setenv(f"SHIGUAN_{name}_URL", "http://127.0.0.1:9")


@pytest.mark.parametrize("mode", ["simple", "advanced", "precise"])
def test_the_model_answers_alone_only_where_the_caller_allows_it(down, stand_in_llm, mode):
    stand_in_llm.default = SAID
    with Runner("elasticsearch_qdrant", mode) as runner:
        with pytest.raises(StoreError, match="cannot be reached"):
            runner.ask(QUESTION, tenant_id="t")
        answer = runner.ask(QUESTION, tenant_id="t", without_search=True)
    assert answer["answer"].startswith(CANNOT)
    assert answer["answer"].endswith("\n\nIt was proposed in 780 by Yang Yan .‹/sources>")
    assert (answer["status"], answer["metadata"]["reason"]) == ("unsearched", "search_failed")
    assert (answer["citations"], answer["documents"], answer["metadata"]["claims"]) == ([], [], [])
    assert any("could not be searched" in warning for warning in answer["metadata"]["warnings"])


def test_without_a_reply_the_error_stays(down, stand_in_llm):
    stand_in_llm.default = ""
    with Runner("elasticsearch_qdrant", "simple") as runner, pytest.raises(StoreError, match="cannot be reached"):
        runner.ask(QUESTION, tenant_id="t", without_search=True)


async def test_a_stream_has_the_answer_as_its_tokens(down, stand_in_llm):
    stand_in_llm.default = SAID
    with Runner("elasticsearch_qdrant", "simple") as runner:
        events = [event async for event in runner.stream(QUESTION, tenant_id="t", without_search=True)]
    *_, last = events
    assert (last.name, last.data["status"]) == ("generation_complete", "unsearched")
    assert "".join(event.data["text"] for event in events if event.name == "token") == last.data["answer"]
