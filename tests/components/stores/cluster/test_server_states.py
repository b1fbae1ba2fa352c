"""States of the servers that last: what the stores say of them, and what becomes of them."""

import certifi
import pytest
from haystack import Document
from haystack.document_stores.types import DuplicatePolicy
from tests.doubles.recording_server import Reply

from shiguan.errors import ConfigurationError, StoreError, StoreUnavailableError
from shiguan.stores.cluster.elasticsearch_conversation_store import ElasticsearchConversationStore
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


@pytest.mark.parametrize("health", ["red", "yellow"])
def test_a_primary_that_is_recovered_is_waited_for(pair, elasticsearch, waits, health):
    """A primary that is brought back from a snapshot is yellow and takes no search: health does not say it."""
    elasticsearch.recovering, elasticsearch.recovering_health = 3, health
    assert pair.list_ids_without_vector(TENANT) == []
    assert waits == [0.1, 1.0, 2.0]


@pytest.mark.parametrize("health", ["red", "yellow"])
def test_a_primary_that_is_still_recovered_is_reported(pair, elasticsearch, health):
    elasticsearch.recovering, elasticsearch.recovering_health = 10_000, health
    with pytest.raises(StoreUnavailableError, match=r"no_shard_available.*Then run the same again"):
        pair.count_documents()


@pytest.mark.parametrize("block", ["write", "read_only", "read_only_allow_delete"])
def test_an_index_that_refuses_writes_says_so_and_is_read(pair, elasticsearch, block):
    elasticsearch.blocks["children"] = {block}
    with pytest.raises(StoreError, match=r"refused to write 1 of 1 .*`c3` \(status 4\d\d: cluster_block_exception"):
        pair.words.write_documents([child(3)], policy=DuplicatePolicy.OVERWRITE)
    assert len(pair.filter_documents(TENANT)) == 2


def test_a_blocked_index_of_conversations_is_no_fault_of_the_key(elasticsearch):
    from shiguan.conversations import Turn

    store = ElasticsearchConversationStore()
    store.set_up()
    elasticsearch.blocks["shiguan-conversations"] = {"write"}
    with pytest.raises(StoreError, match=r"refused a request \(status 403: cluster_block_exception"):
        store.append("t", "c", Turn("q", "a"))
    store.close()


@pytest.mark.parametrize("name", ["Elasticsearch", "Qdrant"])
def test_a_read_that_broke_is_sent_again(pair, elasticsearch, qdrant, name):
    """A server that stops resets the connections that are in use."""
    store, server = (pair.words, elasticsearch) if name == "Elasticsearch" else (pair.vectors, qdrant)
    broken = []

    def reset(request):
        if request.path.endswith(("/_search", "/scroll")) and len(broken) < 3:
            broken.append(request)
            server.hang_up()
        return

    server.faults.append(reset)
    assert sorted(store.list_ids(TENANT)) == ["c1", "c2"]
    assert len(broken) == 3


def test_a_write_with_a_condition_is_not_sent_twice(elasticsearch):
    """What may have been done would be refused the second time, and a turn would get two numbers."""
    from shiguan.conversations import Turn

    store = ElasticsearchConversationStore()
    store.set_up()
    store.append("t", "c", Turn("q", "a"))
    sent = []

    def reset(request):
        if "if_seq_no" in request.query:
            sent.append(request)
            elasticsearch.hang_up()
        return

    elasticsearch.faults.append(reset)
    with pytest.raises(StoreUnavailableError, match="cannot be reached"):
        store.append("t", "c", Turn("q", "a"))
    assert len(sent) == 1
    store.close()


@pytest.mark.parametrize("name", ["Elasticsearch", "Qdrant"])
def test_both_servers_are_asked_again_as_often(pair, elasticsearch, qdrant, waits, name):
    store, server = (pair.words, elasticsearch) if name == "Elasticsearch" else (pair.vectors, qdrant)
    server.faults.append(lambda request: Reply({"error": "starting"}, status=503))
    with pytest.raises(StoreUnavailableError, match="takes nothing more for now"):
        store.count_documents()
    assert waits == [0.1, 1.0, 2.0, 4.0]


def test_the_cause_behind_an_error_is_named(pair, elasticsearch):
    """The outermost error says that a request failed, the innermost why."""
    inner = {"type": "circuit_breaking_exception", "reason": "Data too large"}
    error = {"type": "search_phase_execution_exception", "reason": "all shards failed", "root_cause": []}
    body = {"error": {**error, "caused_by": {"type": "exception", "reason": "wrapped", "caused_by": inner}}}
    elasticsearch.faults.append(lambda request: Reply({**body, "status": 500}, status=500))
    with pytest.raises(StoreError, match=r"all shards failed, .*caused by circuit_breaking_exception: Data too large"):
        pair.count_documents()


def test_an_index_from_before_behind_an_alias_goes_on_serving(elasticsearch):
    ElasticsearchStore("children-000001").set_up()
    elasticsearch.aliases["children"] = "children-000001"
    store = ElasticsearchStore("children").unscoped()
    assert store.set_up() == [f"Elasticsearch at {elasticsearch.url}: index children was there"]
    store.write_documents([child(1)], policy=DuplicatePolicy.OVERWRITE)
    assert store.list_ids(TENANT) == ["c1"]
    store.close()


def test_an_authority_of_ones_own_is_told_to_both_clients(monkeypatch, tmp_path):
    monkeypatch.setenv("SHIGUAN_ELASTICSEARCH_URL", "https://127.0.0.1:9")
    monkeypatch.setenv("SHIGUAN_QDRANT_URL", "https://127.0.0.1:9")
    stores = ElasticsearchStore("children"), QdrantStore("children", embedding_dim=2)
    monkeypatch.setenv("SHIGUAN_CA_FILE", certifi.where())
    for store in stores:
        with pytest.raises(StoreUnavailableError, match="cannot be reached"):
            store.set_up()
    monkeypatch.setenv("SHIGUAN_CA_FILE", str(tmp_path / "missing.crt"))
    for store in stores:
        with pytest.raises(
            ConfigurationError, match=r"SHIGUAN_CA_FILE names .*missing\.crt, which is not a certificate"
        ):
            store.set_up()
