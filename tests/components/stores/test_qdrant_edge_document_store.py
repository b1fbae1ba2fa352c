from dataclasses import replace

import pytest
from haystack.dataclasses import Document
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.errors import FilterError
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

    def assert_documents_are_equal(self, received, expected):
        # Embeddings are kept as float32 of length 1.
        assert [replace(one, embedding=None) for one in received] == [replace(one, embedding=None) for one in expected]

    def refuses_dates(self, document_store, filterable_docs):
        date = {"field": "meta.date", "operator": ">", "value": "1972-12-11T19:54:58"}
        with pytest.raises(FilterError, match="Ranges take numbers"):
            document_store.filter_documents(date)

    test_comparison_greater_than_with_iso_date = refuses_dates
    test_comparison_greater_than_equal_with_iso_date = refuses_dates
    test_comparison_less_than_with_iso_date = refuses_dates
    test_comparison_less_than_equal_with_iso_date = refuses_dates

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
