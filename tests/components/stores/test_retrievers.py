import math

import pytest
from haystack.dataclasses import Document
from haystack.errors import FilterError
from hypothesis import given, settings
from hypothesis import strategies as st

from shiguan.errors import RefusedError
from shiguan.stores.embedded.qdrant_edge_bm25_retriever import QdrantEdgeBM25Retriever
from shiguan.stores.embedded.qdrant_edge_document_store import QdrantEdgeDocumentStore
from shiguan.stores.embedded.qdrant_edge_embedding_retriever import QdrantEdgeEmbeddingRetriever
from shiguan.tenants import of_tenant as tenant

K1, B, AVERAGE = 1.2, 0.75, 200.0


ALL = {"field": "id", "operator": "!=", "value": ""}
"""A retriever takes no question without filters."""


@pytest.fixture
def store(tmp_path):
    store = QdrantEdgeDocumentStore(path=str(tmp_path), embedding_dim=2).unscoped()
    yield store
    store.close()


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """Four documents, which no test changes."""
    store = QdrantEdgeDocumentStore(path=str(tmp_path_factory.mktemp("filled")), embedding_dim=2).unscoped()
    rows = [
        ("a", "rebellion army army", [1.0, 0.0], "one"),
        ("b", "army river", [0.6, 0.8], "one"),
        ("c", "他的书", [0.0, 2.0], "two"),
        ("d", "安禄山反于范阳", None, "two"),
    ]
    for name, content, embedding, owner in rows:
        meta = {"tenant_id": owner, "parent_id": f"p{name}", "start": 0, "end": len(content), "section": ["I", "II"]}
        store.write_documents([Document(id=name, content=content, embedding=embedding, meta=meta)])
    return store


def bm25(tf, length, n, total):
    idf = math.log(1 + (total - n + 0.5) / (n + 0.5))
    return idf * tf * (K1 + 1) / (tf + K1 * (1 - B + B * length / AVERAGE))


def ids(result):
    return [document.id for document in result["documents"]]


def write(store, name, *, content=None, embedding=None, language=None):
    """A document of the tenant `one`; what states no language has none."""
    meta = {"tenant_id": "one", "language": language}
    store.write_documents([Document(id=name, content=content, embedding=embedding, meta=meta)])


@pytest.fixture
def searched(monkeypatch):
    """The last condition of the filters of every search, as operator and value; None where there is but the tenant's."""
    asked = []

    def noted(search):
        def call(self, question, filters, **named):
            last = filters["conditions"][-1] if len(filters.get("conditions", [])) > 1 else None
            asked.append(last and (last["operator"], last["value"]))
            return search(self, question, filters, **named)

        return call

    for name in ("bm25_retrieval", "embedding_retrieval"):
        monkeypatch.setattr(QdrantEdgeDocumentStore, name, noted(getattr(QdrantEdgeDocumentStore, name)))
    return asked


def test_bm25_scores_are_those_of_the_formula(filled):
    documents = QdrantEdgeBM25Retriever(filled).run("army rebellion", ALL)["documents"]
    # "army" is in two of four documents, "rebellion" in one; lengths are 3 and 2 terms.
    expected = {"a": bm25(2, 3, 2, 4) + bm25(1, 3, 1, 4), "b": bm25(1, 2, 2, 4)}
    assert {d.id: d.score for d in documents} == pytest.approx(expected, rel=1e-5)
    # The same in figures, worked out by hand: a is 0.6931 * 4.4 / 2.3135 + 1.2040 * 2.2 / 1.3135, b 0.6931 * 2.2 / 1.309.
    assert [round(d.score, 3) for d in documents] == [3.335, 1.165]
    # A word twice in the question counts once.
    assert QdrantEdgeBM25Retriever(filled).run("army army rebellion", ALL)["documents"] == documents


def test_modern_grammar_tells_little_where_its_characters_are_rare(store):
    passages = {"a": "勤于政事", "b": "射的中之", "c": "鼓角齐鸣"}
    store.write_documents([Document(id=i, content=c, meta={"tenant_id": "t"}) for i, c in passages.items()])
    documents = QdrantEdgeBM25Retriever(store).run("勤奋的将军", ALL)["documents"]
    # 勤 and 的 are in one passage of three each, of 4 characters and 3 pairs; 的 counts .3, its pairs are in none.
    expected = {"a": bm25(1, 7, 1, 3), "b": 0.3 * bm25(1, 7, 1, 3)}
    assert {d.id: d.score for d in documents} == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("书", ["c"]), ("書", ["c"]), ("安祿山", ["d"]), ("范陽", ["d"]), ("armies", ["a", "b"]),
        ("REBELLIONS!", ["a"]), ("", []), ("  \n", []), ("the of what", []), ("，。？", []), ("unheard", []),
    ],
)  # fmt: skip
def test_what_a_question_finds(filled, query, found):
    assert ids(QdrantEdgeBM25Retriever(filled).run(query, ALL)) == found


