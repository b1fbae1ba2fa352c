import pytest

from shiguan.conversations import SummaryNode, Turn


@pytest.fixture
def store(conversations):
    return conversations


def test_what_was_said_is_kept_and_not_indexed(store, elasticsearch):
    (mapping,) = elasticsearch.mappings.values()
    assert mapping["dynamic"] is False
    assert set(mapping["properties"]) == {"tenant", "conversation", "birth", "kind", "number", "level", "created"}


def test_every_search_names_the_tenant_and_the_conversation(store, elasticsearch):
    store.append("ours", "c", Turn("q", "a"))
    birth = store.find("ours", "c").birth
    store.add_node("ours", "c", SummaryNode(0, 1, 1, "q"), birth=birth)
    store.nodes("ours", "c")
    store.turns("ours", "c")
    store.delete("ours", "c")
    searches = [r for r in elasticsearch.requests if r.path.endswith(("_search", "_count", "_delete_by_query"))]
    assert len(searches) == 5
    for request in searches:
        terms = [part["term"] for part in request.body["query"]["bool"]["filter"] if "term" in part]
        assert {"tenant": "ours"} in terms
        assert {"conversation": "c"} in terms


def test_a_summary_that_comes_after_the_deletion_is_taken_away_again(store, elasticsearch):
    store.append("ours", "c", Turn("q", "a"))
    birth = store.find("ours", "c").birth
    head = next(key for key, one in elasticsearch.indexes[store.index].items() if one["kind"] == "conversation")
    turns = store.turns

    def deleted_meanwhile(*arguments, **words):
        found = turns(*arguments, **words)
        del elasticsearch.indexes[store.index][head]
        return found

    store.turns = deleted_meanwhile
    assert not store.add_node("ours", "c", SummaryNode(0, 1, 1, "q"), birth=birth)
    assert [one["kind"] for one in elasticsearch.indexes[store.index].values()] == ["turn"]
