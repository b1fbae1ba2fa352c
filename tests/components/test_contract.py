"""What every component of ours keeps, whatever it does."""

import importlib
import inspect
import pkgutil

import pytest
import yaml
from haystack import Pipeline
from haystack.components.joiners import DocumentJoiner
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
from haystack.core.component import Component
from haystack.document_stores.in_memory import InMemoryDocumentStore

import shiguan
from shiguan.agent.passage_reader import PassageReader
from shiguan.agent.tool_agent import ToolAgent
from shiguan.answer.citation_extractor import CitationExtractor
from shiguan.context.context_builder import ContextBuilder
from shiguan.grading.answer_grader import AnswerGrader
from shiguan.grading.hallucination_grader import HallucinationGrader
from shiguan.ingest.e5_document_embedder import E5DocumentEmbedder
from shiguan.ingest.file_types import Converter
from shiguan.ingest.parent_child_splitter import ParentChildSplitter
from shiguan.llm.configured_chat_generator import ConfiguredChatGenerator
from shiguan.llm.reply_cache import ReplyCache
from shiguan.memory.conversation_reader import ConversationReader
from shiguan.memory.summary_tree import SummaryTree
from shiguan.query.e5_text_embedder import E5TextEmbedder
from shiguan.query.query_rewriter import QueryRewriter
from shiguan.retrieval.best_window_ranker import BestWindowRanker
from shiguan.retrieval.language_balancer import LanguageBalancer
from shiguan.retrieval.parent_document_fetcher import ParentDocumentFetcher
from shiguan.stores.cluster.elasticsearch_store import ElasticsearchStore
from shiguan.stores.cluster.qdrant_store import QdrantStore
from shiguan.stores.embedded.qdrant_edge_bm25_retriever import QdrantEdgeBM25Retriever
from shiguan.stores.embedded.qdrant_edge_document_store import QdrantEdgeDocumentStore
from shiguan.stores.embedded.sqlite_conversation_store import SQLiteConversationStore

NO_COMPONENT = {Converter}  # what all converters inherit
PLUMBING = {"commands", "checking", "serving", "evaluation"}


def component_classes():
    for module in pkgutil.walk_packages(shiguan.__path__, "shiguan."):
        if module.name.count(".") < 2 or module.name.split(".")[1] in PLUMBING:
            continue
        for name, value in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if value.__module__ == module.name and not name.startswith("_") and issubclass(value, Component):
                yield from {value} - NO_COMPONENT


CLASSES = sorted(component_classes(), key=lambda value: value.__name__)


def test_the_components_are_found():
    names = "TenantFilter RelevanceGrader ParentDocumentFetcher EPUBToDocument PDFToDocument CitationExtractor"
    assert set(names.split()) <= {value.__name__ for value in CLASSES}


def init_parameters(cls):
    return list(inspect.signature(cls.__init__).parameters.values())[1:] if "__init__" in vars(cls) else []


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_init_parameters_are_stored_under_their_own_names(cls):
    """Otherwise Haystack's `dumps` writes the default, silently."""
    for parameter in init_parameters(cls):
        assert f"self.{parameter.name} = " in inspect.getsource(cls.__init__)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_everything_after_the_first_parameter_is_keyword_only(cls):
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in init_parameters(cls)[1:])


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_both_twins_of_run_take_the_same(cls):
    if not hasattr(cls, "run_async") or cls.run_async.__module__.startswith("haystack."):
        pytest.skip("no async twin of ours")
    assert inspect.signature(cls.run) == inspect.signature(cls.run_async)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_the_class_and_its_run_are_documented(cls):
    assert len(inspect.getdoc(cls) or "") > 80
    run = inspect.getdoc(cls.run) or ""
    for name in list(inspect.signature(cls.run).parameters)[1:]:
        assert f":param {name}:" in run
    assert ":returns:" in run


