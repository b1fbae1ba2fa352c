import json
import math
from dataclasses import replace

import pytest
from haystack.dataclasses import Document
from qdrant_edge import CountRequest

from shiguan.errors import StoreFormatError
from shiguan.stores.embedded import reading, shards
from shiguan.stores.embedded.qdrant_edge_document_store import QdrantEdgeDocumentStore
from shiguan.stores.embedded.qdrant_edge_embedding_retriever import QdrantEdgeEmbeddingRetriever
from shiguan.stores.embedded.shards import close_all_shards
from shiguan.tenants import of_tenant as tenant
from shiguan.tenants import where


def make(path, **parameters):
    return QdrantEdgeDocumentStore(path=str(path), **{"embedding_dim": 2, **parameters}).unscoped()


def child(name, tenant="t", file="file-1", **rest):
    return Document(id=name, content=f"army {name}", meta={"tenant_id": tenant, "file_id": file}, **rest)


def embedded(name, vector):
    return Document(id=name, embedding=vector)


@pytest.fixture
def store(tmp_path):
    store = make(tmp_path)
    store.write_documents([child("b"), child("a"), child("c", file="file-2"), child("d", tenant="u", file="file-3")])
    yield store
    close_all_shards()


def found_by_vector(store, **options):
    return [hit.id for hit in store.embedding_retrieval([1.0, 0.0], **options)]


def test_what_lacks_a_vector_is_told_by_the_store_in_the_order_of_writing(store):
    assert store.list_ids_without_vector(tenant("t")) == ["b", "a", "c"]
    assert store.write_vectors([embedded("a", [0.0, 1.0])], model="m") == 1
    assert store.list_ids_without_vector(tenant("t")) == ["b", "c"]
    assert store.list_ids_without_vector() == ["b", "c", "d"]
    close_all_shards()
    assert store.list_ids_without_vector(tenant("t")) == ["b", "c"]


def test_a_vector_leaves_words_content_and_meta_as_they_were(store):
    [before] = store.filter_documents(where("id", "==", "a"))
    store.write_vectors([embedded("a", [3.0, 4.0])], model="m")
    [after] = store.filter_documents(where("id", "==", "a"))
    assert replace(after, embedding=None) == before
    assert after.embedding == pytest.approx([0.6, 0.8])
    assert "a" in {hit.id for hit in store.bm25_retrieval("army")}
    assert store.embedding_retrieval([0.6, 0.8], top_k=1)[0].score == pytest.approx(1)


def test_a_document_that_is_gone_gets_no_vector(store):
    store.delete_documents(["a"])
    assert store.write_vectors([embedded("a", [0.0, 1.0]), embedded("b", [1.0, 0.0])], model="m") == 1
    assert store.count_documents() == 3
    assert found_by_vector(store) == ["b"]


@pytest.mark.parametrize("vector", [None, [1.0], [1.0, math.nan]])
def test_a_vector_that_does_not_fit_is_refused_by_name_and_none_is_written(store, vector):
    with pytest.raises(ValueError, match="`a`"):
        store.write_vectors([embedded("b", [1.0, 0.0]), embedded("a", vector)], model="m")
    assert len(store.list_ids_without_vector()) == 4


def test_files_are_counted_with_their_vectors(store):
    store.write_vectors([embedded("a", [0.0, 1.0]), embedded("d", [0.0, 1.0])], model="m")
    assert store.count_by_file(tenant("t")) == {"file-1": (2, 1), "file-2": (1, 0)}
    assert store.count_by_file() == {"file-1": (2, 1), "file-2": (1, 0), "file-3": (1, 1)}
    assert store.count_by_file(tenant("nobody")) == {}


def test_a_search_says_how_many_of_its_own_tenants_units_have_no_vector(store):
    retriever = QdrantEdgeEmbeddingRetriever(store)

    def warnings(name):
        return retriever.run([1.0, 0.0], tenant(name))["warnings"]

    (warning,) = warnings("t")
    assert warning.startswith("3 of 3 retrieval units have no vector yet")
    assert "shiguan ingest --resume" in warning
    store.write_vectors([embedded(name, [1.0, 0.0]) for name in "ab"], model="m")
    assert warnings("t")[0].startswith("1 of 3 ")
    store.write_vectors([embedded("c", [1.0, 0.0])], model="m")
    assert warnings("t") == []
    assert warnings("u")[0].startswith("1 of 1 ")
    store.delete_documents(["d"])
    assert warnings("u") == []


def test_the_nearest_child_says_whether_every_passage_has_its_vector(store):
    retriever = QdrantEdgeEmbeddingRetriever(store, scale_score=True)

    def marked():
        return [hit.meta.get("all_embedded") for hit in retriever.run([1.0, 0.0], tenant("t"))["documents"]]

    store.write_vectors([embedded(name, [1.0, at]) for at, name in enumerate("ab")], model="m")
    assert marked() == [None, None]
    store.write_vectors([embedded("c", [1.0, 2.0])], model="m")
    assert marked() == [True, None, None]


def test_questions_between_two_writes_count_once(store, monkeypatch):
    counted = []

    def count_request(**options):
        counted.append(options)
        return CountRequest(**options)

    monkeypatch.setattr("shiguan.stores.embedded.qdrant_edge_document_store.CountRequest", count_request)
    for _ in range(3):
        store.vector_warnings(tenant("t"))
    assert len(counted) == 3, "all without a vector, the tenant's without one, the tenant's"


