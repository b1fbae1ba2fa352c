"""Whatever passes the check shows no other tenant's text and opens no file, however it is wired."""

import json
import random
import resource
import sys
import time
from collections import Counter

import pytest
from haystack import Document, Pipeline
from haystack.document_stores.in_memory import InMemoryDocumentStore
from tests.security.mutant_parts import spoken
from tests.security.wirings import AGENT, MEMORY_INDEX, NAMES, Caller, kinds, wiring

from shiguan.checking.pipeline_check import check_pipeline
from shiguan.errors import RefusedError
from shiguan.haystack_compat import AsyncPipeline
from shiguan.stores.embedded.qdrant_edge_document_store import QdrantEdgeDocumentStore
from shiguan.tenants import asked_by

TEXTS = {"ours": "Guo Ziyi took the capital back.", "theirs": "Guo Ziyi wrote a letter that nobody else shall read."}
READS = ("bm25_retrieval", "embedding_retrieval", "filter_documents")
opened: list[str] = []
taken: list[float] = []
"""Seconds of the processor that each check took."""
watched: list[str] = []
"""The path of the secret while a wiring runs."""


def _hook(event, arguments):
    if event == "open" and watched and str(arguments[0]) in watched:
        opened.append(str(arguments[0]))


@pytest.fixture(scope="module", autouse=True)
def _watching():
    sys.addaudithook(_hook)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same two passages in both kinds of stores, and a secret beside them."""
    folder = tmp_path_factory.mktemp("wirings")
    (folder / "secret.txt").write_text("sk-secret", encoding="utf-8")
    documents = [
        Document(id=tenant, content=text, meta={"tenant_id": tenant, "title": "Annals"})
        for tenant, text in TEXTS.items()
    ]
    edge = QdrantEdgeDocumentStore("children", path=str(folder), embedding_dim=2)
    edge.write_documents(documents)
    memory = InMemoryDocumentStore(index=MEMORY_INDEX)
    memory.write_documents(documents)
    yield folder
    edge.close()


@pytest.fixture
def read(monkeypatch):
    """Whose passages came out of a store, whatever became of them."""
    seen: Counter[str] = Counter()
    for store in (QdrantEdgeDocumentStore, InMemoryDocumentStore):
        for name in READS:
            monkeypatch.setattr(store, name, _noted(getattr(store, name), seen))
    return seen


def _noted(method, seen):
    def noted(*arguments, **words):
        documents = method(*arguments, **words)
        seen.update(document.meta["tenant_id"] for document in documents)
        return documents

    return noted


def outcome(data, folder, chance):
    """Run a file as the tenant `ours`, and say how it ended: "done", "refused" by a reader or its store, or "stopped"."""
    path = folder / "secret.txt"
    theirs = {"field": "meta.tenant_id", "operator": "==", "value": "theirs"}
    said = dict.fromkeys(NAMES, str(path)) | {
        "query": chance.choice(["Guo Ziyi letter", str(path)]), "tenant_id": "ours", "top_k": 5,
        "filters": chance.choice([theirs, {"operator": "OR", "conditions": [theirs]}]),
        "sources": [str(path)], "sections": [str(path)], "history": [{"role": "user", "content": str(path)}],
    }  # fmt: skip
    kind = chance.choice([Pipeline, AsyncPipeline])
    watched[:] = [str(path)]
    try:
        with asked_by("ours"):
            kind.from_dict({key: value for key, value in data.items() if key not in ("inputs", "options")}).run(
                spoken(data, said)
            )
    except Exception as error:
        cause = error
        while cause is not None:
            if isinstance(cause, RefusedError):
                return "refused"
            cause = cause.__cause__
        return "stopped"
    finally:
        watched.clear()
    return "done"


def passing(folder, chance, count):
    known, path = kinds(str(folder)), folder / "wiring.yml"
    while count:
        data = wiring(chance, known)
        path.write_text(json.dumps(data), encoding="utf-8")
        if not checked(path):
            count -= 1
            yield data


def checked(path):
    """Check a file, within what a check may take."""
    before = time.process_time()
    findings = check_pipeline(path, path.name, allow_types=[Caller.__module__]).findings
    taken.append(time.process_time() - before)
    return findings


@pytest.mark.parametrize("count", [60, pytest.param(1_200, marks=pytest.mark.slow)])
def test_no_wiring_that_passes_the_check_shows_anothers_text_or_opens_a_file(folder, read, count):
    chance = random.Random(count)
    opened.clear()
    taken.clear()
    ends, with_readers, with_tools, memory = Counter(), 0, 0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for data in passing(folder, chance, count):
        before = read["ours"]
        end = outcome(data, folder, chance)
        ends[end] += 1
        with_readers += read["ours"] > before
        with_tools += AGENT in json.dumps(data)
        assert read["theirs"] == 0, json.dumps(data)
        assert opened == [], json.dumps(data)
    # The files are worth something: most run to their end, and many read the library.
    assert ends["done"] > count / 2
    assert with_readers > count / 4
    assert with_tools > count / 100
    assert len(taken) > count
    assert max(taken) < 2
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) * 1024 < 300_000_000


def test_wirings_that_are_refused_would_have_leaked(folder, read):
    """Without this the generator could make nothing that is dangerous."""
    chance, known, path = random.Random(4), kinds(str(folder)), folder / "refused.yml"
    opened.clear()
    leaks = files = 0
    for _ in range(3_000):
        if leaks >= 2 and files:
            break
        data = wiring(chance, known)
        path.write_text(json.dumps(data), encoding="utf-8")
        if {one.check for one in checked(path)} & {"tenants", "reachable_parameters"}:
            outcome(data, folder, chance)
            leaks += read.pop("theirs", 0) > 0
            files += bool(opened)
            opened.clear()
    assert leaks >= 2
    assert files >= 1
