from haystack import Document

from shiguan.ingest.new_document_filter import NewDocumentFilter
from shiguan.stores.embedded.qdrant_edge_document_store import QdrantEdgeDocumentStore


def documents(*ids):
    return [Document(id=name, content=name) for name in ids]


def test_stored_documents_are_dropped(tmp_path):
    store = QdrantEdgeDocumentStore("new", path=str(tmp_path), embedding_dim=None)
    store.write_documents(documents("a", "b"))
    result = NewDocumentFilter(store).run(documents("c", "a", "d", "b", "c"))
    assert [document.id for document in result["documents"]] == ["c", "d"]
    assert result["known"] == 3


def test_no_documents_are_no_documents(tmp_path):
    store = QdrantEdgeDocumentStore("new", path=str(tmp_path), embedding_dim=None)
    assert NewDocumentFilter(store).run([]) == {"documents": [], "known": 0}
