"""The Qdrant store against a real client and recorded requests."""

import threading

import pytest
from haystack import Document
from haystack.document_stores.types import DuplicatePolicy
from haystack_integrations.components.retrievers.qdrant import QdrantEmbeddingRetriever
from tests.doubles.recording_server import Reply

from shiguan.errors import RefusedError, StoreError, StoreUnavailableError
from shiguan.stores import HIT_FIELDS
from shiguan.stores.cluster.qdrant_store import QdrantStore
from shiguan.stores.cluster.schema import KEYWORD_FIELDS, NUMBER_FIELDS

TENANT = {"operator": "AND", "conditions": [{"field": "meta.tenant_id", "operator": "==", "value": "a"}]}
HNSW = {"m": 0, "payload_m": 16, "ef_construct": 128}
INT8 = {"scalar": {"type": "int8", "quantile": 0.99, "always_ram": True}}


def child(number, tenant="a", embedding=(1.0, 0.0, 0.0)):
    meta = {"tenant_id": tenant, "file_id": "f", "parent_id": "p", "start": number}
    return Document(id=f"c{number}", content=f"text {number}", meta=meta, embedding=list(embedding))


@pytest.fixture
def store(qdrant):
    store = QdrantStore("children", embedding_dim=3).unscoped()
    store.set_up()
    yield store
    store.close()


def test_the_collection_is_made_as_the_file_says(qdrant):
    QdrantStore(
        "children", embedding_dim=3, on_disk=True, hnsw_config=HNSW, quantization_config=INT8, shard_number=2
    ).set_up()
    body = qdrant.sent("PUT", "/collections/children")[0].body
    assert body["vectors"] == {"size": 3, "distance": "Cosine", "on_disk": True}
    assert body["hnsw_config"] == HNSW
    assert body["quantization_config"] == INT8
    assert (body["shard_number"], body["on_disk_payload"]) == (2, True)


def test_the_tenant_has_a_payload_index_of_its_own_kind(store, qdrant):
    schemas = {r.body["field_name"]: r.body["field_schema"] for r in qdrant.sent("PUT", "/index")}
    assert schemas["meta.tenant_id"] == {"type": "keyword", "is_tenant": True}


def test_every_field_that_filters_may_name_has_a_payload_index(store, qdrant):
    schemas = {r.body["field_name"]: r.body["field_schema"] for r in qdrant.sent("PUT", "/index")}
    assert set(schemas) == {"id", *(f"meta.{name}" for name in (*KEYWORD_FIELDS, *NUMBER_FIELDS))}
    plain = {"type": "keyword", "enable_hnsw": False}
    assert schemas["meta.source_id"] == {**plain, "on_disk": False}
    assert schemas["meta.title"] == {**plain, "on_disk": True}
    numbers = {"type": "integer", "lookup": True, "range": True, "on_disk": True, "enable_hnsw": False}
    assert schemas["meta.position"] == numbers


def test_a_second_set_up_makes_only_what_is_missing(store, qdrant):
    del qdrant.payload_schemas["children"]["meta.language"]
    assert "payload indexes are missing: meta.language" in store.status()[0]["problems"][0]
    qdrant.requests.clear()
    assert store.set_up() == [
        f"Qdrant at {qdrant.url}: collection children was there",
        f"Qdrant at {qdrant.url}: payload indexes made: meta.language",
    ]
    assert [request.path for request in qdrant.requests if request.method in ("PUT", "DELETE")] == [
        "/collections/children/index"
    ]


def test_two_set_ups_at_once_both_succeed_and_nothing_is_deleted(qdrant):
    seen = threading.Barrier(2, timeout=10)

    def both_look_first(request):
        if request.path.endswith("/exists") and not qdrant.configs:
            qdrant.lock.release()
            try:
                seen.wait()
            finally:
                qdrant.lock.acquire()
            return Reply({"result": {"exists": False}, "status": "ok", "time": 0.0})
        return None

    qdrant.faults.append(both_look_first)
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(QdrantStore("children", embedding_dim=3).set_up()))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done[0].rsplit(" ", 1)[1] for done in results) == ["made", "there"]
    assert not [request for request in qdrant.requests if request.method == "DELETE"]


def test_a_collection_for_other_vectors_is_refused_and_kept(store, qdrant):
    other = QdrantStore("children", embedding_dim=4).unscoped()
    for call in (other.set_up, other.count_documents):
        with pytest.raises(StoreError, match="its vectors have 3 dimensions, the embedder's 4"):
            call()
    assert other.status()[0]["problems"] == ["its vectors have 3 dimensions, the embedder's 4"]
    assert list(qdrant.configs) == ["children"]


def test_a_store_without_a_collection_says_so_and_makes_none(qdrant):
    store = QdrantStore("children", embedding_dim=3).unscoped()
    for _ in range(2):
        with pytest.raises(StoreError, match=r"has no collection `children`\. Make it with `shiguan stores init`"):
            store.write_documents([child(1)], policy=DuplicatePolicy.OVERWRITE)
    assert qdrant.configs == {}


def test_a_store_whose_first_call_failed_works_once_the_server_does(qdrant):
    store = QdrantStore("children", embedding_dim=3).unscoped()
    qdrant.faults.append(lambda request: Reply({"status": {"error": "starting"}}, status=503))
    with pytest.raises(StoreUnavailableError, match="takes nothing more for now"):
        store.count_documents()
    qdrant.faults.clear()
    store.set_up()
    assert store.count_documents() == 0
    store.close()


