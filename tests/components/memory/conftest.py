import hashlib

import pytest
from haystack import component
from haystack.components.joiners import DocumentJoiner
from haystack.dataclasses import Document
from shiguan.memory.memory_retriever import MemoryRetriever
from shiguan.retrieval.score_standardizer import ScoreStandardizer

from shiguan.stores.embedded.sqlite_conversation_store import SQLiteConversationStore
from shiguan.text.terms import terms


def vector(text):
    """Sixteen dimensions, one for each of the text's terms: equal texts are near, strange ones are not."""
    numbers = [0.01] * 16
    for term in terms(text):
        numbers[hashlib.sha256(term.encode()).digest()[0] % 16] += 1.0
    return numbers


@component
class TextEmbedder:
    @component.output_types(embedding=list[float])
    def run(self, text: str):
        return {"embedding": vector(text)}


@component
class DocumentEmbedder:
    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]):
        return {"documents": [Document(content=d.content, embedding=vector(d.content)) for d in documents]}


@pytest.fixture
def store(tmp_path):
    store = SQLiteConversationStore(str(tmp_path))
    yield store
    store.close()


@pytest.fixture
def make_retriever(store, monkeypatch):
    def make(*, last_turns=3, top_k=5, **more):
        monkeypatch.setattr("shiguan.memory.memory_retriever._SAID_TURNS", last_turns)
        monkeypatch.setattr("shiguan.memory.memory_retriever._MOST_SUMMARIES", top_k)
        joiner = DocumentJoiner(join_mode="merge", weights=[0.5, 0.5])
        parts = {"text_embedder": TextEmbedder(), "standardizer": ScoreStandardizer(), "joiner": joiner, **more}
        return MemoryRetriever(store, **parts)

    return make


def of(tenant):
    return {
        "operator": "AND",
        "conditions": [{"field": "meta.tenant_id", "operator": "==", "value": tenant}],
    }
