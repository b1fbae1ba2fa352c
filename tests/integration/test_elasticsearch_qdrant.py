"""The deployment `elasticsearch_qdrant` on real servers, see README.md beside this file."""

import itertools
import os
import uuid
from contextlib import closing
from dataclasses import replace

import pytest
from haystack import Document
from haystack.document_stores.types import DuplicatePolicy
from haystack.utils.filters import document_matches_filter
from haystack_integrations.components.retrievers.elasticsearch import ElasticsearchBM25Retriever
from haystack_integrations.components.retrievers.qdrant import QdrantEmbeddingRetriever
from tests.doubles.cluster import with_names_of_their_own, with_small_models

from shiguan.cli import main
from shiguan.conversations import Turn
from shiguan.engine.library import Library
from shiguan.engine.loading import load_stores
from shiguan.engine.runner import Runner
from shiguan.errors import StoreError, StoreFormatError
from shiguan.evaluation.json_lines import write_json_lines
from shiguan.tenants import where

SERVERS = ("ELASTICSEARCH", "QDRANT")
ADDRESSES = {name: os.environ.get(name) for one in SERVERS for name in (f"SHIGUAN_{one}_URL", f"SHIGUAN_{one}_API_KEY")}
TENANT = {"field": "meta.tenant_id", "operator": "==", "value": "t"}

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        not all(ADDRESSES[f"SHIGUAN_{one}_URL"] for one in SERVERS),
        reason="SHIGUAN_ELASTICSEARCH_URL and SHIGUAN_QDRANT_URL name no servers",
    ),
]


@pytest.fixture
def prefix(tmp_path, monkeypatch):
    """The deployment's files with small models and names of their own, which are removed from both servers afterwards."""
    for name, value in ADDRESSES.items():
        if value:
            monkeypatch.setenv(name, value)
    with_small_models(tmp_path, monkeypatch)
    name = f"shiguan-test-{uuid.uuid4().hex[:8]}"
    with_names_of_their_own(tmp_path, name)
    yield name
    stores = load_stores("elasticsearch_qdrant", conversations=True)
    for store in (stores["parents"], stores["children"].words, stores["conversations"]):
        assert store.index.startswith(name)
        with closing(store.server.open()) as client:
            client.indices.delete(index=store.index, ignore_unavailable=True)
    vectors = stores["children"].vectors
    assert vectors.index.startswith(name)
    with closing(vectors.server.open()) as client:
        client.delete_collection(vectors.index)


@pytest.fixture
def stores(prefix):
    found = load_stores("elasticsearch_qdrant", conversations=True)
    for store in found.values():
        store.set_up()
    yield found
    for store in found.values():
        store.close()


def child(name, content, **meta):
    meta = {"tenant_id": "t", "title": "", "parent_id": "p", **meta}
    return Document(id=name, content=content, meta=meta, embedding=[1.0] + [0.0] * 383)


def test_init_twice_and_status_without_problems(prefix, capsys):
    assert main(["stores", "init"]) == 0
    assert main(["stores", "init"]) == 0
    assert main(["stores", "status"]) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("书", "possession"),  # a single character inside a run
        ("他的書", "possession"),  # traditional finds simplified
        ("长安", "capital"),  # simplified finds traditional
        ("taxing", "tax"),  # a stem
        ("2024", "year"),  # and not 2023
        ("12000", "sum"),  # a number with a separator
        ("annals", "titled"),  # a word of the title alone
    ],
)
def test_words_are_found_as_the_analysis_promises(stores, query, expected):
    texts = {
        "possession": "这是他的书吗", "capital": "天子在長安", "tax": "The court taxed salt", "year": "It happened in 2024",
        "other-year": "It happened in 2023", "sum": "They paid 12,000 coins",
    }  # fmt: skip
    written = [*itertools.starmap(child, texts.items()), child("titled", "Nothing of note", title="The Annals")]
    stores["children"].write_documents(written, policy=DuplicatePolicy.OVERWRITE)
    found = ElasticsearchBM25Retriever(document_store=stores["children"].words).run(query, filters=TENANT)["documents"]
    assert found[0].id == expected
    assert "other-year" not in {document.id for document in found}


