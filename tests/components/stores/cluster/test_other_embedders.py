"""Vectors of two embedders are told apart, and several processes that embed the same children share the work."""

from types import SimpleNamespace

import pytest
from haystack_integrations.components.retrievers.qdrant import QdrantEmbeddingRetriever
from tests.components.stores.cluster.conftest import ALL, TENANT, child
from tests.doubles.fake_embedder import FakeEmbedder

from shiguan.errors import StoreFormatError
from shiguan.ingest import vector_writer
from shiguan.ingest.vector_writer import VectorWriter
from shiguan.llm.run import Run
from shiguan.stores.cluster import qdrant_store
from shiguan.stores.cluster.qdrant_store import QdrantStore


def recorded(qdrant):
    return (qdrant.configs["children"].get("metadata") or {}).get("shiguan_embedder")


def test_the_collection_records_who_made_its_vectors_and_refuses_those_of_another(pair, qdrant):
    pair.write_documents([child(1, embedding=None), child(2, embedding=None)], ALL)
    assert (pair.embedder(), pair.other_vectors("old, recipe 1")) == (None, None)
    pair.write_vectors([child(1)], model="old, recipe 1")
    assert pair.embedder() == recorded(qdrant) == "old, recipe 1"
    assert pair.other_vectors("old") is None
    with pytest.raises(StoreFormatError, match=r"`old, recipe 1` and not with `new`.*shiguan ingest --resume"):
        pair.write_vectors([child(2)], model="new")
    assert "`old, recipe 1` and not with `new`" in pair.other_vectors("new")
    assert pair.list_ids_without_vector(TENANT) == ["c2"]

    pair.drop_vectors()
    assert recorded(qdrant) is None
    assert pair.list_ids_without_vector(TENANT) == ["c1", "c2"]
    pair.write_vectors([child(2)], model="new")
    assert pair.embedder() == "new"


def test_a_collection_without_vectors_takes_any_embedder(pair):
    pair.write_documents([child(1, embedding=None)], ALL)
    pair.write_vectors([child(1)], model="old")
    pair.delete_documents(["c1"])
    assert pair.other_vectors("new") is None
    pair.write_vectors([child(1)], model="new")
    assert pair.embedder() == "new"


def test_vectors_from_before_they_were_recorded_are_the_first_ones_that_is_named(pair, vectors, qdrant):
    pair.write_documents([child(1)], ALL)
    assert recorded(qdrant) is None
    assert vectors.set_up()[-1].endswith(
        "what made its vectors is not recorded; the next ingest records the embedder of the files"
    )
    assert pair.other_vectors() is None
    assert recorded(qdrant) is None, "a question records nothing"
    assert VectorWriter(FakeEmbedder("old", dimensions=2), document_store=pair).complete(TENANT)["warnings"] == []
    assert recorded(qdrant) == "old"
    assert "`old` and not with `new`" in pair.other_vectors("new")


def test_a_question_of_another_embedder_finds_no_vectors_and_is_told_so(vectors, qdrant, monkeypatch):
    # It is looked up once a minute, and none may end meanwhile.
    monkeypatch.setattr(qdrant_store, "time", SimpleNamespace(monotonic=lambda: 60.0))
    vectors.write_vectors([child(1)], model="old, recipe 1")

    def ask(model):
        retriever = QdrantEmbeddingRetriever(
            document_store=QdrantStore("children", embedding_dim=2, embedding_model=model)
        )
        qdrant.requests.clear()
        with Run().entered() as run:
            found = [retriever.run([1.0, 0.0], filters=TENANT)["documents"] for _ in range(2)]
        looked_up = len([r for r in qdrant.requests if (r.method, r.path) == ("GET", "/collections/children")])
        return [len(documents) for documents in found], run.warnings(), looked_up

    assert ask(None) == ([1, 1], [], 1)  # to see that the collection fits
    assert ask("old") == ([1, 1], [], 2)
    found, [warning], looked_up = ask("new")
    assert (found, looked_up) == ([0, 0], 2)
    assert warning == (
        f"The vectors in `children of Qdrant at {qdrant.url}` were made with `old, recipe 1` and not with `new`, so "
        "passages are found by their words alone until `shiguan ingest --resume` makes them anew."
    )


def test_an_upgrade_that_breaks_off_goes_on(pair, monkeypatch):
    pair.write_documents([child(number, embedding=None) for number in range(6)], ALL)
    VectorWriter(FakeEmbedder("old", dimensions=2), document_store=pair).complete(TENANT)
    monkeypatch.setattr("shiguan.stores.cluster.qdrant_store._DELETED", 2)
    client, deleted = pair.vectors.server.client(), []
    real = client.delete

    def delete(*arguments, **options):
        if len(deleted) == 2:
            raise KeyboardInterrupt
        deleted.append(real(*arguments, **options))

    monkeypatch.setattr(client, "delete", delete)
    writer = VectorWriter(FakeEmbedder("new", dimensions=2), document_store=pair)
    with pytest.raises(KeyboardInterrupt):
        writer.complete(TENANT, replace_others=True)
    monkeypatch.setattr(client, "delete", real)
    assert pair.vectors.count_documents() == 2
    assert "`old` and not with `new`" in pair.other_vectors("new"), "what is left is still the other's"
    assert writer.complete(TENANT, replace_others=True)["written"] == 6


def test_the_children_that_wait_are_listed_from_a_random_place_on(pair, monkeypatch):
    pair.write_documents([child(number, embedding=None) for number in range(10)], ALL)
    pair.write_vectors([child(4)], model="m")
    for start, order in (("c6", "789012356"), ("c4", "567890123"), ("b", "012356789"), ("d", "012356789")):
        monkeypatch.setattr("secrets.token_hex", lambda _, start=start: start)
        assert "".join(one[1:] for one in pair.iter_ids_without_vector(TENANT)) == order
    assert pair.count_without_vector(TENANT) == 9


def test_two_processes_that_embed_the_same_file_share_the_work(pair, monkeypatch):
    """The second begins while the first embeds its first slice, and is done with all before that one goes on."""
    monkeypatch.setattr(vector_writer, "_SLICE", 4)
    pair.write_documents([child(number, embedding=None) for number in range(40)], ALL)
    second = FakeEmbedder(dimensions=2)
    others = [VectorWriter(second, document_store=pair)]
    first = FakeEmbedder(dimensions=2, before=lambda: others and others.pop().complete(TENANT))
    result = VectorWriter(first, document_store=pair).complete(TENANT)
    assert (result["written"], len(first.embedded), len(second.embedded)) == (4, 4, 40)
    assert pair.list_ids_without_vector(TENANT) == []
