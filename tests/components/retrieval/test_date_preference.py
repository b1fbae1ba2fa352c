import pytest
from haystack import Document
from haystack.document_stores.in_memory import InMemoryDocumentStore

from shiguan.ingest.chronology import with_times
from shiguan.retrieval.language_balancer import prefer_dates
from shiguan.stores.embedded.qdrant_edge_document_store import QdrantEdgeDocumentStore
from shiguan.tenants import during, of_tenant

TENANT = of_tenant("t")
RECORDS = [
    "【齐纪 建元元年正月（甲辰）】\n以萧嶷为都督。", "府州仪物，务存俭约。", "二月，丙子，友卒。",
    "三月，癸卯，宋帝禅位。", "二年春正月戊戌朔，大赦。", "二月，丁卯，魏人攻。",
]  # fmt: skip


@pytest.fixture
def store(tmp_path):
    store = QdrantEdgeDocumentStore("children", path=str(tmp_path), embedding_dim=3)
    children = [
        Document(
            id=str(at), content=text,
            meta={"parent_id": f"p{at}", "file_id": "f", "source_id": "s", "tenant_id": "t", "position": at, "title": "t"},
        )
        for at, text in enumerate(RECORDS)
    ]  # fmt: skip
    store.write_documents(with_times(children, []))
    yield store
    store.close()


def _found(store, *contents):
    by_text = {document.content: document for document in store.filter_documents(TENANT)}
    return [Document(id=by_text[text].id, meta=by_text[text].meta, score=score) for text, score in contents]


def _texts(store, documents):
    names = {document.id: document.content for document in store.filter_documents(TENANT)}
    return [names[document.id] for document in documents]


def test_all_that_a_month_has_comes_first_where_nothing_else_is_asked(store):
    joined = _found(store, (RECORDS[4], 5.0), (RECORDS[0], 3.0))
    documents = prefer_dates("《资治通鉴·齐纪》在建元元年正月记载了什么？", joined, store, TENANT)
    # The second record has no date of its own and no word of the question.
    assert _texts(store, documents) == [RECORDS[0], RECORDS[1], RECORDS[4]]
    assert [document.score for document in documents] == [8.0, 5.0, 5.0]
    # A question in western years finds years of reigns.
    assert _texts(store, prefer_dates("What happened in the year 480?", [], store, TENANT)) == RECORDS[4:]


def test_beside_a_subject_a_time_that_words_do_not_say_is_worth_a_quarter(store):
    joined = _found(store, (RECORDS[3], 4.0), (RECORDS[4], 3.6), (RECORDS[5], 3.5))
    documents = prefer_dates("齐建元二年魏人攻何处？", joined, store, TENANT)
    assert _texts(store, documents) == [RECORDS[5], RECORDS[3], RECORDS[4]]
    # The fifth record says its year itself, in the words of the question.
    assert [document.score for document in documents] == [4.5, 4.0, 3.6]


def test_without_a_time_or_with_one_that_does_not_exist_nothing_changes(store):
    joined = _found(store, (RECORDS[3], 4.0), (RECORDS[5], 3.0))
    assert prefer_dates("魏人攻何处？", joined, store, TENANT) == joined
    assert prefer_dates("天宝十六载记载了什么？", joined, store, TENANT) == joined
    joined = [Document(id="a", content="x", score=2.0), Document(id="b", content="y", score=1.0)]
    assert prefer_dates("What happened in 755?", joined, InMemoryDocumentStore(), TENANT) == joined


def test_a_filter_by_years_takes_what_falls_between_them(store):
    def between(first, last):
        return [one.content for one in store.filter_documents(of_tenant("t", during(first, last)))]

    assert between(480, 480) == RECORDS[4:]
    assert between(400, 479) == RECORDS[:4]
    assert between(481, 900) == []
