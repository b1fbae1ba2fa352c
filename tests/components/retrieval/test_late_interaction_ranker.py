"""Vectors of two dimensions, so that every cosine can be checked by eye."""

import itertools
import math

import numpy as np
import pytest
from haystack import Document, Pipeline
from hypothesis import given
from hypothesis import strategies as st

from shiguan.errors import StoreError, StoreFormatError
from shiguan.retrieval import late_interaction_ranker
from shiguan.retrieval.late_interaction_ranker import LateInteractionRanker
from shiguan.support.token_encoder import EncodedText
from shiguan.support.token_vectors import TokenVectors

pytestmark = pytest.mark.transformers

EAST, NORTH, WEST = (1.0, 0.0), (0.0, 1.0), (-1.0, 0.0)
BETWEEN = (math.sqrt(0.5), math.sqrt(0.5))
QUESTION = "Who was there?"


class Vectors:
    """A store that keeps token vectors of children in a dictionary; token 1 is in every child, token 2 in none."""

    def __init__(self, children=None, *, error=None, stored=None):
        self.children = children or {}
        self.error = error
        self.stored = stored or []
        self.asked = []
        self.filters = []

    def to_dict(self):
        return {"type": "test.Vectors", "init_parameters": {}}

    def filter_documents(self, filters=None):
        self.filters.append(filters)
        return self.stored

    def token_vectors(self, child_ids, model):
        self.asked.append((list(child_ids), model))
        if self.error:
            raise self.error
        if not self.children:
            return None
        found = [child for child in child_ids if child in self.children]
        rows = [row for child in found for row in self.children[child]]
        count = len(self.children)
        return TokenVectors(
            ids=found,
            bounds=np.cumsum([0, *(len(self.children[child]) for child in found)]),
            values=np.round(np.array(rows).reshape(-1, 2) * 127).astype(np.int8),
            scales=np.full(len(rows), 1 / 127, np.float32),
            projection=None,
            frequencies=np.array([0, count, 0], np.int32),
            children=count,
        )


class Questions:
    """Stands for the model: token 1 of a question points east, token 2 north."""

    def __init__(self, tokens):
        self.tokens = tokens

    def warm_up(self):
        """Nothing to load."""

    def encode(self, text):
        vectors = np.array([{1: EAST, 2: NORTH}[token] for token in self.tokens], np.float32).reshape(-1, 2)
        return EncodedText(np.zeros(2, np.float32), np.array(self.tokens, np.int32), vectors)


@pytest.fixture(autouse=True)
def tokens(monkeypatch):
    """What the question is made of: by default one token, east."""
    asked = [1]
    monkeypatch.setattr(late_interaction_ranker, "question_encoder", lambda model: Questions(asked))
    return asked


def parent(name, *children, score=0.5, **meta):
    matches = [{"child_id": child, "start": 0, "end": 1, "score": 1.0} for child in children]
    return Document(id=name, content=name, score=score, meta={"matches": matches, "tenant_id": "t", **meta})


def ranker(children=None, **parameters):
    return LateInteractionRanker(Vectors(children), **{"weight": 1.0, **parameters})


def names(result):
    return "".join(document.id for document in result["documents"])


def similarity(result):
    return {document.id: document.meta.get("late_interaction") for document in result["documents"]}


def test_a_passage_is_as_near_as_its_best_child():
    children = {"a1": [WEST], "a2": [BETWEEN, NORTH], "b1": [EAST], "c1": [NORTH]}
    result = ranker(children).run(QUESTION, [parent("a", "a1", "a2"), parent("b", "b1"), parent("c", "c1")])
    assert names(result) == "bac"
    assert similarity(result) == {"b": 1.0, "a": pytest.approx(0.709, abs=1e-3), "c": 0.0}
    assert result["ranking"][0] == {
        "id": "b", "rank_before": 2, "rank": 1, "score": 1.0, "ranked_by": "late_interaction", "late_interaction": 1.0,
    }  # fmt: skip
    assert (result["skipped"], result["warnings"]) == ("", [])


def test_rare_tokens_of_the_question_count_more(tokens):
    """Of two children: N = 2, idf of token 1 (in both) is ln(1 + .5/2.5) = .182, of token 2 (in none) ln 6 = 1.792."""
    tokens[:] = [1, 2]
    result = ranker({"a1": [EAST], "b1": [NORTH]}).run(QUESTION, [parent("a", "a1"), parent("b", "b1")])
    assert names(result) == "ba"
    assert similarity(result) == {"b": pytest.approx(1.792 / 1.974, abs=1e-3), "a": pytest.approx(0.0924, abs=1e-3)}