STORE, LLM = InMemoryDocumentStore(index="contract"), ConfiguredChatGenerator("m", role="helper")
CHILDREN = QdrantEdgeDocumentStore("c", path="somewhere", embedding_dim=7, embedding_model="m", bm25_fields=["title"])
FETCHER = ParentDocumentFetcher(STORE, top_k=3)
RANKER = {
    "type": "haystack.components.rankers.transformers_similarity.TransformersSimilarityRanker",
    "init_parameters": {"model": "some/model", "batch_size": 2},
}
GIVEN = {
    "AnswerabilityGate": {"needs_documents": False},
    "BestWindowRanker": {"ranker": RANKER, "top_k": 3},
    "CBDBSearch": {"url": "http://127.0.0.1:9/person"},
    "CitationExtractor": {"mode": "precise", "document_store": STORE, "closest_below": 0.5},
    "ConfiguredChatGenerator": {"model": "m", "role": "judge", "generation_kwargs": {"temperature": 0.5}},
    "ContextBuilder": {"token_budget": 1000, "strategy": "summarize", "style": "brackets", "chat_generator": LLM},
    "ConversationReader": {
        "conversation_store": SQLiteConversationStore("somewhere", retention_days=3), "document_store": STORE,
        "text_embedder": E5TextEmbedder(), "token_budget": 700,
        "summary_tree": SummaryTree(document_embedder=E5DocumentEmbedder(), chat_generator=LLM),
    },
    "E5DocumentEmbedder": {"meta_fields_to_embed": ["title"]},
    "EPUBToDocument": {"include_front_matter": True},
    "ElasticsearchBM25Retriever": {"document_store": ElasticsearchStore("c"), "top_k": 3},
    "GoalRestater": {"chat_generator": LLM},
    "HallucinationGrader": {
        "answer_grader": AnswerGrader(LLM),
        "on_unsupported": "refuse",
    },
    "HyDEEmbedder": {
        "text_embedder": E5TextEmbedder(), "document_embedder": E5DocumentEmbedder(), "chat_generator": LLM,
    },
    "LanguageBalancer": {"document_store": STORE},
    "LibrarySearch": {"retriever": InMemoryBM25Retriever(STORE, top_k=3)},
    "ParentChildSplitter": {
        "parent_min_tokens": 200, "parent_max_tokens": 400, "child_min_tokens": 20, "child_max_tokens": 60,
    },
    "ParentDocumentFetcher": {"document_store": STORE, "top_k": 3},
    "PassageReader": {"document_store": STORE},
    "PassageRetriever": {
        "bm25_retriever": InMemoryBM25Retriever(STORE, top_k=3), "text_embedder": E5TextEmbedder(),
        "embedding_retriever": InMemoryEmbeddingRetriever(STORE, top_k=3), "joiner": DocumentJoiner("merge"),
        "parent_fetcher": FETCHER, "language_balancer": LanguageBalancer(STORE),
    },
    "PassageWriter": {"parent_store": STORE, "child_store": STORE},
    "PromptFileBuilder": {"prompt": "precise", "persona": "teacher", "profile": {"rules": {"en": ["x"]}}, "examples": "cited"},
    "QdrantEdgeBM25Retriever": {"document_store": CHILDREN, "top_k": 3, "scale_score": True},
    "QdrantEdgeEmbeddingRetriever": {"document_store": CHILDREN, "top_k": 3},
    "QdrantEmbeddingRetriever": {"document_store": QdrantStore("c", embedding_dim=2), "top_k": 3},
    "QueryRewriter": {"chat_generator": LLM, "method": "expand", "document_store": STORE},
    "ReplyCache": {"chat_generator": LLM, "size": 5, "max_age": 60.0},
    "SubQuestionAnswerer": {"chat_generator": LLM, "retriever": InMemoryBM25Retriever(STORE, top_k=3), "ranker": None},
    "ToolAgent": {"chat_generator": LLM, "tools": [PassageReader(STORE)]},
    "VectorWriter": {"document_embedder": E5DocumentEmbedder(), "document_store": STORE},
    "WikipediaSearch": {"url": "http://127.0.0.1:9/{language}"},
}  # fmt: skip
# A double for the tests of streams, and Haystack's pipeline itself.
NO_NODES = {"StreamingChatGenerator", "ModePipeline"}


@pytest.mark.parametrize("cls", [cls for cls in CLASSES if cls.__name__ not in NO_NODES], ids=lambda cls: cls.__name__)
def test_a_component_comes_back_from_yaml_with_all_that_it_was_given(cls):
    given = GIVEN.get(cls.__name__, {})
    assert given or not init_parameters(cls)
    pipeline = Pipeline()
    pipeline.add_component("one", cls(**given))
    written = pipeline.dumps()
    assert yaml.safe_load(Pipeline.loads(written).dumps()) == yaml.safe_load(written)
    kept = yaml.safe_load(written)["components"]["one"]["init_parameters"]
    plain = {name: value for name, value in given.items() if not hasattr(value, "__dict__") and name != "tools"}
    assert {name: kept[name] for name in plain} == plain
    assert all(kept[name] for name in given.keys() - plain.keys())


