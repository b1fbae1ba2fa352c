import asyncio
import threading

import pytest
from haystack import Document, Pipeline, component

from shiguan.retrieval.rank_fusion_retriever import RankFusionRetriever


def child(name):
    return Document(id=name, content="", meta={"parent_id": name})


MINE = {"field": "meta.tenant_id", "operator": "==", "value": "mine"}


@component
class Words:
    """Finds what a table says, by query."""

    def __init__(self, found=None):
        self.found = found or {}
        self.filters = []

    @component.output_types(documents=list[Document])
    def run(self, query: str, filters: dict | None = None, top_k: int | None = None):
        self.filters.append(filters)
        return {"documents": [child(name) for name in self.found.get(query, [])]}


@component
class Vectors:
    def __init__(self, found=None):
        self.found = found or {}
        self.filters = []

    @component.output_types(documents=list[Document])
    def run(self, query_embedding: list[float], filters: dict | None = None, top_k: int | None = None):
        self.filters.append(filters)
        return {"documents": [child(name) for name in self.found.get(query_embedding[0], [])]}


@component
class Lengths:
    """Embeds a text as its length."""

    @component.output_types(embedding=list[float])
    def run(self, text: str):
        return {"embedding": [float(len(text))]}


@component
class Imagining:
    """An embedder that can be told to imagine a passage."""

    def __init__(self):
        self.asked = []

    @component.output_types(embedding=list[float], hypothetical_passages=list[str], warnings=list[str], llm_calls=int)
    def run(self, text: str, use_hyde: bool | None = None):
        self.asked.append((text, use_hyde))
        passages = ["A passage."] if use_hyde else []
        return {
            "embedding": [float(len(text))],
            "hypothetical_passages": passages,
            "warnings": ["imagined"] if use_hyde else [],
            "llm_calls": len(passages),
        }


def retriever(words=None, vectors=None, **parameters):
    embedder = parameters.pop("text_embedder", Lengths())
    return RankFusionRetriever(Words(words), embedding_retriever=Vectors(vectors), text_embedder=embedder, **parameters)


def names(result):
    return [document.id for document in result["documents"]]


def test_what_several_lists_agree_on_comes_first():
    # "one" has 3 letters, "three" 5.
    fusing = retriever({"one": ["a", "b"], "three": ["b"]}, {3.0: ["c", "b"], 5.0: ["b"]})
    result = fusing.run(["one", "three"], MINE)
    assert names(result)[0] == "b"
    assert set(names(result)) == {"a", "b", "c"}


def test_scores_are_reciprocal_ranks_weighted_by_list():
    fusing = retriever({"one": ["a", "b"]}, {3.0: ["b"]}, bm25_weight=0.2)
    scores = {document.id: document.score for document in fusing.run(["one"], MINE)["documents"]}
    # Haystack scales by k = 61: .2 * 61/61 for a, .2 * 61/62 + .8 * 61/61 for b.
    assert scores["a"] == pytest.approx(0.2)
    assert scores["b"] == pytest.approx(0.2 * 61 / 62 + 0.8)


def test_more_queries_of_one_kind_do_not_outvote_the_other():
    fusing = retriever({"one": ["a"], "two": ["a"], "four": ["a"]}, {3.0: ["b"]}, bm25_weight=0.4, languages=["en"])
    # Vectors find b for the two queries of three letters only; the list for "four" is empty.
    assert names(fusing.run(["one"], MINE)) == ["b", "a"]


def test_a_language_that_the_embedder_does_not_know_is_searched_by_words_alone():
    fusing = retriever({"安祿山": ["a"], "An Lushan": ["b"]}, {9.0: ["c"], 3.0: ["wrong"]}, languages=["en"])
    result = fusing.run(["安祿山", "An Lushan"], MINE)
    assert set(names(result)) == {"a", "b", "c"}
    assert result["warnings"] == [
        "The embedder knows en, the question is in zh: passages were found by their words (BM25) alone."
    ]
    assert [(search["kind"], search["query"]) for search in result["searches"]] == [
        ("bm25", "安祿山"),
        ("bm25", "An Lushan"),
        ("embedding", "An Lushan"),
    ]