def test_a_question_of_frequent_words_alone_is_ranked_by_them(tokens):
    tokens[:] = [1, 1, 1]
    result = ranker({"a1": [NORTH], "b1": [EAST]}).run("the the the", [parent("a", "a1"), parent("b", "b1")])
    assert names(result) == "ba"
    assert similarity(result) == {"b": 1.0, "a": 0.0}


def test_each_token_may_meet_another_child_where_the_whole_passage_counts(tokens):
    tokens[:] = [1, 2]
    store = Vectors({"a1": [EAST], "a2": [NORTH], "b1": [BETWEEN]})
    store.stored = [Document(id="a2", content="", meta={"parent_id": "a", "tenant_id": "t"})]
    documents = [parent("a", "a1"), parent("b", "b1")]
    by_child = LateInteractionRanker(store, weight=1.0).run(QUESTION, documents)
    by_parent = LateInteractionRanker(store, weight=1.0, scope="parent").run(
        QUESTION, documents, filters={"field": "meta.tenant_id", "operator": "==", "value": "t"}
    )
    assert (names(by_child), names(by_parent)) == ("ba", "ab")
    assert similarity(by_parent)["a"] == 1.0
    assert store.filters == [
        {
            "operator": "AND",
            "conditions": [
                {"field": "meta.parent_id", "operator": "in", "value": ["a", "b"]},
                {"field": "meta.tenant_id", "operator": "==", "value": "t"},
            ],
        }
    ]


def test_passages_without_vectors_keep_their_places_and_the_others_are_ranked_around_them():
    children = {"b1": [NORTH], "d1": [BETWEEN], "e1": [EAST]}
    documents = [parent(name, f"{name}1") for name in "abcde"]
    result = ranker(children).run(QUESTION, documents)
    assert names(result) == "aecdb"
    assert [entry["ranked_by"] for entry in result["ranking"]] == [
        "fusion", "late_interaction", "fusion", "late_interaction", "late_interaction",
    ]  # fmt: skip
    scores = [document.score for document in result["documents"]]
    assert scores == sorted(set(scores), reverse=True)
    assert similarity(result)["a"] is None


def test_a_child_without_tokens_counts_as_one_without_vectors():
    children = {"a1": [], "b1": [NORTH], "c1": [], "d1": [EAST]}
    documents = [parent("a", "a1"), parent("b", "b1", "c1"), parent("d", "d1")]
    assert names(ranker(children).run(QUESTION, documents)) == "adb"
    assert ranker({"a1": []}).run(QUESTION, [parent("a", "a1")])["skipped"] == (
        "none of the passages found has token vectors"
    )


def test_both_orders_are_fused_by_their_ranks():
    """Fused order a b c, late order c b a. With weight .5 a and c tie, and the older order decides between them."""
    children = {"a1": [WEST], "b1": [NORTH], "c1": [EAST]}
    documents = [parent(name, f"{name}1") for name in "abc"]
    orders = {weight: ranker(children, weight=weight, rrf_k=1).run(QUESTION, documents) for weight in (0, 0.5, 0.9, 1)}
    assert {weight: names(result) for weight, result in orders.items()} == {0: "abc", 0.5: "acb", 0.9: "cba", 1: "cba"}
    assert [document.score for document in orders[0.9]["documents"]] == pytest.approx(
        [2 * (0.9 / 2 + 0.1 / 4), 2 * (0.9 / 3 + 0.1 / 3), 2 * (0.9 / 4 + 0.1 / 2)]
    )
    tied = [document.score for document in orders[0.5]["documents"]]
    assert tied[0] == 0.75
    assert tied[1] < tied[0]


def test_a_document_without_matches_stands_for_its_own_child():
    flat = [Document(id="a", content="a"), Document(id="b", content="b")]
    assert names(ranker({"a": [NORTH], "b": [EAST]}).run(QUESTION, flat)) == "ba"


def test_a_language_that_the_model_does_not_know_keeps_the_fused_order():
    documents = [parent("a", "a1", score=0.9), parent("b", "b1", score=0.8)]
    store = Vectors({"a1": [NORTH], "b1": [EAST]})
    result = LateInteractionRanker(store, languages=["en"]).run("鹽稅始於何時？", documents)
    assert [(document.id, document.score) for document in result["documents"]] == [("a", 0.9), ("b", 0.8)]
    assert result["warnings"] == [
        "Passages stand in the order of the fusion: late interaction knows en, the question is in zh."
    ]
    assert store.asked == []


@pytest.mark.parametrize("query", ["", "   ", "?!"])
def test_a_question_without_words_keeps_the_fused_order(tokens, query):
    tokens[:] = []
    documents = [parent("a", "a1"), parent("b", "b1")]
    children = {"a1": [NORTH], "b1": [EAST]}
    for languages in (None, ["en"]):
        result = ranker(children, languages=languages).run(query, documents)
        assert names(result) == "ab"
        assert result["skipped"] == "the question has no words to compare"


