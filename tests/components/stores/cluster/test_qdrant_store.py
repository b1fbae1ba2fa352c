"""The Qdrant store against a real client and recorded requests."""

import pytest
from haystack_integrations.components.retrievers.qdrant import QdrantEmbeddingRetriever
from tests.components.stores.cluster.conftest import ALL, TENANT, child

from shiguan.errors import StoreError
from shiguan.stores import HIT_FIELDS
from shiguan.stores.cluster.qdrant_store import QdrantStore
from shiguan.stores.cluster.schema import KEYWORD_FIELDS, NUMBER_FIELDS


@pytest.fixture
def store(vectors):
    return vectors


def test_the_collection_is_made_as_the_file_says(qdrant):
    configs = {
        "hnsw_config": {"m": 0, "payload_m": 16, "ef_construct": 128},
        "quantization_config": {"scalar": {"type": "int8", "quantile": 0.99, "always_ram": True}},
        "optimizers_config": {"indexing_threshold": 0, "default_segment_number": 8},
        "shard_number": 2,
    }
    QdrantStore("children", embedding_dim=3, on_disk=True, **configs).set_up()
    body = qdrant.sent("PUT", "/collections/children")[0].body
    assert body["vectors"] == {"size": 3, "distance": "Cosine", "on_disk": True}
    assert {name: body[name] for name in configs} == configs
    assert body["on_disk_payload"] is True


def test_every_field_that_filters_may_name_has_a_payload_index(store, qdrant):
    schemas = {r.body["field_name"]: r.body["field_schema"] for r in qdrant.sent("PUT", "/index")}
    assert set(schemas) == {"id", *(f"meta.{name}" for name in (*KEYWORD_FIELDS, *NUMBER_FIELDS))}
    assert schemas["meta.tenant_id"] == {"type": "keyword", "is_tenant": True}
    plain = {"type": "keyword", "enable_hnsw": False}
    assert schemas["meta.source_id"] == {**plain, "on_disk": False}
    assert schemas["meta.title"] == {**plain, "on_disk": True}
    numbers = {"type": "integer", "lookup": True, "range": True, "on_disk": True, "enable_hnsw": False}
    assert schemas["meta.position"] == numbers


def test_a_second_set_up_makes_only_what_is_missing(store, qdrant):
    del qdrant.payload_schemas["children"]["meta.language"]
    qdrant.requests.clear()
    assert store.set_up() == [
        f"Qdrant at {qdrant.url}: collection children was there",
        f"Qdrant at {qdrant.url}: payload indexes made: meta.language",
    ]
    assert [request.path for request in qdrant.requests if request.method in ("PUT", "DELETE")] == [
        "/collections/children/index"
    ]


def test_a_collection_for_other_vectors_is_refused_and_kept(store, qdrant):
    other = QdrantStore("children", embedding_dim=4).unscoped()
    for call in (other.set_up, other.count_documents):
        with pytest.raises(StoreError, match="its vectors have 2 dimensions, the embedder's 4"):
            call()
    assert list(qdrant.configs) == ["children"]


def test_children_keep_their_meta_below_meta_and_their_ids_are_stable(store, qdrant):
    assert store.write_documents([child(1)], policy=ALL) == 1
    first = qdrant.sent("PUT", "/points")[0].body["points"][0]
    assert first["payload"]["id"] == "c1"
    assert first["payload"]["meta"] == {"tenant_id": "a", "file_id": "f", "parent_id": "p", "start": 1}
    store.write_documents([child(1)], policy=ALL)
    assert qdrant.sent("PUT", "/points")[1].body["points"][0]["id"] == first["id"]
    assert store.count_documents() == 1


def test_what_the_server_refuses_is_named_and_the_rest_is_kept(store):
    documents = [child(1), child(2, embedding=(1.0,)), child(3)]
    told = r"refused to write 1 of 3 passages in children.*`c2` \(.*expected dim: 2, got 1"
    with pytest.raises(StoreError, match=told):
        store.write_documents(documents, policy=ALL)
    assert sorted(store.list_ids()) == ["c1", "c3"]


def test_the_vector_query_is_under_the_tenants_filter(store, qdrant):
    store.write_documents([child(1), child(2, "b"), child(3, embedding=(0, 1))], policy=ALL)
    found = QdrantEmbeddingRetriever(document_store=store, top_k=7).run([1.0, 0.1], filters=TENANT)["documents"]
    assert [document.id for document in found] == ["c1", "c3"]
    assert found[0].score == pytest.approx(1 / (1 + 0.01) ** 0.5)
    body = qdrant.sent("POST", "/points/query")[-1].body
    assert body["filter"] == {"must": [{"key": "meta.tenant_id", "match": {"value": "a"}}]}
    assert (body["limit"], body["query"]["nearest"]) == (7, [1.0, 0.1])
    assert body["params"] == {"hnsw_ef": 128, "quantization": {"rescore": True, "oversampling": 2.0}}
    assert body["with_payload"] == ["id", *(f"meta.{field}" for field in HIT_FIELDS)]
    assert found[0].meta == {"tenant_id": "a", "parent_id": "p", "start": 1}


def test_vectors_are_read_by_id_and_ids_listed_without_them(store, qdrant):
    store.write_documents([child(1), child(2, embedding=(0.0, 1.0)), child(3, "b")], policy=ALL)
    assert store.read_vectors(TENANT) == {"c1": [1.0, 0.0], "c2": [0.0, 1.0]}
    assert store.existing_ids(["c1", "c3", "c9"]) == {"c1", "c3"}
    assert sorted(store.list_ids(TENANT)) == ["c1", "c2"]
    assert qdrant.sent("POST", "/points/scroll")[-1].body["with_payload"] == ["id"]
