"""A part of an answer never passes for the whole."""

import pytest
from haystack_integrations.components.retrievers.elasticsearch import ElasticsearchBM25Retriever
from tests.components.stores.cluster.conftest import ALL, TENANT, child
from tests.doubles.recording_server import Reply

from shiguan.conversations import Turn
from shiguan.errors import StoreError, StoreUnavailableError

FAILURE = {"shard": 1, "index": "children", "node": "n", "reason": {"type": "io", "reason": "disk read"}}
LOST = {"total": 3, "successful": 2, "skipped": 0, "failed": 1, "failures": [FAILURE]}


@pytest.fixture
def store(words):
    words.write_documents([child(1)], policy=ALL)
    return words


def losing(server, path, change):
    """Let the server give its own answer to a path, changed."""

    def fault(request):
        if not request.path.endswith(path):
            return None
        reply = server.answer(request)
        return Reply({**reply.body, **change}, status=reply.status)

    server.faults.append(fault)


READS = {
    "search by words": (lambda s: ElasticsearchBM25Retriever(document_store=s).run("salt", filters=TENANT), "/_search"),
    "parents": (lambda s: s.filter_documents(TENANT), "/_search"),
    "ids": (lambda s: s.list_ids(TENANT), "/_search"),
    "files": (lambda s: s.count_by_file(TENANT), "/_search"),
    "count": (lambda s: s.count_documents_by_filter(TENANT), "/_count"),
}


@pytest.mark.parametrize(
    ("read", "change", "told"),
    [
        *((read, {"_shards": LOST}, r"only a part .*1 of 3 shards failed: io: disk read") for read in READS),
        *((read, {"timed_out": True}, "it ran out of time") for read in READS if read != "count"),
    ],
)
def test_a_shard_that_failed_or_ran_out_of_time_is_told(store, elasticsearch, read, change, told):
    call, path = READS[read]
    call(store)
    losing(elasticsearch, path, change)
    with pytest.raises(StoreUnavailableError, match=told):
        call(store)


def test_every_search_asks_for_all_or_nothing(store, elasticsearch):
    for call, _ in READS.values():
        call(store)
    searches = elasticsearch.sent("POST", "/_search")
    assert len(searches) == 4
    assert all(request.query["allow_partial_search_results"] == "false" for request in searches)


def test_a_passage_that_cannot_be_looked_up_is_not_taken_for_missing(store, elasticsearch):
    docs = [{"_index": "children", "_id": "c1", "error": {"type": "io", "reason": "disk read"}}]
    elasticsearch.faults.append(lambda request: Reply({"docs": docs}) if request.path.endswith("/_mget") else None)
    with pytest.raises(StoreError, match=r"refused to read 1 of 1 passages .*io: disk read"):
        store.existing_ids(["c1"])


def test_a_part_of_a_conversation_is_none(conversations, elasticsearch):
    conversations.append("ours", "c", Turn("q", "a"))
    losing(elasticsearch, "/_search", {"_shards": LOST})
    with pytest.raises(StoreUnavailableError, match="only a part"):
        conversations.turns("ours", "c")
