import asyncio
import threading
from dataclasses import replace
from statistics import pstdev

import pytest
from haystack import Document, Pipeline, component
from haystack.components.joiners import DocumentJoiner

from shiguan.retrieval.multi_query_hybrid_retriever import MultiQueryHybridRetriever


def child(name, score):
    return Document(id=name, content="", meta={"parent_id": name}, score=score)


@component
class Words:
    """Finds what a table says, by query."""

    def __init__(self, found=None):
        self.found = found or {}
        self.asked = []

    @component.output_types(documents=list[Document])
    def run(self, query: str, filters: dict | None = None, top_k: int | None = None):
        self.asked.append((query, filters))
        return {"documents": [child(*hit) for hit in self.found.get(query, {}).items()]}


@component
class Vectors:
    """Finds what a table says, by the length of the question."""

    def __init__(self, found=None):
        self.found = found or {}
        self.asked = []

    @component.output_types(documents=list[Document])
    def run(self, query_embedding: list[float], filters: dict | None = None, top_k: int | None = None):
        self.asked.append((query_embedding, filters))
        return {"documents": [child(*hit) for hit in self.found.get(query_embedding[0], {}).items()]}


@component
class Lengths:
    """Embeds a text as its length."""

    @component.output_types(embedding=list[float])
    def run(self, text: str):
        return {"embedding": [float(len(text))]}


@component
class NoWeights:
    @component.output_types(embedding=list[float], warnings=list[str])
    def run(self, text: str):
        return {"embedding": [], "warnings": ["words alone"]}


@component
class Imagining:
    """An embedder that can be told to imagine passages."""

    def __init__(self, *passages):
        self.passages = list(passages)
        self.asked = []

    @component.output_types(embedding=list[float], hypothetical_passages=list[str], warnings=list[str], llm_calls=int)
    def run(self, text: str, use_hyde: bool | None = None):
        self.asked.append((text, use_hyde))
        passages = self.passages if use_hyde else []
        return {
            "embedding": [float(len(text))],
            "hypothetical_passages": passages,
            "warnings": ["imagined"] if use_hyde else [],
            "llm_calls": len(passages),
        }


def retriever(words=None, vectors=None, *, text_embedder=None, joiner=None, query_joiner=None):
    return MultiQueryHybridRetriever(
        Words(words),
        embedding_retriever=Vectors(vectors),
        text_embedder=text_embedder or Lengths(),
        joiner=joiner or DocumentJoiner(join_mode="merge", weights=[0.5, 0.5], top_k=50),
        query_joiner=query_joiner or DocumentJoiner(join_mode="reciprocal_rank_fusion", top_k=50),
    )


def names(result):
    return [document.id for document in result["documents"]]


def scores(result):
    return {document.id: document.score for document in result["documents"]}


def test_one_question_is_the_weighted_sum_of_standardised_scores():
    # Two hits are 2 and 0 deviations above the lowest; of three at 3, 2 and 1 the sd is sqrt(2 / 3).
    one = retriever({"one": {"a": 9.0, "b": 4.0}}, {3.0: {"b": 0.3, "c": 0.2, "a": 0.1}})
    deviation = (2 / 3) ** 0.5
    assert scores(one.run(["one"])) == pytest.approx({"b": 1 / deviation, "a": 1.0, "c": 0.5 / deviation})


def test_the_weights_of_the_joiner_are_those_of_words_and_vectors_in_this_order():
    only_words = DocumentJoiner(join_mode="merge", weights=[1, 0])
    found = retriever({"one": {"a": 2.0, "b": 1.0}}, {3.0: {"c": 2.0, "b": 1.0}}, joiner=only_words).run(["one"])
    assert scores(found) == pytest.approx({"a": 2.0, "b": 0.0, "c": 0.0})


def test_several_questions_are_joined_by_rank():
    # "one" has 3 letters, "three" 5. Question one: a, then b; question three: b, then c.
    words = {"one": {"a": 900.0, "b": 1.0}, "three": {"b": 0.02, "c": 0.01}}
    found = retriever(words).run(["one", "three"])
    assert names(found) == ["b", "a", "c"]
    # Haystack scales by k + 1 = 61 and divides by the number of lists.
    assert scores(found) == pytest.approx({"b": (61 / 62 + 1) / 2, "a": 1 / 2, "c": 61 / 62 / 2})


def test_one_question_keeps_its_scores_past_the_query_joiner():
    found = {"one": {"a": 9.0, "b": 4.0, "c": 3.0}}
    assert scores(retriever(found).run(["one", " ", "one"]))["a"] > 1


