"""The deployment `elasticsearch_qdrant` on real servers, see README.md beside this file."""

import json
import os
import uuid

import pytest
from haystack import Document
from haystack.document_stores.types import DuplicatePolicy
from haystack.utils.filters import document_matches_filter

ADDRESSES = {
    name: os.environ.get(name)
    for name in (
        "SHIGUAN_ELASTICSEARCH_URL",
        "SHIGUAN_ELASTICSEARCH_API_KEY",
        "SHIGUAN_QDRANT_URL",
        "SHIGUAN_QDRANT_API_KEY",
    )
}
TENANT = {"field": "meta.tenant_id", "operator": "==", "value": "t"}

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        not (ADDRESSES["SHIGUAN_ELASTICSEARCH_URL"] and ADDRESSES["SHIGUAN_QDRANT_URL"]),
        reason="SHIGUAN_ELASTICSEARCH_URL and SHIGUAN_QDRANT_URL name no servers",
    ),
]


@pytest.fixture
def prefix(tmp_path, monkeypatch):
    """The deployment's files with small models and index names of their own, removed from both servers afterwards."""
    from tests.doubles.cluster import with_small_models

    from shiguan.engine import loading

    for name, value in ADDRESSES.items():
        if value:
            monkeypatch.setenv(name, value)
    with_small_models(tmp_path, monkeypatch)
    name = f"shiguan-test-{uuid.uuid4().hex[:8]}"
    for path in (tmp_path / "pipelines" / "elasticsearch_qdrant").glob("*.yml"):
        text = path.read_text(encoding="utf-8").replace("index: shiguan-", f"index: {name}-")
        path.write_text(text, encoding="utf-8")
    yield name
    stores = loading.load_stores("elasticsearch_qdrant")
    for store in (stores["parents"], stores["children"].words):
        part = store.generations()[0]
        with part._client() as client:
            for index in part.listed()[0]:
                client.indices.delete(index=index)
            client.options(ignore_status=404).indices.delete_index_template(name=store.index)
    part = stores["children"].vectors.generations()[0]
    with part._client() as client:
        for collection in part.listed()[0]:
            client.delete_collection(collection)


@pytest.fixture
def stores(prefix):
    from shiguan.engine.loading import load_stores

    found = load_stores("elasticsearch_qdrant")
    for store in found.values():
        store.set_up()
    yield found
    for store in found.values():
        store.close()


def child(name, content, **meta):
    meta = {"tenant_id": "t", "title": "", "parent_id": "p", **meta}
    return Document(id=name, content=content, meta=meta, embedding=[1.0] + [0.0] * 383)


def test_init_twice_and_status_without_problems(prefix, capsys):
    from shiguan.cli import main

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
    from shiguan.stores.cluster.elasticsearch_bm25_retriever import ElasticsearchBM25Retriever

    stores["children"].write_documents(
        [
            child("possession", "这是他的书吗"),
            child("capital", "天子在長安"),
            child("tax", "The court taxed salt"),
            child("year", "It happened in 2024"),
            child("other-year", "It happened in 2023"),
            child("sum", "They paid 12,000 coins"),
            child("titled", "Nothing of note", title="The Annals"),
        ],
        policy=DuplicatePolicy.OVERWRITE,
    )
    found = ElasticsearchBM25Retriever(stores["children"].words).run(query, filters=TENANT)["documents"]
    assert found[0].id == expected
    assert "other-year" not in {document.id for document in found}


@pytest.mark.parametrize(
    "condition",
    [
        {"field": "meta.language", "operator": "!=", "value": "zh"},
        {"field": "meta.language", "operator": "not in", "value": ["zh", "en"]},
        {"field": "meta.position", "operator": ">=", "value": 2},
        {
            "operator": "NOT",
            "conditions": [
                {"field": "meta.language", "operator": "==", "value": "zh"},
                {"field": "meta.position", "operator": "==", "value": 1},
            ],
        },
        {"operator": "OR", "conditions": [TENANT, {"field": "meta.position", "operator": "<", "value": 2}]},
    ],
)
def test_filters_mean_the_same_on_both_servers(stores, condition):
    from shiguan.stores.cluster.qdrant_embedding_retriever import QdrantEmbeddingRetriever

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


def test_the_whole_path_from_a_file_to_an_answer(stores, tmp_path):
    from shiguan.engine.library import Library
    from shiguan.engine.runner import Runner

    path = tmp_path / "rows.jsonl"
    rows = [
        {"id": "salt", "title": "Salt", "text": "Liu Yan taxed salt in the year 760. The tax paid for the war."},
        {"id": "silk", "title": "Silk", "text": "Silk was carried to the west on camels."},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
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
    assert library.delete("rows.jsonl", tenant_id="t") == 2
    assert (library.count(tenant_id="t"), library.count(tenant_id="other")) == (0, 2)
