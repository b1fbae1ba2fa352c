"""A hundred thousand questions, each with filters that try to reach another tenant's documents: none does."""

import math
import random
from contextlib import suppress

import pytest
from haystack import Document
from haystack.errors import FilterError
from haystack.utils.filters import document_matches_filter

from shiguan.engine.loading import load_stores
from shiguan.errors import RefusedError
from shiguan.retrieval.parent_document_fetcher import ParentDocumentFetcher
from shiguan.retrieval.tenant_filter import TenantFilter
from shiguan.stores.embedded.qdrant_edge_bm25_retriever import QdrantEdgeBM25Retriever
from shiguan.stores.embedded.qdrant_edge_document_store import QdrantEdgeDocumentStore
from shiguan.stores.embedded.qdrant_edge_embedding_retriever import QdrantEdgeEmbeddingRetriever

CASES = 100_000
TENANTS = ["ours", "theirs", "Ours", "", " ours", "ours ", "ours' OR '1'='1", "书"]
ASKING = [tenant for tenant in TENANTS if tenant.strip()]
TEXTS = ["Guo Ziyi took the capital back.", "An Lushan rebelled in 755.", "郭子儀收復兩京。"]
QUESTIONS = ["Guo Ziyi capital", "郭子儀", "An Lushan 755", "ours theirs tenant"]
DIM = 384
FIELDS = ["meta.tenant_id", "tenant_id", "meta.title", "meta.position", "meta.absent", "meta.a.b", "id", "content",
          "meta.parent_id", "absent", "meta"]  # fmt: skip
OPERATORS = ["==", "!=", ">", ">=", "<", "<=", "in", "not in"]
VALUES = [*TENANTS, None, 0, 1, 2, 1.5, True, False, math.nan, math.inf, [], ["theirs"], {"a": 1}, "2020-01-01", "Annals",
          *(f"{tenant}-parent-0" for tenant in TENANTS)]  # fmt: skip
MALFORMED = ["theirs", 7, ["theirs"], {"operator": "AND"}, {"operator": "XOR", "conditions": []}, {"conditions": []},
             {"field": "meta.tenant_id"}, {"field": "meta.tenant_id", "operator": "==", "conditions": []},
             {"operator": "OR", "conditions": "theirs"}, {"operator": "NOT", "conditions": [None]},
             {"field": "meta.tenant_id", "operator": "in", "value": "theirs"}, {"meta.tenant_id": "theirs"}]  # fmt: skip