def test_vectors_of_two_embedders_never_stand_together(store):
    store.write_vectors([embedded("a", [0.0, 1.0])], model="old")
    with pytest.raises(StoreFormatError, match=r"`old` and not with `new`.*shiguan ingest --resume"):
        store.write_vectors([embedded("b", [0.0, 1.0])], model="new")
    assert store.list_ids_without_vector() == ["b", "c", "d"]
    with pytest.raises(StoreFormatError):
        make(store.path, embedding_model="new").write_documents([child("e", embedding=[1.0, 0.0])])
    store.drop_vectors()
    assert found_by_vector(store) == []
    assert len(store.list_ids_without_vector()) == 4
    store.write_vectors([embedded("b", [1.0, 0.0])], model="new")
    close_all_shards()
    assert store.other_vectors("new") is None
    assert "`new` and not with `old`" in store.other_vectors("old")
    assert len(store.bm25_retrieval("army")) == 4


def test_a_library_of_an_earlier_embedder_is_found_by_its_words_and_says_so(tmp_path):
    # As they were written before the format knew the embedder: vectors with their documents, no name.
    old = make(tmp_path)
    old.write_documents([child("a", embedding=[0.6, 0.8]), child("b", embedding=[0.1234567890123, 0.5])])
    close_all_shards()
    record = json.loads((tmp_path / "children" / "shiguan.json").read_text())
    assert record["format"]["embedding_model"] is None

    store = make(tmp_path, embedding_model="new")
    assert len(store.bm25_retrieval("army")) == 2
    result = QdrantEdgeEmbeddingRetriever(store).run([0.6, 0.8], tenant("t"))
    assert result["documents"] == []
    (warning,) = result["warnings"]
    assert "an earlier embedder and not with `new`" in warning
    assert warning.count(".") - warning.count(str(tmp_path)) * str(tmp_path).count(".") == 1, "one sentence"
    with pytest.raises(StoreFormatError, match="an earlier embedder"):
        store.write_vectors([embedded("a", [1.0, 0.0])], model="new")
    # Who uses it as it was made is asked nothing.
    assert found_by_vector(old) == ["a", "b"]
    close_all_shards()


def test_a_file_names_the_model_and_the_store_how_it_was_made(store):
    store.write_vectors([embedded("a", [1.0, 0.0])], model="maker/model, 4 bit, recipe 2")
    assert make(store.path, embedding_model="maker/model").vector_warnings(None)[0].startswith("3 of 4 ")
    assert make(store.path, embedding_model="maker/mod").other_vectors() is not None
    assert store.other_vectors("maker/model, 4 bit, recipe 3") is not None


def test_an_index_is_built_for_vectors_and_not_for_words(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "EXACT_BELOW", 50)
    store = make(tmp_path)
    names = [f"{number:03}" for number in range(120)]
    store.write_documents([child(name) for name in names])
    shard = shards._open_shards[store.folder]
    assert shard._record.get("written_since", 0) == 0
    store.write_vectors([embedded(name, [math.cos(int(name)), math.sin(int(name))]) for name in names], model="m")
    assert shard._record["quantized_points"] == 120
    assert store.list_ids_without_vector() == []
    assert len(store.bm25_retrieval("army", top_k=200)) == 120
    store.drop_vectors()
    assert len(store.list_ids_without_vector()) == 120
    close_all_shards()


def test_files_are_told_of_without_reading_all_of_them(monkeypatch, tmp_path):
    """A book of 40 passages, a tenth of it quoted in Chinese, and 40 records in one file; another tenant's is none of ours."""
    store = make(tmp_path)
    book = {"tenant_id": "t", "file_id": "b", "source": "b.epub", "source_id": "b", "title": "B", "units": 7}
    rows = {"tenant_id": "t", "file_id": "r", "source": "r.jsonl", "units": 40}
    languages = ["en"] * 30 + ["zh"] * 10
    documents = [
        Document(id=f"b{n}", content="x", meta={**book, "language": "zh" if n % 10 == 0 else "en"}) for n in range(40)
    ]
    documents += [
        Document(id=f"r{n}", content="x", meta={**rows, "source_id": f"r{n}", "title": f"{n}", "language": language})
        for n, language in enumerate(languages)
    ]
    documents.append(Document(id="o", content="x", meta={**book, "tenant_id": "u", "file_id": "o"}))
    store.write_documents(documents)
    monkeypatch.setattr(reading, "pages", None)
    files = sorted(store.list_files(tenant("t")), key=lambda file: file["file_id"])
    wanted = ("source", "passages", "records", "languages", "units")
    assert [tuple(file[name] for name in wanted) for file in files] == [
        ("b.epub", 40, 1, {"en": 36, "zh": 4}, 7),
        ("r.jsonl", 40, 40, {"en": 30, "zh": 10}, 40),
    ]
    monkeypatch.undo()
    few = store.list_files(tenant("u"))
    assert [(file["passages"], file["records"], dict(file["languages"])) for file in few] == [(1, 1, {"und": 1})]
    store.delete_by_filter(tenant("t"))
    assert store.list_files(tenant("t")) == []
    store.close()