def test_hits_are_light(filled):
    (light,) = QdrantEdgeBM25Retriever(filled, top_k=1).run("army", ALL)["documents"]
    assert (light.content, light.embedding) == (None, None)
    assert light.meta == {"tenant_id": "one", "parent_id": "pa", "start": 0, "end": 19}
    (vector_hit,) = QdrantEdgeEmbeddingRetriever(filled, top_k=1).run([1.0, 0.0], ALL)["documents"]
    assert (vector_hit.content, vector_hit.embedding, vector_hit.meta) == (None, None, light.meta)


def test_every_search_goes_under_its_filters(filled):
    words, vectors = QdrantEdgeBM25Retriever(filled), QdrantEdgeEmbeddingRetriever(filled)
    assert ids(words.run("army 书", filters=tenant("one"))) == ["a", "b"]
    assert ids(words.run("army 书", filters=tenant("two"))) == ["c"]
    assert ids(vectors.run([0.0, 1.0], filters=tenant("one"))) == ["b", "a"]
    assert ids(vectors.run([0.0, 1.0], filters=tenant("two"))) == ["c"]
    assert ids(vectors.run([0.0, 1.0], filters=tenant("nobody"))) == []


@pytest.mark.parametrize("filters", [None, {}])
def test_a_search_without_filters_is_refused_and_says_what_to_connect(filled, filters):
    for search in (
        lambda: QdrantEdgeBM25Retriever(filled).run("army", filters),
        lambda: QdrantEdgeEmbeddingRetriever(filled).run([0.0, 1.0], filters),
    ):
        with pytest.raises(RefusedError, match=r"Connect `TenantFilter\.filters`"):
            search()
    for query in ("army", "the"):
        with pytest.raises(FilterError):
            QdrantEdgeBM25Retriever(filled).run(query, filters={"operator": "AND"})


def test_every_language_has_a_list_of_its_own(store):
    for number in range(5):
        write(store, f"e{number}", content="army", embedding=[1.0, 0.1 * number], language="en")
    write(store, "z1", content="安禄山", embedding=[0.0, 1.0], language="zh")
    write(store, "z2", content="安禄山之军", embedding=[0.1, 1.0], language="zh")
    words, vectors = QdrantEdgeBM25Retriever(store, top_k=2), QdrantEdgeEmbeddingRetriever(store, top_k=2)
    assert set(ids(words.run("army, army, army, army of An Lushan", tenant("one")))) == {"e0", "e1", "z1", "z2"}
    assert ids(vectors.run([1.0, 0.0], tenant("one"))) == ["e0", "e1", "z2", "z1"]
    # What states no language is in the second list, and ends the search.
    write(store, "n", content="army", embedding=[0.9, 1.0])
    assert ids(vectors.run([1.0, 0.0], tenant("one"))) == ["e0", "e1", "n", "z2"]


def test_the_last_language_is_named_unless_some_documents_have_none(store, searched):
    vectors = QdrantEdgeEmbeddingRetriever(store, top_k=1)
    write(store, "e", embedding=[1.0, 0.1], language="en")
    assert ids(vectors.run([1.0, 0.0], tenant("one"))) == ["e"]
    assert searched == [None], "a library of one language is searched once"
    searched.clear()
    write(store, "z", embedding=[0.1, 1.0], language="zh")
    assert ids(vectors.run([1.0, 0.0], tenant("one"))) == ["e", "z"]
    assert searched == [None, ("==", "zh")]
    searched.clear()
    write(store, "n", embedding=[0.5, 1.0])
    assert ids(vectors.run([1.0, 0.0], tenant("one"))) == ["e", "n"]
    assert searched == [None, ("not in", ["en"])]


@pytest.fixture
def bilingual(store):
    write(store, "e1", content="The whalers of Nantucket sailed", language="en")
    write(store, "e2", content="A ship", language="en")
    write(store, "z1", content="南海有鲸", language="zh")
    write(store, "z2", content="买船", language="zh")
    return store


def test_other_languages_are_searched_by_translations(bilingual):
    words = QdrantEdgeBM25Retriever(bilingual, top_k=2)
    assert set(ids(words.run("the whale", tenant("one")))) == {"z1"}
    assert set(ids(words.run("鲸", tenant("one")))) == {"z1"}
    assert set(ids(words.run("捕鲸船，船", tenant("one")))) == {"z1", "z2", "e1", "e2"}
    # A library without the question's language is searched by them alone.
    chinese = {"field": "meta.language", "operator": "==", "value": "zh"}
    assert ids(words.run("the whale", tenant("one", chinese))) == ["z1"]


