import math

import pytest
from haystack import Document
from haystack.document_stores.in_memory import InMemoryDocumentStore
from hypothesis import given
from hypothesis import strategies as st

from shiguan.errors import RefusedError
from shiguan.retrieval.language_balancer import LanguageBalancer
from shiguan.stores.embedded.qdrant_edge_document_store import QdrantEdgeDocumentStore
from shiguan.text.terms import covered, question_weights

TENANT = {"field": "meta.tenant_id", "operator": "==", "value": "one"}


def hit(name, score, language):
    return Document(id=name, content="", score=score, meta={"language": language})


FOUND = [hit("a", 2.0, "en"), hit("x", 1.0, "zh"), hit("b", 0.5, "en")]


def scores(query="Who?", store=None, **given):
    balancer = LanguageBalancer(store or InMemoryDocumentStore())
    found = balancer.run(query, documents=FOUND, filters=TENANT, **given)["documents"]
    return {document.id: document.score for document in found}


@pytest.fixture
def bilingual(tmp_path):
    store = QdrantEdgeDocumentStore(path=str(tmp_path), embedding_dim=2)
    write(store, e="The whalers of Nantucket sailed a ship", z="南海有鲸，买船")
    yield store
    store.close()


def write(store, **texts):
    metas = {"e": {"tenant_id": "one", "language": "en"}, "z": {"tenant_id": "one", "language": "zh"}}
    store.write_documents([Document(id=name, content=text, meta=metas[name[0]]) for name, text in texts.items()])


def test_a_language_farther_away_counts_less_by_the_fourth_power():
    assert scores() == scores(nearest=[hit("a", 0.0, "en")]) == {"a": 2.0, "x": 1.0, "b": 0.5}
    nearest = [hit("x", 0.9, "zh"), hit("y", 0.8, "zh"), hit("a", 0.45, "en")]
    assert scores(nearest=nearest) == pytest.approx({"x": 1.0, "a": 2 / 16, "b": 0.5 / 16})
    assert list(scores(nearest=nearest)) == ["x", "a", "b"]
    assert scores(nearest=[hit("a", 0.9, "en")])["x"] == 1.0  # of a language that is not there, all


@pytest.mark.parametrize(
    ("query", "english", "chinese"),
    [
        ("Nantucket", 0.0, 0.8),  # known in English alone, counted up to .8
        ("Queequeg", 0.0, 0.0),  # known nowhere
        ("Nanhai", 0.8, 0.0),  # known by sound in Chinese alone
        ("Nanhai Nantucket", 0.0, 0.0),  # each knows one of two names
        ("...", 0.0, 0.0),
    ],
)
def test_a_language_counts_less_that_lacks_words_of_the_question(bilingual, query, english, chinese):
    en, zh = (math.exp(-lacking / 0.3) for lacking in (english, chinese))
    assert scores(query, bilingual) == pytest.approx({"a": 2 * en, "x": zh, "b": 0.5 * en})


def test_words_are_known_in_translation_and_a_library_of_one_language_has_nothing_to_weigh(bilingual):
    lacking = 0.8 - covered(question_weights("捕鲸船"), {"鲸", "船"})
    assert scores("捕鲸船", bilingual)["x"] == pytest.approx(math.exp(-lacking / 0.3))
    bilingual.unscoped().delete_documents(["z"])
    assert scores("Nanhai", bilingual)["a"] == 2.0


def test_a_name_is_known_in_each_language_that_has_it_whichever_has_the_best_passage(bilingual):
    write(bilingual, z2="Nantucket Nantucket 港")
    assert scores("Nantucket", bilingual)["a"] == 2.0
    assert [document.score for document in FOUND] == [2.0, 1.0, 0.5]  # which came in and are not changed
    assert scores("Nanhai Nantucket", bilingual)["a"] == pytest.approx(2 * math.exp(-1))


def test_without_a_tenant_nothing_is_looked_up(bilingual):
    with pytest.raises(RefusedError, match="filters"):
        LanguageBalancer(bilingual).run("Nantucket", documents=FOUND)


@given(st.lists(st.tuples(st.sampled_from(["en", "zh", "fr"]), st.floats(-1, 1)), max_size=5))
def test_within_a_language_the_order_stays_and_nobody_gains(nearest):
    found = scores(nearest=[hit(str(n), score, language) for n, (language, score) in enumerate(nearest)])
    assert found["a"] >= found["b"] >= 0
    assert all(found[document.id] <= document.score for document in FOUND)


def test_it_says_where_nothing_could_be_found(bilingual):
    other = {**TENANT, "value": "two"}
    [told] = LanguageBalancer(bilingual).run("Who?", documents=[], filters=other)["warnings"]
    assert told.startswith("Nothing was searched: the library is empty")
    assert LanguageBalancer(bilingual).run("Who?", documents=[], filters=TENANT) == {"documents": [], "warnings": []}


def test_it_says_by_which_other_names_the_library_was_searched(bilingual):
    write(bilingual, z2="杜甫，字子美。")
    warnings = LanguageBalancer(bilingual).run("子美是谁？", documents=FOUND, filters=TENANT)["warnings"]
    assert warnings == ["也按“杜甫”检索：据书库，这是“子美”的别名。"]
    elsewhere = {**TENANT, "value": "two"}
    assert LanguageBalancer(bilingual).run("子美是谁？", documents=FOUND, filters=elsewhere)["warnings"] == []