def test_a_library_without_token_vectors_is_not_ranked_and_says_so():
    result = ranker().run(QUESTION, [parent("a", "a1"), parent("b", "b1")])
    assert names(result) == "ab"
    assert "ingested without token vectors" in result["warnings"][0]


def test_vectors_of_another_model_are_refused():
    store = Vectors(error=StoreFormatError("The token vectors are those of `x`."))
    with pytest.raises(StoreFormatError, match="those of `x`"):
        LateInteractionRanker(store).run(QUESTION, [parent("a", "a1")])


def test_vectors_that_cannot_be_read_cost_the_order_and_not_the_answer():
    result = LateInteractionRanker(Vectors(error=StoreError("The file is damaged."))).run(QUESTION, [parent("a", "a1")])
    assert names(result) == "a"
    assert result["skipped"] == "the token vectors cannot be read (The file is damaged.)"


def test_no_passages_are_no_case_for_the_store():
    store = Vectors({"a1": [EAST]})
    nothing = {"documents": [], "ranking": [], "skipped": "", "warnings": []}
    assert LateInteractionRanker(store).run(QUESTION, []) == nothing
    assert LateInteractionRanker(store).run(QUESTION, [parent("a", "a1")], top_k=0) == nothing
    assert store.asked == []


@pytest.mark.parametrize(("top_k", "expected"), [(None, "cb"), (1, "c"), (9, "cba")])
def test_top_k_of_the_call_overrides_that_of_the_pipeline(top_k, expected):
    children = {"a1": [WEST], "b1": [NORTH], "c1": [EAST]}
    documents = [parent(name, f"{name}1") for name in "abc"]
    assert names(ranker(children, top_k=2).run(QUESTION, documents, top_k=top_k)) == expected


def test_only_the_children_that_matched_are_read_and_each_once():
    store = Vectors({"a1": [EAST]})
    LateInteractionRanker(store, model="m").run(QUESTION, [parent("a", "a1", "a2"), parent("b", "a1")])
    assert store.asked == [(["a1", "a2"], "m")]


def test_inputs_are_not_changed():
    given_one = parent("a", "a1")
    before = given_one.to_dict()
    ranker({"a1": [EAST]}).run(QUESTION, [given_one])
    assert given_one.to_dict() == before


@given(
    angles=st.lists(st.none() | st.floats(0, 2 * math.pi), min_size=1, max_size=12),
    weight=st.floats(0, 1),
    top_k=st.integers(1, 15),
)
def test_every_passage_comes_back_once_and_scores_fall_along_the_order(angles, weight, top_k):
    children = {f"{n}": [(math.cos(a), math.sin(a))] for n, a in enumerate(angles) if a is not None}
    documents = [parent(f"p{n}", f"{n}") for n in range(len(angles))]
    store = Vectors({**children, "other": [EAST]})
    result = LateInteractionRanker(store, weight=weight).run(QUESTION, documents, top_k=top_k)
    ids = [document.id for document in result["documents"]]
    assert len(set(ids)) == len(ids) == min(top_k, len(documents))
    if not result["skipped"]:
        scores = [document.score for document in result["documents"]]
        assert all(0 < score <= 1 for score in scores)
        assert all(later < earlier for earlier, later in itertools.pairwise(scores))
        for place, document in enumerate(result["documents"]):
            if document.meta["ranked_by"] == "fusion":
                assert document.id == f"p{place}"
            else:
                assert -1.02 <= document.meta["late_interaction"] <= 1.02


@pytest.mark.parametrize(
    "parameters",
    [{"top_k": 0}, {"languages": []}, {"scope": "word"}, {"weight": 1.5}, {"weight": -0.1}, {"rrf_k": 0}],
)
def test_parameters_out_of_range_are_refused(parameters):
    with pytest.raises(ValueError, match=f"`{next(iter(parameters))}`"):
        ranker(**parameters)


def test_a_store_without_token_vectors_is_refused():
    with pytest.raises(ValueError, match="`document_store` must keep token vectors, `object` does not"):
        LateInteractionRanker(object())


def test_it_round_trips_through_yaml():
    from shiguan.stores.qdrant_edge_document_store import QdrantEdgeDocumentStore

    pipeline = Pipeline()
    pipeline.add_component(
        "ranker", LateInteractionRanker(QdrantEdgeDocumentStore("children"), languages=["en"], scope="parent", top_k=3)
    )
    loaded = Pipeline.loads(pipeline.dumps()).get_component("ranker")
    assert (loaded.document_store.name, loaded.languages, loaded.scope, loaded.top_k) == (
        "children",
        ["en"],
        "parent",
        3,
    )