def test_an_unknown_language_is_searched_by_words_even_where_words_have_no_weight():
    fusing = retriever({"安祿山": ["a"]}, languages=["en"], bm25_weight=0.0)
    result = fusing.run(["安祿山"], MINE)
    assert [(document.id, document.score) for document in result["documents"]] == [("a", 1.0)]


def test_only_the_question_itself_may_imagine_a_passage():
    embedder = Imagining()
    result = retriever(text_embedder=embedder).run(["why", "how so"], MINE, use_hyde=True)
    assert sorted(embedder.asked) == [("how so", False), ("why", True)]
    assert result["llm_calls"] == 1
    assert result["warnings"] == ["imagined"]
    assert [search["hypothetical_passages"] for search in result["searches"] if search["kind"] == "embedding"] == [
        ["A passage."],
        [],
    ]


def test_a_later_attempt_imagines_nothing():
    embedder = Imagining()
    assert retriever(text_embedder=embedder).run(["why"], MINE, use_hyde=True, attempt=2)["llm_calls"] == 0
    assert embedder.asked == [("why", False)]


def test_every_search_gets_the_filters():
    fusing = retriever()
    filters = {"field": "meta.tenant_id", "operator": "==", "value": "a"}
    fusing.run(["one", "two"], filters)
    assert fusing.bm25_retriever.filters == [filters, filters]
    assert fusing.embedding_retriever.filters == [filters, filters]


@pytest.mark.parametrize("queries", [[], [""], ["  "]])
def test_no_query_finds_nothing(queries):
    assert retriever({"": ["a"]}).run(queries, MINE) == {
        "documents": [],
        "searches": [],
        "warnings": [],
        "llm_calls": 0,
    }


def test_a_repeated_query_is_searched_once():
    assert len(retriever().run(["one", "one"], MINE)["searches"]) == 2


def test_top_k_of_the_call_overrides_that_of_the_pipeline():
    fusing = retriever({"one": ["a", "b", "c"]}, top_k=2)
    assert names(fusing.run(["one"], MINE)) == ["a", "b"]
    assert names(fusing.run(["one"], MINE, top_k=1)) == ["a"]


async def test_the_async_twin_gives_the_same():
    fusing = retriever({"one": ["a", "b"], "three": ["b"]}, {3.0: ["c", "b"], 5.0: ["b"]})
    assert await fusing.run_async(["one", "three"], MINE) == fusing.run(["one", "three"], MINE)


@pytest.mark.parametrize("twin", ["run", "run_async"])
def test_searches_run_side_by_side(twin):
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

    fusing = RankFusionRetriever(Meeting(), embedding_retriever=Vectors(), text_embedder=MeetingEmbedder())
    if twin == "run":
        fusing.run(["one", "two"], MINE)
    else:
        asyncio.run(fusing.run_async(["one", "two"], MINE))
    assert not barrier.broken


@pytest.mark.parametrize("parameters", [{"bm25_weight": -0.1}, {"bm25_weight": 1.1}, {"top_k": 0}, {"languages": []}])
def test_parameters_out_of_range_are_refused(parameters):
    with pytest.raises(ValueError, match=f"`{next(iter(parameters))}`"):
        retriever(**parameters)


def test_it_round_trips_through_yaml():
    text = """\
components:
  retriever:
    type: shiguan.retrieval.rank_fusion_retriever.RankFusionRetriever
    init_parameters:
      bm25_weight: 0.2
      languages: [en]
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
connections: []
"""
    once = Pipeline.loads(text).dumps()
    assert Pipeline.loads(once).dumps() == once
    loaded = Pipeline.loads(once).get_component("retriever")
    assert (loaded.bm25_weight, loaded.languages, loaded.top_k) == (0.2, ["en"], 50)
