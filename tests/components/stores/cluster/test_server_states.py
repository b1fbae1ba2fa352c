"""States of the servers that last: what the stores say of them, and what becomes of them."""

import pytest
from tests.components.stores.cluster.conftest import ALL, TENANT, child
from tests.doubles.recording_server import Reply

from shiguan.conversations import Turn
from shiguan.errors import StoreError, StoreUnavailableError
from shiguan.stores.cluster.elasticsearch_store import ElasticsearchStore


@pytest.fixture
def pair(pair):
    pair.write_documents([child(1), child(2)], policy=ALL)
    return pair


@pytest.fixture
def conversations(conversations):
    conversations.append("t", "c", Turn("q", "a"))
    return conversations


@pytest.mark.parametrize("health", ["red", "yellow"])
def test_a_primary_that_is_recovered_is_waited_for_and_reported(pair, elasticsearch, waits, health):
    """A primary that is brought back from a snapshot is yellow and takes no search: health does not say it."""
    elasticsearch.recovering, elasticsearch.recovering_health = 3, health
    assert pair.list_ids_without_vector(TENANT) == []
    assert waits == [0.1, 1.0, 2.0]
    elasticsearch.recovering = 10_000
    with pytest.raises(StoreUnavailableError, match=r"no_shard_available.*Then run the same again"):
        pair.count_documents()


@pytest.mark.parametrize("block", ["write", "read_only", "read_only_allow_delete"])
def test_an_index_that_refuses_writes_says_so_and_is_read(pair, elasticsearch, block):
    elasticsearch.blocks["children"] = {block}
    with pytest.raises(StoreError, match=r"refused to write 1 of 1 .*`c3` \(status 4\d\d: cluster_block_exception"):
        pair.words.write_documents([child(3)], policy=ALL)
    assert len(pair.filter_documents(TENANT)) == 2


def test_a_blocked_index_of_conversations_is_no_fault_of_the_key(conversations, elasticsearch):
    elasticsearch.blocks["shiguan-conversations"] = {"write"}
    with pytest.raises(StoreError, match=r"refused a request \(status 403: cluster_block_exception"):
        conversations.append("t", "c", Turn("q", "a"))


def test_a_write_with_a_condition_is_not_sent_twice(conversations, elasticsearch):
    """What may have been done would be refused the second time, and a turn would get two numbers."""
    sent = []

    def reset(request):
        if "if_seq_no" in request.query:
            sent.append(request)
            elasticsearch.hang_up()
        return

    elasticsearch.faults.append(reset)
    with pytest.raises(StoreUnavailableError, match="cannot be reached"):
        conversations.append("t", "c", Turn("q", "a"))
    assert len(sent) == 1


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
    store.write_documents([child(1)], policy=ALL)
    assert store.list_ids(TENANT) == ["c1"]
    store.close()
