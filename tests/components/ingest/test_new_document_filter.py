from haystack import Document, Pipeline
from haystack.document_stores.in_memory import InMemoryDocumentStore

from shiguan.ingest.new_document_filter import NewDocumentFilter
from shiguan.stores.embedded.qdrant_edge_document_store import QdrantEdgeDocumentStore


def documents(*ids):
    return [Document(id=name, content=name) for name in ids]


def check(store):
    store.write_documents(documents("a", "b"))
    result = NewDocumentFilter(store).run(documents("c", "a", "d", "b", "c"))
    assert [document.id for document in result["documents"]] == ["c", "d"]
    assert result["known"] == 3


def test_stored_documents_are_dropped_by_any_store():
    check(InMemoryDocumentStore())


def test_stored_documents_are_dropped_by_the_embedded_store(tmp_path):
    check(QdrantEdgeDocumentStore("new", path=str(tmp_path), embedding_dim=None))


def test_no_documents_need_no_look_at_the_store():
    assert NewDocumentFilter(InMemoryDocumentStore()).run([]) == {"documents": [], "known": 0}


def test_the_filter_comes_back_from_yaml_with_its_store():
    pipeline = Pipeline()
    pipeline.add_component("filter", NewDocumentFilter(QdrantEdgeDocumentStore("somewhere", embedding_dim=None)))
    again = Pipeline.loads(pipeline.dumps()).get_component("filter")
    assert again.document_store.name == "somewhere"
