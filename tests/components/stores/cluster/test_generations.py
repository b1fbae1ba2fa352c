"""An index is replaced while it serves, saved and brought back; nothing of it is embedded again."""

import certifi
import pytest
from haystack import Document
from haystack.document_stores.types import DuplicatePolicy
from tests.doubles.recording_server import Reply

from shiguan.errors import ConfigurationError, RefusedError, StoreError
from shiguan.stores.cluster import qdrant_collection
from shiguan.stores.cluster.elasticsearch_store import ElasticsearchStore
from shiguan.stores.cluster.paired_document_store import PairedDocumentStore
from shiguan.stores.cluster.qdrant_store import QdrantStore

TENANT = {"field": "meta.tenant_id", "operator": "==", "value": "a"}


def child(number):
    meta = {"tenant_id": "a", "file_id": "f", "parent_id": "p", "start": number}
    return Document(id=f"c{number}", content=f"salt {number}", meta=meta, embedding=[1.0, float(number)])


@pytest.fixture
def pair(elasticsearch, qdrant):
    words = ElasticsearchStore("children")
    pair = PairedDocumentStore(words, vectors=QdrantStore("children", embedding_dim=2)).unscoped()
    pair.set_up()
    pair.write_documents([child(1), child(2)], policy=DuplicatePolicy.OVERWRITE)
    yield pair
    pair.close()


def test_an_index_is_copied_and_switched_and_switched_back(pair, elasticsearch, qdrant):
    for part in pair.generations():
        assert part.copy().endswith(": children-000002 holds 2 of 2 entries of children-000001")
    assert elasticsearch.aliases == qdrant.aliases == {"children": "children-000001"}
    vector = qdrant.local.scroll("children-000002", with_vectors=True)[0][0].vector
    assert vector == pytest.approx(qdrant.local.scroll("children-000001", with_vectors=True)[0][0].vector)
    said = [part.switch() for part in pair.generations()]
    assert said[0].endswith("children is children-000002 now, children-000001 is kept")
    assert elasticsearch.aliases == qdrant.aliases == {"children": "children-000002"}
    assert pair.list_ids(TENANT) == ["c1", "c2"]
    for part in pair.generations():
        part.switch(back=True)
    assert elasticsearch.aliases == qdrant.aliases == {"children": "children-000001"}


def test_the_alias_moves_in_one_request(pair, elasticsearch, qdrant):
    for part in pair.generations():
        part.copy()
        part.switch()
    (moved,) = elasticsearch.sent("POST", "/_aliases")
    assert moved.body["actions"] == [
        {"remove": {"index": "children-000001", "alias": "children"}},
        {"add": {"index": "children-000002", "alias": "children", "is_write_index": True}},
    ]
    assert len(qdrant.sent("POST", "/collections/aliases")[-1].body["actions"]) == 2


def test_a_copy_that_was_interrupted_goes_on_where_it_was(pair, elasticsearch, qdrant, monkeypatch):
    monkeypatch.setattr(qdrant_collection, "_WITH_VECTORS", 1)
    words, vectors = pair.generations()
    writes = []

    def full_after_one(request):
        if request.method == "PUT" and request.path.endswith("children-000002/points"):
            writes.append(request)
            return Reply({"status": {"error": "no space"}}, status=507) if len(writes) == 2 else None
        return None

    qdrant.faults.append(full_after_one)
    with pytest.raises(StoreError, match="status 507"):
        vectors.copy()
    assert qdrant.local.count("children-000002").count == 1
    assert vectors.copy().endswith(": children-000002 holds 2 of 2 entries of children-000001")
    assert len(writes) == 3
    words.copy()
    del elasticsearch.indexes["children-000002"]["c2"]
    assert words.copy().endswith(": children-000002 holds 2 of 2 entries of children-000001")
    assert sorted(elasticsearch.indexes) == ["children-000001", "children-000002"]


def test_what_was_written_meanwhile_keeps_the_old_index(pair, elasticsearch):
    words = pair.generations()[0]
    words.copy()
    pair.words.write_documents([child(3)], policy=DuplicatePolicy.OVERWRITE)
    with pytest.raises(StoreError, match="children-000002 holds 2 entries and children-000001 3"):
        words.switch()
    assert elasticsearch.aliases == {"children": "children-000001"}
    words.copy()
    words.switch()
    assert len(pair.words.list_ids(TENANT)) == 3


