"""Writes where a disk is almost full."""

from types import SimpleNamespace

import pytest
from haystack import Document

from shiguan import resources
from shiguan.errors import StoreFullError
from shiguan.resources import FOR_DELETING, FOR_OPENING, FOR_WRITING
from shiguan.stores.embedded.qdrant_edge_document_store import QdrantEdgeDocumentStore


@pytest.fixture
def free(monkeypatch):
    """Say how many bytes are free."""

    return lambda count: monkeypatch.setattr(
        resources.shutil, "disk_usage", lambda _: SimpleNamespace(total=10**12, used=0, free=count)
    )


@pytest.fixture
def store(tmp_path):
    store = QdrantEdgeDocumentStore(name="parents", path=str(tmp_path), embedding_dim=None).unscoped()
    yield store
    store.close()


def test_a_store_on_a_full_disk_refuses_new_passages_and_keeps_the_old_ones(free, store):
    store.write_documents([Document(id="a", content="salt"), Document(id="b", content="iron")])
    free(FOR_WRITING - 1)
    with pytest.raises(StoreFullError):
        store.write_documents([Document(id="c", content="silk")])
    assert store.count_documents() == 2
    store.delete_documents(["a"])  # which makes room
    assert store.count_documents() == 1
    free(FOR_DELETING - 1)
    with pytest.raises(StoreFullError):
        store.delete_documents(["b"])
    assert store.count_documents() == 1


def test_a_store_is_not_begun_where_its_files_would_find_no_room(free, store):
    free(FOR_WRITING - 1)
    with pytest.raises(StoreFullError, match=r"67\.1 MB free"):
        store.count_documents()
    free(FOR_WRITING)
    assert store.count_documents() == 0


def test_a_library_on_a_full_disk_is_opened_and_read(free, store):
    store.write_documents([Document(id="a", content="salt")])
    store.close()
    free(FOR_OPENING)
    assert store.count_documents() == 1
    store.close()
    free(FOR_OPENING - 1)
    with pytest.raises(StoreFullError, match=r"1\.0 MB free; opening it needs 1\. Free space.*stays\.$"):
        store.count_documents()