def test_words_of_the_other_language_are_searched_with_a_filter_that_names_it(bilingual, searched):
    words = QdrantEdgeBM25Retriever(bilingual)
    assert ids(words.run("the whale", tenant("one"))) == ["z1"]
    assert searched == [("==", "en"), ("==", "zh")]
    searched.clear()
    # What states no language is in neither list of one language, so it is searched with the other one.
    write(bilingual, "n", content="the whale")
    assert set(ids(words.run("the whale", tenant("one")))) == {"z1", "n"}
    assert searched == [("==", "en"), ("not in", ["en"])]


def test_top_k_is_for_this_call(filled):
    retriever = QdrantEdgeBM25Retriever(filled, top_k=2)
    assert len(retriever.run("army 书", ALL)["documents"]) == 2
    assert len(retriever.run("army 书", ALL, top_k=1)["documents"]) == 1
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="top_k"):
            retriever.run("army", ALL, top_k=wrong)
        with pytest.raises(ValueError, match="top_k"):
            QdrantEdgeEmbeddingRetriever(filled).run([1.0, 0.0], ALL, top_k=wrong)


@pytest.mark.parametrize("embedding", [[1.0], [1.0, float("inf")], [[1.0, 0.0]]])
def test_a_question_whose_embedding_does_not_fit_is_refused(filled, embedding):
    with pytest.raises(ValueError, match="question's embedding"):
        QdrantEdgeEmbeddingRetriever(filled).run(embedding, ALL)


def test_embedding_scores_are_cosines_and_what_no_model_embedded_finds_nothing(filled):
    documents = QdrantEdgeEmbeddingRetriever(filled).run([2.0, 0.0], ALL)["documents"]
    # Whatever the lengths of the vectors; a document without one is not found.
    assert [(d.id, round(d.score, 6)) for d in documents] == [("a", 1.0), ("b", 0.6), ("c", 0.0)]
    assert QdrantEdgeEmbeddingRetriever(filled).run(query_embedding=[])["documents"] == []


@settings(max_examples=4)
@given(order=st.permutations([f"id{n:02}" for n in range(30)]), top_k=st.integers(1, 31))
def test_equal_scores_come_by_id_whatever_the_order_of_writing(tmp_path_factory, order, top_k):
    store = QdrantEdgeDocumentStore(path=str(tmp_path_factory.mktemp("ties")), embedding_dim=2).unscoped()
    store.write_documents([Document(id=id_, content="same words", embedding=[0.6, 0.8]) for id_ in order])
    expected = sorted(order)[:top_k]
    assert ids(QdrantEdgeBM25Retriever(store, top_k=top_k).run("words", ALL)) == expected
    assert ids(QdrantEdgeEmbeddingRetriever(store, top_k=top_k).run([1.0, 1.0], ALL)) == expected
    store.close()


def test_fields_named_in_the_store_are_searched_too(tmp_path):
    store = QdrantEdgeDocumentStore(path=str(tmp_path), embedding_dim=2, bm25_fields=["title", "section"]).unscoped()
    meta = {"title": "Moby-Dick", "section": ["Loomings", "鯨魚"], "other": "hidden"}
    store.write_documents([Document(id="a", content="Call me Ishmael", meta=meta), Document(id="b", content="whale")])
    retriever = QdrantEdgeBM25Retriever(store)
    for query in ("moby", "looming", "鲸", "ishmael"):
        assert ids(retriever.run(query, ALL)) == ["a"]
    assert ids(retriever.run("hidden", ALL)) == []
    store.close()


def test_a_name_is_found_in_both_scripts_however_it_is_spelled(store):
    texts = ["郭子仪收复长安。", "Guo Ziyi retook the capital.", "李光弼守河阳。", "Zhang Xun held the town."]
    store.write_documents([Document(id=text, content=text, meta={"tenant_id": "one"}) for text in texts])
    assert set(ids(QdrantEdgeBM25Retriever(store).run("Who was Kuo Tzu-i?", tenant("one")))) == set(texts[:2])


def test_another_name_finds_what_is_said_of_a_person_where_the_tenants_own_library_says_it(store):
    rows = [
        ("杜甫，字子美，襄阳人。", "one"), ("乾元二年杜甫弃官。", "one"), ("李光弼守河阳。", "one"),
        ("乾元二年杜甫弃官。", "two"),
        ("Mark Twain, born Samuel Clemens, wrote.", "two"), ("Twain lost a fortune.", "two"),
    ]  # fmt: skip
    documents = [
        Document(id=str(at), content=text, meta={"tenant_id": owner, "language": "zh" if at < 4 else "en"})
        for at, (text, owner) in enumerate(rows)
    ]
    store.write_documents(documents)
    retriever = QdrantEdgeBM25Retriever(store)

    def found(question, owner):
        return {document.id for document in retriever.run(question, filters=tenant(owner))["documents"]}

    assert found("子美在哪？", "one") == {"0", "1"}
    assert found("子美在哪？", "two") == set()
    assert found("Samuel Clemens?", "two") == {"4", "5"}