# What no component or store takes: the class, its parameters, and what the refusal says.
REFUSED = [
    (BestWindowRanker, {"ranker": RANKER, "top_k": 0}, "`top_k` must be positive, got 0"),
    *((BestWindowRanker, {"ranker": inside}, "with the name of a `model`") for inside in (
        {}, {"type": RANKER["type"]}, {**RANKER, "init_parameters": {"model": 7}}, {**RANKER, "type": "os.system"},
    )),
    (CitationExtractor, {"closest_below": 1.1}, "`closest_below` must be 0 to 1, got 1.1"),
    (CitationExtractor, {"closest_below": -0.1}, "`closest_below` must be 0 to 1, got -0.1"),
    (ContextBuilder, {"token_budget": 0}, "token_budget"),
    (ContextBuilder, {"strategy": "all"}, "`strategy` must be one of truncate"),
    (ContextBuilder, {"style": "none"}, "`style` must be one of tags"),
    (ConversationReader, {**GIVEN["ConversationReader"], "token_budget": 0}, "`token_budget` must be positive, got 0"),
    (ElasticsearchStore, {"index": "Children"}, "lower-case"),
    (ElasticsearchStore, {"index": "_children"}, "lower-case"),
    (ElasticsearchStore, {"index": "a b"}, "lower-case"),
    (ElasticsearchStore, {"index": "c", "shards": 0}, "shards"),
    (HallucinationGrader, {"on_unsupported": "hide"}, "must be mark, remove or refuse, got `hide`"),
    (ParentChildSplitter, {"parent_min_tokens": 0}, "_tokens` must"),
    (ParentChildSplitter, {"parent_min_tokens": 800}, "_tokens` must"),
    (ParentChildSplitter, {"child_min_tokens": 150}, "_tokens` must"),
    (ParentChildSplitter, {"child_min_tokens": 100, "child_max_tokens": 900}, "_tokens` must"),
    (ParentDocumentFetcher, {"document_store": STORE, "top_k": 0}, "`top_k` must be positive, got 0"),
    (ParentDocumentFetcher, {"document_store": STORE, "kind_weights": {"list": -1}}, "must not be negative"),
    (QdrantEdgeBM25Retriever, {"document_store": CHILDREN, "top_k": 0}, "`top_k` must be positive, got 0"),
    (QdrantEdgeBM25Retriever, {"document_store": STORE}, "InMemoryDocumentStore"),
    (QdrantEdgeDocumentStore, {"name": ""}, "name"),
    (QdrantEdgeDocumentStore, {"name": "../x"}, "name"),
    (QdrantEdgeDocumentStore, {"name": "a/b"}, "name"),
    (QdrantEdgeDocumentStore, {"embedding_dim": 0}, "embedding_dim"),
    (QdrantStore, {"index": "", "embedding_dim": 3}, "collection name"),
    (QdrantStore, {"index": "a/b", "embedding_dim": 3}, "collection name"),
    (QdrantStore, {"index": "c", "embedding_dim": 0}, "embedding_dim"),
    (QueryRewriter, {"method": "dance"}, "`method` must be auto or one of .*, got 'dance'"),
    (ReplyCache, {"chat_generator": LLM, "size": 0}, "must be positive"),
    (ReplyCache, {"chat_generator": LLM, "max_age": 0}, "must be positive"),
    (SQLiteConversationStore, {"retention_days": 0}, "must be positive"),
    (ToolAgent, {"chat_generator": LLM, "tools": []}, "`tools` must be one or more of different names"),
    (ToolAgent, {"chat_generator": LLM, "tools": [PassageReader(STORE)] * 2}, "`tools` must be one or more of different"),
]  # fmt: skip


@pytest.mark.parametrize(("cls", "given", "said"), REFUSED)
def test_parameters_that_cannot_work_are_refused_with_their_rule(cls, given, said):
    with pytest.raises(ValueError, match=said):
        cls(**given)
