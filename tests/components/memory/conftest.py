import hashlib

import pytest
from haystack import component
from haystack.dataclasses import Document

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