def test_children_keep_their_meta_below_meta_and_their_ids_are_stable(store, qdrant):
    assert store.write_documents([child(1)], policy=DuplicatePolicy.OVERWRITE) == 1
    first = qdrant.sent("PUT", "/points")[0].body["points"][0]
    assert first["payload"]["id"] == "c1"
    assert first["payload"]["meta"] == {"tenant_id": "a", "file_id": "f", "parent_id": "p", "start": 1}
    store.write_documents([child(1)], policy=DuplicatePolicy.OVERWRITE)
    assert qdrant.sent("PUT", "/points")[1].body["points"][0]["id"] == first["id"]
    assert store.count_documents() == 1


def test_what_the_server_refuses_is_named_and_the_rest_is_kept(store):
    documents = [child(1), child(2, embedding=(1.0,)), child(3)]
    with pytest.raises(StoreError) as error:
        store.write_documents(documents, policy=DuplicatePolicy.OVERWRITE)
    assert "refused to write 1 of 3 passages in children" in str(error.value)
    assert "`c2` (" in str(error.value)
    assert "expected dim: 3, got 1" in str(error.value)
    assert sorted(store.list_ids()) == ["c1", "c3"]


def test_the_vector_query_is_under_the_tenants_filter(store, qdrant):
    store.write_documents([child(1), child(2, "b"), child(3, embedding=(0, 1, 0))], policy=DuplicatePolicy.OVERWRITE)
    found = QdrantEmbeddingRetriever(document_store=store, top_k=7).run([1.0, 0.1, 0.0], filters=TENANT)["documents"]
    assert [document.id for document in found] == ["c1", "c3"]
    assert found[0].score == pytest.approx(1 / (1 + 0.01) ** 0.5)
    body = qdrant.sent("POST", "/points/query")[-1].body
    assert body["filter"] == {"must": [{"key": "meta.tenant_id", "match": {"value": "a"}}]}
    assert (body["limit"], body["query"]["nearest"]) == (7, [1.0, 0.1, 0.0])
    assert body["params"] == {"hnsw_ef": 128, "quantization": {"rescore": True, "oversampling": 2.0}}
    assert body["with_payload"] == ["id", *(f"meta.{field}" for field in HIT_FIELDS)]
    assert found[0].meta == {"tenant_id": "a", "parent_id": "p", "start": 1}


async def test_the_asynchronous_twin_writes_the_same(store):
    assert await store.write_documents_async([child(1)], DuplicatePolicy.OVERWRITE) == 1


def test_ids_are_listed_without_vectors(store, qdrant):
    store.write_documents([child(1), child(2, "b")], policy=DuplicatePolicy.OVERWRITE)
    assert store.list_ids(TENANT) == ["c1"]
    assert qdrant.sent("POST", "/points/scroll")[-1].body["with_payload"] == ["id"]


def test_children_are_deleted_by_id_and_by_filter(store):
    store.write_documents([child(1), child(2), child(3, "b")], policy=DuplicatePolicy.OVERWRITE)
    store.delete_documents(["c1", "never there"])
    assert store.delete_by_filter(TENANT) == 1
    assert store.list_ids() == ["c3"]
    with pytest.raises(ValueError, match="must name what to delete"):
        store.delete_by_filter({})


def test_filters_that_the_server_would_misread_are_refused(store):
    condition = {"field": "meta.language", "operator": "==", "value": None}
    with pytest.raises(RefusedError, match="would not agree"):
        QdrantEmbeddingRetriever(document_store=store).run([1.0, 0.0, 0.0], filters=condition)


def test_a_server_that_is_down_is_named_without_its_password(monkeypatch):
    monkeypatch.setenv("SHIGUAN_QDRANT_URL", "http://u:geheim@127.0.0.1:9")
    with pytest.raises(StoreUnavailableError) as error:
        QdrantStore("children", embedding_dim=3).unscoped().count_documents()
    assert "Qdrant at http://127.0.0.1:9 cannot be reached" in str(error.value)
    assert "geheim" not in str(error.value)
    assert QdrantStore("children", embedding_dim=3).status()[0]["health"] == "unreachable"


def test_the_key_is_sent_and_a_wrong_one_is_named(qdrant, monkeypatch):
    qdrant.api_key = "right"
    with pytest.raises(StoreError, match=r"refuses our credentials \(status 401\)\. Correct SHIGUAN_QDRANT_API_KEY"):
        QdrantStore("children", embedding_dim=3).set_up()
    monkeypatch.setenv("SHIGUAN_QDRANT_API_KEY", "right")
    QdrantStore("children", embedding_dim=3).set_up()


def test_it_round_trips_without_secrets(monkeypatch):
    monkeypatch.setenv("SHIGUAN_QDRANT_API_KEY", "geheim")
    store = QdrantStore("children", embedding_dim=3, hnsw_config=HNSW, quantization_config=INT8).unscoped()
    data = store.to_dict()
    assert "geheim" not in str(data)
    again = QdrantStore.from_dict(data)
    assert (again.embedding_dim, again.hnsw_config, again.quantization_config) == (3, HNSW, INT8)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"index": "", "embedding_dim": 3}, "collection name"),
        ({"index": "a/b", "embedding_dim": 3}, "collection name"),
        ({"index": "c", "embedding_dim": 0}, "embedding_dim"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        QdrantStore(**parameters)
