import pytest
from haystack import Document

from shiguan.ingest.passage_writer import PassageWriter
from shiguan.stores.embedded.qdrant_edge_document_store import QdrantEdgeDocumentStore
from shiguan.tenants import of_tenant, where


@pytest.fixture
def stores(tmp_path):
    return tuple(
        QdrantEdgeDocumentStore(name, path=str(tmp_path), embedding_dim=None).unscoped() for name in ("p", "c")
    )


def stored(name, tenant="t", file="f"):
    return Document(id=name, content=name, meta={"tenant_id": tenant, "file_id": file})


def ids(store):
    return {document.id for document in store.filter_documents()}


def test_what_the_files_of_this_run_no_longer_produce_goes_and_the_rest_stays(stores):
    parents, children = stores
    parents.write_documents([stored("p1"), stored("p2"), stored("q", file="g"), stored("r", tenant="u")])
    children.write_documents([stored("c1"), stored("c2"), stored("c3"), stored("d", file="g"), stored("e", tenant="u")])
    given = [stored("c1"), stored("c4"), stored("c4")]
    result = PassageWriter(parents, child_store=children).run([stored("p1"), stored("p3")], given)
    assert result == {"files": [of_tenant("t", where("meta.file_id", "in", ["f"]))], "new": 1, "removed": 3}
    assert ids(parents) == {"p1", "p3", "q", "r"}
    assert ids(children) == {"c1", "c4", "d", "e"}


def test_a_run_that_produced_nothing_changes_nothing(stores):
    parents, children = stores
    parents.write_documents([stored("p")])
    children.write_documents([stored("c")])
    assert PassageWriter(parents, child_store=children).run([], []) == {"files": [], "new": 0, "removed": 0}
    assert (ids(parents), ids(children)) == ({"p"}, {"c"})


def test_whenever_it_ends_every_child_that_is_found_has_its_parent(stores, monkeypatch):
    order = []
    for store, name in zip(stores, ("parents", "children"), strict=True):
        store.write_documents([stored(f"old {name}")])
        for method in ("write_documents", "delete_by_filter"):
            whole = getattr(store, method)

            def noted(*given, name=name, method=method, whole=whole, **options):
                order.append(f"{method} {name}")
                return whole(*given, **options)

            monkeypatch.setattr(store, method, noted)
    PassageWriter(stores[0], child_store=stores[1]).run([stored("p")], [stored("c")])
    assert order == [
        "write_documents parents", "write_documents children", "delete_by_filter children", "delete_by_filter parents",
    ]  # fmt: skip