def condition(chance, depth=0):
    """One random filter: often about the tenant itself, three levels deep at most."""
    if depth < 3 and chance.random() < 0.55:
        parts = [condition(chance, depth + 1) for _ in range(chance.choice([0, 1, 1, 2, 2, 3]))]
        return {"operator": chance.choice(["AND", "OR", "OR", "NOT", "NOT"]), "conditions": parts}
    field = "meta.tenant_id" if chance.random() < 0.4 else chance.choice(FIELDS)
    operator = chance.choice(OPERATORS)
    if operator in ("in", "not in"):
        return {"field": field, "operator": operator, "value": chance.sample(VALUES, chance.randint(0, 3))}
    return {"field": field, "operator": operator, "value": chance.choice(VALUES)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tenants")


@pytest.fixture(scope="module")
def stores(folder):
    """The same texts of every tenant, and of nobody."""
    stores = load_stores("embedded", data_dir=folder)
    chance = random.Random(1)
    for owner in [*TENANTS, None]:
        parents, children = [], []
        for number, text in enumerate(TEXTS):
            meta = {"source_id": f"{owner}-s", "title": "Annals", "position": number}
            if owner is not None:
                meta["tenant_id"] = owner
            parents.append(Document(id=f"{owner}-parent-{number}", content=text, meta=meta))
            children.append(
                Document(
                    id=f"{owner}-child-{number}",
                    content=text,
                    meta={**meta, "parent_id": parents[-1].id, "start": 0, "end": len(text)},
                    embedding=[chance.gauss(0, 1) for _ in range(DIM)],
                )
            )
        stores["parents"].write_documents(parents)
        stores["children"].write_documents(children)
    return stores


@pytest.fixture(scope="module")
def everything(stores):
    return {name: store.unscoped().filter_documents() for name, store in stores.items()}


def searches(stores):
    """Each way to a document, as a function of the filters that hold the tenant."""
    bm25 = QdrantEdgeBM25Retriever(stores["children"])
    embedding = QdrantEdgeEmbeddingRetriever(stores["children"])
    fetcher = ParentDocumentFetcher(stores["parents"])
    vector = [1.0] + [0.0] * (DIM - 1)

    def fetch(filters, chance, tenant):
        # Children that lie about whose they are and which parent they have.
        lies = [
            Document(
                content="x",
                meta={"parent_id": f"{owner}-parent-{chance.randrange(3)}", "tenant_id": chance.choice([owner, tenant]), "start": 0, "end": 1},
            )
            for owner in chance.sample(TENANTS, 3)
        ]  # fmt: skip
        return fetcher.run(documents=lies, filters=filters)["documents"]

    return [
        (16, lambda filters, chance, tenant: stores["children"].filter_documents(filters)),
        (1, lambda filters, chance, tenant: bm25.run(query=chance.choice(QUESTIONS), filters=filters)["documents"]),
        (1, lambda filters, chance, tenant: embedding.run(query_embedding=vector, filters=filters)["documents"]),
        (2, fetch),
    ]


@pytest.mark.slow
def test_no_search_under_any_filter_finds_another_tenants_document(stores):
    chance = random.Random(20260)
    ways = searches(stores)
    weights = [weight for weight, _ in ways]
    found = leaked = refused = malformed = 0
    for _ in range(CASES):
        tenant = chance.choice(ASKING)
        if chance.random() < 0.02:
            malformed += 1
            with pytest.raises(RefusedError):
                TenantFilter().run(tenant_id=tenant, filters=chance.choice(MALFORMED))
            continue
        ((_, search),) = chance.choices(ways, weights)
        try:
            filters = TenantFilter().run(tenant_id=tenant, filters=condition(chance))["filters"]
            documents = search(filters, chance, tenant)
        except (FilterError, RefusedError):
            refused += 1  # compared with something that cannot be compared
            continue
        found += len(documents)
        leaked += sum(document.meta.get("tenant_id") != tenant for document in documents)
    assert leaked == 0
    # The cases are worth something: many find what is their own, some are refused.
    assert found > CASES / 4
    assert refused > CASES / 100
    assert malformed > CASES / 100


@pytest.mark.parametrize("name", ["children", "parents"])
def test_filters_with_a_tenant_mean_what_they_mean_to_haystack(stores, everything, name):
    chance = random.Random(755)
    compared = 0
    for _ in range(1_000):
        with suppress(FilterError, RefusedError, TypeError, AttributeError):
            filters = TenantFilter().run(tenant_id=chance.choice(ASKING), filters=condition(chance))["filters"]
            meant = without_truth_as_number(filters)
            expected = [one.id for one in everything[name] if document_matches_filter(meant, one)]
            assert sorted(stores[name].list_ids(filters)) == sorted(expected), filters
            compared += 1
    assert compared > 300


def without_truth_as_number(filters):
    """Say the same to Haystack, which takes true for 1 as Python does; in the store true and false equal no number."""
    if "conditions" in filters:
        return {**filters, "conditions": [without_truth_as_number(one) for one in filters["conditions"]]}
    value = filters["value"]
    if filters["operator"] in ("in", "not in"):
        return {**filters, "value": [str(one) if isinstance(one, bool) else one for one in value]}
    return {
        **filters,
        "value": str(value) if isinstance(value, bool) and filters["operator"] in ("==", "!=") else value,
    }


def test_a_score_by_words_tells_nothing_of_another_tenants_documents(tmp_path):
    """How rare a word is would: a competitor's name in many of their documents would lower the asker's scores."""
    store = QdrantEdgeDocumentStore(name="children", path=str(tmp_path), embedding_dim=2)
    mine = [Document(id=f"a{n}", content=text, meta={"tenant_id": "a"}) for n, text in enumerate(("salt", "iron"))]
    store.write_documents(mine)
    asking = {"field": "meta.tenant_id", "operator": "==", "value": "a"}
    alone = [(found.id, found.score) for found in store.bm25_retrieval("salt iron", asking)]
    # ln(1 + (2 - 1 + .5) / (1 + .5)) = ln 2, for each of two documents of the same length.
    assert alone[0][1] == alone[1][1]
    theirs = [Document(id=f"b{n}", content="salt", meta={"tenant_id": "b"}) for n in range(50)]
    store.write_documents(theirs)
    assert [(found.id, found.score) for found in store.bm25_retrieval("salt iron", asking)] == alone
    store.unscoped().delete_documents(["a1"])
    left = store.bm25_retrieval("salt iron", {"operator": "AND", "conditions": [asking]})
    # N = 1, n = 1: ln(1 + .5 / 1.5) where it was ln 2.
    assert left[0].score / alone[0][1] == pytest.approx(math.log(4 / 3) / math.log(2), rel=1e-4)
    store.close()