def test_languages_are_weighed_within_each_question():
    @component
    class Halved:
        @component.output_types(documents=list[Document])
        def run(self, query: str, documents: list[Document], nearest: list[Document], filters: dict | None = None):
            assert (query, filters) == ("one", {"tenant": "t"})
            assert {document.id for document in nearest} == {"b", "c"}
            return {"documents": [replace(document, score=document.score / 2) for document in documents]}

    one = retriever({"one": {"a": 9.0, "b": 4.0}}, {3.0: {"b": 0.3, "c": 0.2}})
    plain = scores(one.run(["one"]))
    one.language_balancer = Halved()
    assert scores(one.run(["one"], filters={"tenant": "t"})) == {name: score / 2 for name, score in plain.items()}


def test_both_joiners_can_be_exchanged():
    lists = {"one": {"a": 9.0, "b": 8.0}}, {3.0: {"b": 0.9, "c": 0.1}}
    by_rank = retriever(*lists, joiner=DocumentJoiner(join_mode="reciprocal_rank_fusion")).run(["one"])
    assert scores(by_rank) == pytest.approx({"b": (61 / 62 + 1) / 2, "a": 1 / 2, "c": 61 / 62 / 2})
    merged = retriever(
        {"one": {"a": 9.0, "b": 8.0}, "three": {"c": 2.0, "a": 1.0}},
        query_joiner=DocumentJoiner(join_mode="concatenate"),
    ).run(["one", "three"])
    assert scores(merged) == pytest.approx({"a": 1.0, "c": 1.0, "b": 0.0})


def test_only_the_question_itself_may_imagine_a_passage():
    embedder = Imagining("A passage.")
    result = retriever(text_embedder=embedder).run(["why", "how so"], use_hyde=True)
    assert sorted(embedder.asked) == [("how so", False), ("why", True)]
    assert (result["llm_calls"], result["warnings"]) == (1, ["imagined"])


def test_a_later_attempt_imagines_nothing():
    embedder = Imagining("A passage.")
    assert retriever(text_embedder=embedder).run(["why"], use_hyde=True, attempt=2)["llm_calls"] == 0
    assert embedder.asked == [("why", False)]


def test_a_hypothetical_passage_is_searched_by_words_and_every_list_of_words_counts_alike():
    words = {"why": {"a": 5.0, "b": 1.0, "c": 1.0}, "It was b.": {"b": 70.0, "c": 10.0}, "Or b.": {"b": 3.0, "a": 1.0}}
    only_words = DocumentJoiner(join_mode="merge", weights=[1, 0])
    result = retriever(words, {3.0: {"z": 1.0}}, text_embedder=Imagining("It was b.", "Or b."), joiner=only_words).run(
        ["why"], use_hyde=True
    )
    # a has 3 / sqrt(2) in the question's list, b 2 in each passage's: the means of the three are 1 / sqrt(2) and 4 / 3.
    means = [0.5**0.5, 4 / 3, 0.0]
    assert scores(result) == pytest.approx(
        {"b": means[1] / pstdev(means), "a": means[0] / pstdev(means), "c": 0.0, "z": 0.0}
    )
    assert result["searches"] == [
        {"kind": "bm25", "query": "why", "found": 3},
        {"kind": "bm25", "query": "It was b.", "found": 2},
        {"kind": "bm25", "query": "Or b.", "found": 2},
        {"kind": "embedding", "query": "why", "found": 1, "hypothetical_passages": ["It was b.", "Or b."]},
    ]


def test_with_passages_the_words_as_a_whole_weigh_no_more():
    words = {"why": {"a": 5.0, "b": 1.0}}
    plain = retriever(words, {3.0: {"b": 1.0}}).run(["why"])
    same = retriever(
        {**words, "It was a.": {"a": 700.0, "b": 100.0}}, {3.0: {"b": 1.0}}, text_embedder=Imagining("It was a.")
    ).run(["why"], use_hyde=True)
    assert scores(same) == pytest.approx(scores(plain))


def test_a_passage_that_finds_nothing_leaves_the_questions_order():
    found = retriever({"why": {"a": 5.0, "b": 1.0}}, text_embedder=Imagining("Nothing.")).run(["why"], use_hyde=True)
    assert names(found) == ["a", "b"]
    assert retriever(text_embedder=Imagining("Nothing.")).run(["why"], use_hyde=True)["documents"] == []


def test_without_an_embedding_words_alone_are_searched_and_one_warning_says_so():
    searching = retriever({"one": {"a": 3.0}, "two": {"b": 1.0}}, text_embedder=NoWeights())
    result = searching.run(["one", "two"])
    assert set(names(result)) == {"a", "b"}
    assert result["warnings"] == ["words alone"]
    assert searching.embedding_retriever.asked == []
    assert [search["kind"] for search in result["searches"]] == ["bm25", "bm25"]


