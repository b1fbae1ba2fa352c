"""The reranking benchmark ranks what it says, and prints what it measured."""

import json

import pytest
from benchmarks.synthetic import SyntheticLibrary

from benchmarks import reranking
from shiguan.stores.qdrant_edge_document_store import QdrantEdgeDocumentStore

CHILDREN = 80


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    store = QdrantEdgeDocumentStore(path=str(tmp_path_factory.mktemp("reranking"))).unscoped()
    reranking.build(store, CHILDREN)
    yield reranking.late_interaction(store, SyntheticLibrary(CHILDREN), 2)
    store.close()


def test_every_passage_is_ranked_by_late_interaction(measured):
    """`late_interaction` stops the run where one is not."""
    assert measured["ranking"]["cpu_ms"] > 0
    assert 10 <= measured["question_tokens"] <= 40


def test_the_table_compares_with_the_cross_encoder_and_the_target(measured):
    measured = {**measured, "ranking": {"cpu_ms": 4.0, "wall_ms": 5.0}, "question": {"cpu_ms": 8.0, "wall_ms": 9.0}}
    result = {
        "children": 100_000,
        "questions": 100,
        "date": "2026-01-01",
        "machine": {"cpu": "a processor", "cores": 2, "python": "3.11"},
        "late_interaction": measured,
        "cross_encoder": {"cpu_ms": 2000.0, "wall_ms": 2100.0},
    }
    table = reranking.table(json.loads(json.dumps(result)))
    assert "| late interaction, the question encoded before | 4.0 | 5.0 |" in table
    assert "| the same with encoding the question | 12.0 | 14.0 |" in table
    assert "pass: 4.0 ms of CPU for 50 passages, at most 10; 500 times less than the cross-encoder" in table
    measured["ranking"]["cpu_ms"] = 11.0
    assert "MISS: 11.0 ms" in reranking.table(result)
