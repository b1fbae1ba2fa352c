import pytest
from haystack.dataclasses import Document
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.testing.document_store import (
    CountDocumentsByFilterTest,
    DeleteAllTest,
    DeleteByFilterTest,
    DocumentStoreBaseTests,
)

from shiguan.stores.embedded.qdrant_edge_document_store import QdrantEdgeDocumentStore


@pytest.fixture
def document_store(tmp_path):
    # Haystack's test documents have embeddings of 768 random numbers.
    store = QdrantEdgeDocumentStore(path=str(tmp_path), embedding_dim=768).unscoped()
    yield store
    store.close()


class TestHaystacksOwn(DocumentStoreBaseTests, DeleteAllTest, DeleteByFilterTest, CountDocumentsByFilterTest):
    @pytest.fixture
    def document_store(self, document_store):
        return document_store

    def test_write_documents(self, document_store):
        # Haystack leaves this one to the store: without a policy a stored id is refused.
        document = Document(content="text")
        assert document_store.write_documents([document]) == 1
        with pytest.raises(DuplicateDocumentError):
            document_store.write_documents([document])


async def test_haystacks_components_may_await_writes_and_reads(document_store):
    document = Document(content="text")
    assert await document_store.write_documents_async([document]) == 1
    with pytest.raises(DuplicateDocumentError):
        await document_store.write_documents_async([document])
    assert await document_store.filter_documents_async() == [document]
