"""The Elasticsearch store against a real client and recorded requests."""

from copy import deepcopy
from dataclasses import replace
from types import SimpleNamespace

import pytest
from haystack.document_stores.types import DuplicatePolicy
from haystack_integrations.components.retrievers.elasticsearch import ElasticsearchBM25Retriever
from tests.components.stores.cluster.conftest import ALL, TENANT, child

from shiguan.errors import StoreError
from shiguan.stores import HIT_FIELDS
from shiguan.stores.cluster import elasticsearch_store
from shiguan.stores.cluster.elasticsearch_store import ElasticsearchStore


def passage(number, tenant="a", **meta):
    return replace(child(number, tenant, title="Annals", position=number, **meta), id=f"{number:05d}")


@pytest.fixture
def store(words):
    return words


def test_languages_are_counted_once_a_minute_for_each_tenant(store, elasticsearch, monkeypatch):
    clock = [600.0]
    monkeypatch.setattr(elasticsearch_store, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    rows = [passage(0, language="zh"), passage(1, language="zh"), passage(2, language="en"), passage(3)]
    store.write_documents([*rows, passage(4, tenant="b", language="fr")])
    other = {"field": "meta.tenant_id", "operator": "==", "value": "b"}
    asked = []
    elasticsearch.faults.append(lambda request: asked.append(request) if request.path.endswith("_search") else None)
    for seconds, requests in ((600.0, 2), (659.9, 2), (660.0, 4)):
        clock[0] = seconds
        assert store.count_languages(TENANT) == {"zh": 2, "en": 1}
        assert store.count_languages(other) == {"fr": 1}
        assert [request.body["size"] for request in asked] == [0] * requests


def test_the_index_gets_exact_words_in_three_ways_and_no_field_by_itself(store, elasticsearch):
    mappings = elasticsearch.mappings["children"]
    assert mappings["dynamic"] is False
    fields = {name: {"type": "text", "analyzer": f"shiguan_{name}"} for name in ("characters", "words")}
    assert mappings["properties"]["content"] == {"type": "text", "analyzer": "shiguan_bigrams", "fields": fields}
    assert mappings["properties"]["tenant_id"] == {"type": "keyword", "ignore_above": 8191}
    assert mappings["properties"]["title"]["type"] == "keyword"
    assert set(mappings["properties"]["title"]["fields"]) == {"bigrams", "characters", "words"}
    settings = elasticsearch.settings["children"]["index"]
    assert settings["query"]["default_field"] == [
        "content", "content.characters", "content.words", "title.bigrams", "title.characters", "title.words",
    ]  # fmt: skip
    assert settings["similarity"]["default"] == {"type": "BM25", "k1": 1.2, "b": 0.75}
    assert settings["auto_expand_replicas"] == "0-1"


def test_traditional_characters_are_folded_by_the_server(store, elasticsearch):
    mappings = elasticsearch.settings["children"]["index"]["analysis"]["char_filter"]["shiguan_folding"]["mappings"]
    assert "漢 => 汉" in mappings
    assert "書 => 书" in mappings
    assert not any(line.startswith("书 =>") for line in mappings)
    assert len(mappings) == len(set(mappings)) > 3_000


def test_an_index_is_made_in_one_request_and_is_never_changed(elasticsearch):
    assert ElasticsearchStore("children").set_up()[0].endswith(": index children made")
    before = deepcopy(elasticsearch.mappings)
    assert ElasticsearchStore("children", shards=3).set_up()[0].endswith("index children was there")
    with pytest.raises(StoreError, match="its fields or words are those of other files"):
        ElasticsearchStore("children", keyword_fields=["shelf"]).set_up()
    assert elasticsearch.mappings == before
    assert [request.path for request in elasticsearch.requests if request.method == "PUT"] == ["/children"]
    elasticsearch.mappings["children"]["dynamic"] = True
    with pytest.raises(StoreError, match="`dynamic` is not false"):
        ElasticsearchStore("children").set_up()
    elasticsearch.mappings["children"]["_meta"]["shiguan"] = "other words"
    with pytest.raises(StoreError, match=r"of another version.*`A new index` in docs/operating.md"):
        ElasticsearchStore("children").set_up()


def test_passages_are_written_without_vectors_and_found_at_once(store, elasticsearch):
    assert store.write_documents([passage(1), passage(2)], policy=ALL) == 2
    lines = elasticsearch.sent("PUT", "/_bulk")[0].body
    assert lines[0] == {"index": {"_id": "00001"}}
    assert lines[1] == {
        "id": "00001", "content": "salt 1", "tenant_id": "a", "file_id": "f", "parent_id": "p", "start": 1,
        "title": "Annals", "position": 1,
    }  # fmt: skip
    assert elasticsearch.requests[-1].path == "/children/_refresh"
    assert [document.meta["position"] for document in store.filter_documents(TENANT)] == [1, 2]


def test_skip_writes_each_new_passage_once_and_keeps_the_others(store):
    store.write_documents([passage(1)], policy=ALL)
    changed = replace(passage(1), content="other words")
    assert store.write_documents([passage(2), changed, passage(3), passage(2)], policy=DuplicatePolicy.SKIP) == 2
    kept = {document.id: document.content for document in store.filter_documents()}
    assert len(kept) == 3
    assert kept[changed.id] == passage(1).content
    assert store.existing_ids(["00002", "missing"]) == {"00002"}


def test_what_the_server_refuses_is_named_and_the_rest_is_kept(store, elasticsearch):
    elasticsearch.refuse["00002"] = {"type": "document_parsing_exception", "reason": "failed to parse"}
    told = r"refused to write 1 of 3 passages in children.*`00002` \(status 400: document_parsing_exception: failed to parse\)"
    with pytest.raises(StoreError, match=told):
        store.write_documents([passage(number) for number in range(1, 4)], policy=ALL)
    assert store.list_ids() == ["00001", "00003"]


def test_a_meta_key_of_the_passages_own_is_refused_before_anything_is_sent(store, elasticsearch):
    with pytest.raises(StoreError, match="meta named score"):
        store.write_documents([passage(1, score="high")], policy=ALL)
    assert not elasticsearch.sent("PUT", "/_bulk")


def test_parents_by_id_come_in_one_request(store, elasticsearch):
    store.write_documents([passage(number) for number in range(60)], policy=ALL)
    elasticsearch.requests.clear()
    wanted = {"field": "id", "operator": "in", "value": [f"{number:05d}" for number in range(50)]}
    found = store.filter_documents({"operator": "AND", "conditions": [wanted, TENANT]})
    assert len(found) == 50
    assert len(elasticsearch.requests) == 1
    assert elasticsearch.requests[0].body["query"]["bool"]["filter"] == {
        "bool": {"must": [{"terms": {"id": wanted["value"]}}, {"bool": {"must": [{"term": {"tenant_id": "a"}}]}}]}
    }


def test_ids_are_listed_beyond_ten_thousand(store, elasticsearch):
    elasticsearch.indexes["children"] = {f"{n:05d}": {"id": f"{n:05d}", "tenant_id": "a"} for n in range(25_000)}
    assert len(store.list_ids(TENANT)) == 25_000
    searches = elasticsearch.sent("POST", "/_search")
    assert [request.body.get("search_after") for request in searches] == [None, ["09999"], ["19999"]]
    assert all(request.body["_source"] is False for request in searches)


def test_the_words_query_is_exact_and_under_the_tenants_filter(store, elasticsearch):
    store.write_documents([passage(1), passage(2, "b")], policy=ALL)
    found = ElasticsearchBM25Retriever(document_store=store, top_k=7).run("salt of 2024", filters=TENANT)["documents"]
    assert [document.id for document in found] == ["00001"]
    words = {"query": "salt of 2024", "fuzziness": "0", "type": "most_fields", "operator": "OR"}
    tenants = {"bool": {"must": [{"term": {"tenant_id": "a"}}]}}
    assert elasticsearch.sent("POST", "/_search")[-1].body == {
        "size": 7, "_source": {"includes": ["id", *HIT_FIELDS]}, "track_total_hits": False,
        "query": {"bool": {"must": [{"multi_match": words}], "filter": tenants}},
    }  # fmt: skip
    ElasticsearchBM25Retriever(document_store=store, fuzziness="1").run("2024", filters=TENANT)
    assert (
        elasticsearch.sent("POST", "/_search")[-1].body["query"]["bool"]["must"][0]["multi_match"]["fuzziness"] == "1"
    )


def test_other_settings_come_from_the_file_and_change_no_words(elasticsearch):
    settings = {"refresh_interval": "30s", "codec": "best_compression", "analysis": {}}
    store = ElasticsearchStore("bulk", shards=3, settings=settings)
    store.set_up()
    made = elasticsearch.sent("PUT", "/bulk")[0].body["settings"]["index"]
    assert (made["number_of_shards"], made["refresh_interval"], made["codec"]) == (3, "30s", "best_compression")
    assert made["analysis"]["analyzer"]
    assert ElasticsearchStore.from_dict(store.to_dict()).settings == settings
