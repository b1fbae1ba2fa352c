"""Haystack's own retrievers on the stores of this deployment: loaded from YAML, exact, filtered, and never unscoped."""

import pytest
from tests.components.stores.cluster.conftest import ALL, TENANT, child
from tests.doubles.cluster import with_small_models
from tests.doubles.started import Started

from shiguan.checking.pipeline_check import check_pipeline
from shiguan.engine.loading import pipeline_path
from shiguan.errors import RefusedError
from shiguan.stores.cluster.elasticsearch_bm25_retriever import ElasticsearchBM25Retriever
from shiguan.stores.cluster.elasticsearch_store import ElasticsearchStore
from shiguan.stores.cluster.qdrant_embedding_retriever import QdrantEmbeddingRetriever
from shiguan.stores.cluster.qdrant_store import QdrantStore

NAMED_BEFORE = {
    "ElasticsearchBM25Retriever": "haystack_integrations.components.retrievers.elasticsearch.bm25_retriever.ElasticsearchBM25Retriever",
    "QdrantEmbeddingRetriever": "haystack_integrations.components.retrievers.qdrant.retriever.QdrantEmbeddingRetriever",
}


@pytest.fixture
def words(elasticsearch):
    store = ElasticsearchStore("children")
    store.set_up()
    store.write_documents([child(1), child(2, "b"), child(3, content="in 2023")], policy=ALL)
    yield store
    store.close()


@pytest.fixture
def vectors(qdrant):
    store = QdrantStore("children", embedding_dim=2)
    store.set_up()
    store.write_documents([child(1), child(2, "b"), child(3, embedding=(0, 1))], policy=ALL)
    yield store
    store.close()


def ids(result):
    return [document.id for document in result["documents"]]


@pytest.mark.parametrize("modes", [["advanced"], pytest.param(["simple", "precise"], marks=pytest.mark.slow)], ids=str)
def test_plain_haystack_loads_the_deployments_files(tmp_path, monkeypatch, modes):
    """Each one first, in a process that has imported nothing of this project."""
    with_small_models(tmp_path, monkeypatch)
    code = """
import os, sys, haystack
from haystack import Pipeline
for path in sys.argv[1:]:
    child = os.fork()
    if not child:
        text = open(path, encoding="utf-8").read()
        Pipeline.loads(text)
        getattr(haystack, "AsyncPipeline", Pipeline).loads(text)
        os._exit(0)
    print(path, os.waitpid(child, 0)[1])
"""
    paths = [pipeline_path("elasticsearch_qdrant", mode) for mode in modes]
    ran = Started("-c", code, *paths, fresh=True).finished()
    assert ran.stdout.split() == [part for path in paths for part in (str(path), "0")], ran.stderr


@pytest.mark.parametrize("name", ["elasticsearch_bm25_retriever.ElasticsearchBM25Retriever", "qdrant_embedding_retriever.QdrantEmbeddingRetriever"])  # fmt: skip
def test_a_file_that_names_haystacks_own_class_is_refused_with_the_line_to_write(name, tmp_path):
    text = pipeline_path("elasticsearch_qdrant", "simple").read_text(encoding="utf-8")
    ours, theirs = f"shiguan.stores.cluster.{name}", NAMED_BEFORE[name.rpartition(".")[2]]
    (tmp_path / "mine.yml").write_text(text.replace(ours, theirs), encoding="utf-8")
    findings = check_pipeline(tmp_path / "mine.yml", "mine.yml").findings
    assert findings
    assert all(f"`{theirs}` is not allowed" in str(one) and f"write `type: {ours}`" in str(one) for one in findings)


async def test_both_find_the_tenants_children_alone_synchronous_or_not(words, vectors):
    by_words = ElasticsearchBM25Retriever(document_store=words)
    by_vectors = QdrantEmbeddingRetriever(vectors)
    assert ids(by_words.run("salt", filters=TENANT)) == ids(await by_words.run_async("salt", filters=TENANT)) == ["c1"]
    found = by_vectors.run([1.0, 0.0], filters=TENANT)
    assert ids(found) == ids(await by_vectors.run_async([1.0, 0.0], filters=TENANT)) == ["c1", "c3"]
    assert [document.score for document in found["documents"]] == [1.0, 0.0]


@pytest.fixture
def searches(words, vectors, elasticsearch, qdrant):
    """Both retrievers with a question, made with more options; the servers have been asked nothing yet."""
    elasticsearch.requests.clear()
    qdrant.requests.clear()
    return [
        ("salt", lambda **more: ElasticsearchBM25Retriever(document_store=words, **more)),
        ([1.0, 0.0], lambda **more: QdrantEmbeddingRetriever(vectors, **more)),
    ]


async def test_without_a_tenant_nothing_is_searched(searches, elasticsearch, qdrant):
    other = {"field": "meta.language", "operator": "==", "value": "en"}
    for filters in (None, {}, other, {"operator": "OR", "conditions": [TENANT, other]}):
        for question, made in searches:
            with pytest.raises(RefusedError, match="without a tenant"):
                made().run(question, filters=filters)
            with pytest.raises(RefusedError, match="without a tenant"):
                await made().run_async(question, filters=filters)
    assert elasticsearch.requests == qdrant.requests == []


@pytest.mark.parametrize(
    ("search", "options"),
    [
        ("_embedding_retrieval", {}),
        ("_query_sql", {}),
        ("_hybrid_retrieval_inference_async", {"inference_id": "x"}),
    ],
)
def test_what_other_retrievers_of_haystack_call_is_guarded_too(words, search, options):
    with pytest.raises(RefusedError, match="without a tenant"):
        getattr(words, search)("salt", **options)


def test_filters_that_the_servers_would_read_differently_and_no_children_are_refused(searches):
    odd = {"operator": "AND", "conditions": [TENANT, {"field": "meta.colour", "operator": "!=", "value": "red"}]}
    for question, made in searches:
        with pytest.raises(RefusedError, match=r"cannot filter by `meta\.colour`"):
            made().run(question, filters=odd)
        with pytest.raises(ValueError, match="`top_k` must be positive, got -1"):
            made(top_k=-1).run(question, filters=TENANT)


def test_nothing_to_search_by_finds_nothing(searches, elasticsearch, qdrant):
    (_, by_words), (_, by_vectors) = searches
    for retriever, nothing in ((by_words(), ""), (by_words(), " \n"), (by_vectors(), [])):
        assert ids(retriever.run(nothing, filters=TENANT)) == []
    assert elasticsearch.requests == qdrant.requests == []


def test_scores_are_scaled_where_a_file_says_so(words, vectors):
    def scores(question, retriever):
        return [document.score for document in retriever.run(question, filters=TENANT)["documents"]]

    [plain] = scores("salt", ElasticsearchBM25Retriever(document_store=words))
    [scaled] = scores("salt", ElasticsearchBM25Retriever(document_store=words, scale_score=True))
    assert 0 < plain != scaled
    assert 0.5 < scaled < 1
    assert scores([1.0, 0.0], QdrantEmbeddingRetriever(vectors, scale_score=True)) == [1.0, 0.5]