def test_a_collection_whose_graphs_are_not_made_is_not_switched_to(pair, qdrant):
    vectors = pair.generations()[1]
    vectors.copy()
    qdrant.status = "yellow"
    with pytest.raises(StoreError, match="its graphs are still being made"):
        vectors.switch()


def test_graphs_wait_for_the_end_of_a_copy(pair, qdrant):
    pair.generations()[1].copy()
    assert qdrant.sent("PUT", "/collections/children-000002")[0].body["optimizers_config"] == {"indexing_threshold": 0}
    (after,) = qdrant.sent("PATCH", "/collections/children-000002")
    assert after.body["optimizers_config"] == {"indexing_threshold": 10_000}
    assert qdrant.requests.index(after) > qdrant.requests.index(qdrant.sent("PUT", "/points")[-1])


def test_much_at_once_is_found_when_it_ends(pair, elasticsearch, qdrant):
    elasticsearch.requests.clear()
    with pair.bulk_loading():
        pair.write_documents([child(4)], policy=DuplicatePolicy.OVERWRITE)
        assert not elasticsearch.sent("POST", "/_refresh")
    assert len(elasticsearch.sent("POST", "/_refresh")) == 1
    thresholds = [r.body["optimizers_config"]["indexing_threshold"] for r in qdrant.sent("PATCH", "children-000001")]
    assert thresholds == [0, 10_000]


def test_a_load_that_was_interrupted_is_told_and_mended(pair, qdrant):
    vectors = pair.generations()[1]
    qdrant.configs["children-000001"]["optimizers_config"] = {"indexing_threshold": 0}
    assert "children-000001 makes no graphs" in vectors.status()["problems"][0]
    assert "graphs of children-000001 are made now" in vectors.set_up()[-1]
    assert vectors.status()["problems"] == []
    assert len(vectors.set_up()) == 1


def test_there_is_nothing_to_switch_to(pair):
    for part in pair.generations():
        with pytest.raises(RefusedError, match="There is no newer index than children-000001"):
            part.switch()
        with pytest.raises(RefusedError, match="There is no older index than children-000001"):
            part.switch(back=True)


def test_a_task_is_asked_for_until_it_has_ended(pair, elasticsearch, waits):
    elasticsearch.running = 3
    assert pair.words.delete_by_filter(TENANT) == 2
    assert [request.path for request in elasticsearch.requests].count("/_tasks/node:1") == 4
    assert len(waits) == 3
    sent = elasticsearch.sent("POST", "/_delete_by_query")[0]
    assert sent.query == {"conflicts": "proceed", "slices": "auto", "wait_for_completion": "false"}


def test_a_task_that_failed_is_told(pair, elasticsearch):
    failed = {"completed": True, "task": {}, "error": {"type": "disk", "reason": "full"}}
    elasticsearch.faults.append(lambda request: Reply(failed) if request.path.startswith("/_tasks") else None)
    with pytest.raises(StoreError, match=r"gave up a task it had begun \(disk: full\)"):
        pair.words.delete_by_filter(TENANT)


def test_an_index_where_an_alias_belongs_is_named(elasticsearch, qdrant):
    elasticsearch.indexes["children"] = {}
    with pytest.raises(StoreError, match="has an index named `children`, where an alias of that name belongs"):
        ElasticsearchStore("children").set_up()


def test_an_authority_of_ones_own_is_told_to_both_clients(monkeypatch, tmp_path):
    monkeypatch.setenv("SHIGUAN_ELASTICSEARCH_URL", "https://127.0.0.1:9")
    monkeypatch.setenv("SHIGUAN_QDRANT_URL", "https://127.0.0.1:9")
    stores = ElasticsearchStore("children"), QdrantStore("children", embedding_dim=2)
    monkeypatch.setenv("SHIGUAN_CA_FILE", certifi.where())
    assert ["cannot be reached" in store.status()[0]["problems"][0] for store in stores] == [True, True]
    monkeypatch.setenv("SHIGUAN_CA_FILE", str(tmp_path / "missing.crt"))
    for store in stores:
        with pytest.raises(ConfigurationError, match=r"SHIGUAN_CA_FILE names .*missing\.crt, which is no certificate"):
            store.status()