@pytest.mark.parametrize("condition", [
    where("meta.language", "!=", "zh"), where("meta.language", "not in", ["zh", "en"]),
    where("meta.position", ">=", 2),
    {"operator": "NOT", "conditions": [where("meta.language", "==", "zh"), where("meta.position", "==", 1)]},
    {"operator": "OR", "conditions": [TENANT, where("meta.position", "<", 2)]},
])  # fmt: skip
def test_filters_mean_the_same_on_both_servers(stores, condition):
    documents = [
        child(f"{language}-{position}-{tenant}", "text", tenant_id=tenant, position=position, **language_meta)
        for language, language_meta in (("none", {}), ("zh", {"language": "zh"}), ("fr", {"language": "fr"}))
        for position in (1, 2)
        for tenant in ("t", "u")
    ]
    stores["children"].write_documents(documents, policy=DuplicatePolicy.OVERWRITE)
    whole = {"operator": "AND", "conditions": [TENANT, condition]}
    expected = {document.id for document in documents if document_matches_filter(whole, document)}
    assert set(stores["children"].words.list_ids(whole)) == expected
    assert set(stores["children"].vectors.list_ids(whole)) == expected
    found = QdrantEmbeddingRetriever(stores["children"].vectors, top_k=50).run([1.0] + [0.0] * 383, filters=whole)
    assert {document.id for document in found["documents"]} == expected


def test_more_children_than_a_page_are_listed_counted_and_deleted(stores):
    pair = stores["children"]
    pair.write_documents(
        [child(f"c{number:05d}", f"text {number}", file_id="ab" * 16) for number in range(10_001)],
        policy=DuplicatePolicy.OVERWRITE,
    )
    assert len(pair.list_ids(TENANT)) == 10_001
    assert pair.count_by_file(TENANT) == {"ab" * 16: (10_001, 10_001)}
    assert pair.list_ids_without_vector(TENANT) == []
    assert pair.delete_by_filter(TENANT) == 10_001
    assert pair.list_ids(TENANT) == []


def test_the_collection_records_its_embedder(stores):
    pair = stores["children"]
    pair.write_documents(
        [replace(child(name, "text"), embedding=None) for name in ("c1", "c2")], DuplicatePolicy.OVERWRITE
    )
    pair.write_vectors([child("c1", "text")], model="old")
    assert (pair.embedder(), pair.list_ids_without_vector(TENANT)) == ("old", ["c2"])
    with pytest.raises(StoreFormatError, match="`old` and not with `new`"):
        pair.write_vectors([child("c2", "text")], model="new")
    assert list(pair.read_vectors(TENANT)) == ["c1"]
    pair.drop_vectors()
    assert (pair.embedder(), pair.list_ids_without_vector(TENANT)) == (None, ["c1", "c2"])
    assert pair.write_vectors([child("c2", "text")], model="new") == 1
    assert pair.embedder() == "new"


def test_an_index_that_refuses_writes_is_reported(stores):
    words = stores["children"].words
    with closing(words.server.open()) as client:
        client.indices.put_settings(index=words.index, settings={"index.blocks.write": True})
    with pytest.raises(StoreError, match=r"refused to write 1 of 1 passages.*cluster_block_exception"):
        words.write_documents([child("c", "text")], policy=DuplicatePolicy.OVERWRITE)


def test_conversations_are_kept_for_their_tenant_and_deleted(stores):
    talks = stores["conversations"]
    for number in range(3):
        assert talks.append("t", "c", Turn(f"question {number}", "answer")) == number + 1
    assert [turn.question for turn in talks.turns("t", "c", last=2)] == ["question 1", "question 2"]
    assert talks.turns("u", "c") == []
    assert [(one.id, one.turns) for one in talks.conversations("t")] == [("c", 3)]
    assert talks.delete("t", "c")
    assert (talks.turns("t", "c"), talks.conversations("t")) == ([], [])


def test_the_whole_path_from_a_file_to_an_answer(stores, tmp_path):
    path = tmp_path / "rows.jsonl"
    rows = [
        {"id": "salt", "title": "Salt", "text": "Liu Yan taxed salt in the year 760. The tax paid for the war."},
        {"id": "silk", "title": "Silk", "text": "Silk was carried to the west on camels."},
    ]
    write_json_lines(path, rows)
    library = Library("elasticsearch_qdrant")
    for tenant in ("t", "other"):
        [result] = library.ingest([path], tenant_id=tenant)
        assert (result.sources, result.skipped) == (2, [])
    [again] = library.ingest([path], tenant_id="t")
    assert (again.new, again.removed) == (0, 0)
    for mode in ("simple", "advanced", "precise"):
        with Runner("elasticsearch_qdrant", mode) as runner:
            answer = runner.ask("Who taxed salt?", tenant_id="t")
        assert "Liu Yan" in answer["answer"]
        assert answer["documents"][0]["record_id"] == "salt"
    assert main(["stores", "status"]) == 0
    assert library.delete("rows.jsonl", tenant_id="t") == 2
    assert (library.count(tenant_id="t"), library.count(tenant_id="other")) == (0, 2)
