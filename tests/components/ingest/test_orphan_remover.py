import pytest
from haystack import Document
from haystack.document_stores.in_memory import InMemoryDocumentStore

from shiguan.ingest.orphan_remover import OrphanRemover, ProducedIds
from shiguan.stores.embedded.qdrant_edge_document_store import QdrantEdgeDocumentStore


@pytest.fixture
def stores(tmp_path):
    return tuple(
        QdrantEdgeDocumentStore(name, path=str(tmp_path), embedding_dim=None).unscoped() for name in ("p", "c")
    )


def stored(name, tenant="t", file="f"):
    return Document(id=name, content=name, meta={"tenant_id": tenant, "file_id": file})


def remove(stores, files, parents, children):
    remover = OrphanRemover(stores[0], child_store=stores[1])
    produced = ProducedIds(frozenset(files), frozenset(parents), frozenset(children))
    return remover.run(produced, parents_written=0, children_written=0)["removed"]


def ids(store):
    return {document.id for document in store.filter_documents()}


def test_what_the_files_of_this_run_no_longer_produce_goes_and_the_rest_stays(stores):
    parents, children = stores
    parents.write_documents([stored("p1"), stored("p2"), stored("q", file="g"), stored("r", tenant="u")])
    children.write_documents([stored("c1"), stored("c2"), stored("c3"), stored("d", file="g"), stored("e", tenant="u")])
    assert remove(stores, [("t", "f")], {"p1"}, {"c1"}) == 3
    assert ids(parents) == {"p1", "q", "r"}
    assert ids(children) == {"c1", "d", "e"}


def test_a_run_that_produced_nothing_removes_nothing(stores):
    parents, children = stores
    parents.write_documents([stored("p")])
    children.write_documents([stored("c")])
    assert remove(stores, [], [], []) == 0
    assert (ids(parents), ids(children)) == ({"p"}, {"c"})


def test_children_go_before_their_parents():
    order = []

    class Store(InMemoryDocumentStore):
        def __init__(self, name):
            super().__init__()
            self.label = name

        def list_ids(self, filters):
            return [document.id for document in self.filter_documents(filters)]

        def delete_documents(self, document_ids):
            order.append(self.label)
            super().delete_documents(document_ids)

    pair = Store("parents"), Store("children")
    for store in pair:
        store.write_documents([stored("x")])
    assert remove(pair, [("t", "f")], [], []) == 2
    assert order == ["children", "parents"]