@pytest.mark.parametrize("language", ["安祿山何時起兵？", "Когда восстал Ань Лушань?", "When did An Lushan rise?"])
def test_every_language_is_searched_by_words_and_by_vectors(language):
    searching = retriever({language: {"a": 1.0}}, {float(len(language)): {"b": 1.0}})
    result = searching.run([language])
    assert set(names(result)) == {"a", "b"}
    assert result["warnings"] == []


def test_every_search_gets_the_filters():
    searching = retriever(text_embedder=Imagining("A passage."))
    filters = {"field": "meta.tenant_id", "operator": "==", "value": "a"}
    searching.run(["one", "two"], filters=filters, use_hyde=True)
    assert [given for _, given in searching.bm25_retriever.asked] == [filters] * 3
    assert [given for _, given in searching.embedding_retriever.asked] == [filters] * 2


@pytest.mark.parametrize("queries", [[], [""], ["  "]])
async def test_no_query_finds_nothing(queries):
    nothing = {"documents": [], "nearest": [], "searches": [], "warnings": [], "llm_calls": 0}
    assert retriever({"": {"a": 1.0}}).run(queries) == nothing
    assert await retriever({"": {"a": 1.0}}).run_async(queries) == nothing


def test_a_repeated_query_is_searched_once():
    assert len(retriever().run(["one", "one"])["searches"]) == 2


@pytest.mark.parametrize("embedder", [Lengths, NoWeights, lambda: Imagining("A passage.", "Another.")])
async def test_the_async_twin_gives_the_same(embedder):
    words = {"one": {"a": 4.0, "b": 3.0}, "three": {"b": 1.0}, "A passage.": {"d": 5.0, "b": 2.0}}
    searching = retriever(words, {3.0: {"c": 2.0, "b": 1.0}, 5.0: {"b": 1.0}}, text_embedder=embedder())
    for asked in (["one"], ["one", "three"]):
        assert await searching.run_async(asked, use_hyde=True) == searching.run(asked, use_hyde=True)


def test_in_an_event_loop_searches_run_side_by_side():
    barrier = threading.Barrier(4, timeout=20)

    @component
    class Meeting:
        """Returns only when four searches have arrived."""

        @component.output_types(documents=list[Document])
        def run(self, query: str, filters: dict | None = None, top_k: int | None = None):
            barrier.wait()
            return {"documents": []}

    @component
    class MeetingEmbedder:
        @component.output_types(embedding=list[float])
        def run(self, text: str):
            barrier.wait()
            return {"embedding": [0.0]}

    searching = retriever(text_embedder=MeetingEmbedder())
    searching.bm25_retriever = Meeting()
    asyncio.run(searching.run_async(["one", "two"]))
    assert not barrier.broken


def test_it_round_trips_through_yaml():
    text = """\
components:
  retriever:
    type: shiguan.retrieval.multi_query_hybrid_retriever.MultiQueryHybridRetriever
    init_parameters:
      bm25_retriever:
        type: haystack.components.retrievers.in_memory.bm25_retriever.InMemoryBM25Retriever
        init_parameters: &store
          document_store: {type: haystack.document_stores.in_memory.document_store.InMemoryDocumentStore, init_parameters: {}}
      embedding_retriever:
        type: haystack.components.retrievers.in_memory.embedding_retriever.InMemoryEmbeddingRetriever
        init_parameters: *store
      text_embedder:
        type: haystack.components.embedders.openai_text_embedder.OpenAITextEmbedder
        init_parameters: {api_key: {type: env_var, env_vars: [HOME], strict: false}}
      joiner:
        type: haystack.components.joiners.document_joiner.DocumentJoiner
        init_parameters: {join_mode: merge, weights: [0.2, 0.8]}
      query_joiner:
        type: haystack.components.joiners.document_joiner.DocumentJoiner
        init_parameters: {join_mode: reciprocal_rank_fusion, top_k: 7}
connections: []
"""
    once = Pipeline.loads(text).dumps()
    assert Pipeline.loads(once).dumps() == once
    loaded = Pipeline.loads(once).get_component("retriever")
    assert (loaded.joiner.weights, loaded.query_joiner.top_k) == ([0.2, 0.8], 7)


@pytest.mark.parametrize(("retrieval", "found"), [("hybrid", ["b", "a"]), ("words", ["a"]), ("vectors", ["b"])])
def test_passages_come_from_one_list_alone_where_that_is_asked_for(retrieval, found):
    one = retriever({"q": {"a": 9.0}}, {1.0: {"b": 0.9}})
    told = one.run(["q"], retrieval=retrieval)
    assert sorted(names(told)) == sorted(found)
    assert sorted(names(asyncio.run(one.run_async(["q"], retrieval=retrieval)))) == sorted(found)
    assert [document.id for document in told["nearest"]] == ["b"]
    with pytest.raises(ValueError, match="hybrid, words, vectors, got 'both'"):
        one.run(["q"], retrieval="both")
