from haystack import Document, Pipeline

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


def test_the_filter_comes_back_from_yaml_with_its_store():
    pipeline = Pipeline()
    pipeline.add_component("filter", NewDocumentFilter(QdrantEdgeDocumentStore("somewhere", embedding_dim=None)))
    again = Pipeline.loads(pipeline.dumps()).get_component("filter")
    assert again.document_store.name == "somewhere"
