import math

import pytest
from haystack import Document
from hypothesis import given
from hypothesis import strategies as st

from shiguan.retrieval.language_balancer import LanguageBalancer


def hit(name, score, language):
    return Document(id=name, content="", score=score, meta={"language": language})


FOUND = [hit("a", 2.0, "en"), hit("x", 1.0, "zh"), hit("b", 0.5, "en")]


def scores(**given):
    found = LanguageBalancer().run(documents=FOUND, **given)["documents"]
    return {document.id: document.score for document in found}


def test_without_evidence_nothing_changes():
    assert scores() == {"a": 2.0, "x": 1.0, "b": 0.5}
    assert scores(nearest=[hit("a", 0.0, "en")], lacking={"fr": 0.5}) == {"a": 2.0, "x": 1.0, "b": 0.5}


def test_a_language_farther_away_counts_less_by_the_fourth_power():
    nearest = [hit("x", 0.9, "zh"), hit("y", 0.8, "zh"), hit("a", 0.45, "en")]
    assert scores(nearest=nearest) == pytest.approx({"x": 1.0, "a": 2 / 16, "b": 0.5 / 16})
    assert list(scores(nearest=nearest)) == ["x", "a", "b"]


def test_a_language_that_nearest_does_not_have_counts_whole():
    assert scores(nearest=[hit("a", 0.9, "en")])["x"] == 1.0


@pytest.mark.parametrize(("lacking", "weight"), [(0.0, 1.0), (0.3, math.exp(-1)), (0.6, math.exp(-2))])
def test_a_language_counts_less_that_lacks_the_questions_words(lacking, weight):
    assert scores(lacking={"en": lacking}) == pytest.approx({"a": 2 * weight, "x": 1.0, "b": 0.5 * weight})


@given(
    st.dictionaries(st.sampled_from(["en", "zh"]), st.floats(0, 1)),
    st.lists(st.tuples(st.sampled_from(["en", "zh", "fr"]), st.floats(-1, 1)), max_size=5),
)
def test_within_a_language_the_order_stays_and_nobody_gains(lacking, nearest):
    found = scores(
        lacking=lacking, nearest=[hit(str(n), score, language) for n, (language, score) in enumerate(nearest)]
    )
    assert found["a"] >= found["b"] >= 0
    assert all(found[document.id] <= document.score for document in FOUND)


def test_what_came_in_is_not_changed():
    LanguageBalancer().run(documents=FOUND, lacking={"en": 0.4})
    assert [document.score for document in FOUND] == [2.0, 1.0, 0.5]
    assert LanguageBalancer().run(documents=[]) == {"documents": []}
