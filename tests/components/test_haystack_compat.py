"""The one file that knows Haystack's versions and private names, and what stops working where one of them changes."""

import ast
import importlib
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import haystack
import pytest
from haystack import Document, Pipeline
from haystack.components.builders import ChatPromptBuilder
from haystack.components.converters import TextFileToDocument
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
from haystack.dataclasses import ChatMessage
from haystack.document_stores.in_memory import InMemoryDocumentStore
from jinja2 import StrictUndefined
from jinja2.exceptions import UndefinedError

from shiguan.answer.citation_extractor import CitationExtractor
from shiguan.context.context_builder import ContextBuilder
from shiguan.grading.hallucination_grader import HallucinationGrader
from shiguan.haystack_compat import ObservedPipeline, template_environment, with_meta
from shiguan.ingest.e5_document_embedder import E5DocumentEmbedder
from shiguan.query.e5_text_embedder import E5TextEmbedder
from shiguan.query.hyde_embedder import HyDEEmbedder
from shiguan.retrieval.parent_document_fetcher import ParentDocumentFetcher

PACKAGE = Path(__file__).resolve().parents[2] / "components" / "shiguan"
SEAM = PACKAGE / "haystack_compat.py"
PRIVATE = {
    "_run_component_async", "_env",
    "_client", "_ensure_initialized", "_bm25_retrieval", "_initialize_client", "_query_by_embedding",
    "_normalize_filters",
}  # fmt: skip
OTHERS = {"_Element", "_actions", "_asdict", "_exit", "_p", "_replace", "_run_finalizers"}
"""Private names of other packages, and methods of named tuples."""


def is_private(name):
    return name.startswith("_") and not name.startswith("__") and len(name) > 1


def private_names(tree):
    """The private names that a module takes from somewhere else: imported, or an attribute that it does not define."""
    nodes = list(ast.walk(tree))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    defined = {node.name for node in nodes if isinstance(node, functions)}
    defined |= {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    defined |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("haystack"):
            yield from (alias.name for alias in node.names if is_private(alias.name))
        elif isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in defined:
            yield node.attr
        elif isinstance(node, ast.keyword) and is_private(node.arg or ""):
            yield node.arg


def test_haystacks_private_names_stand_in_one_file():
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}
    own = {
        node.name if not isinstance(node, ast.Attribute) else node.attr
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if (isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or (isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)))
        and path != SEAM
    }  # fmt: skip
    found = {path.name: set(private_names(tree)) - own - OTHERS for path, tree in trees.items() if path != SEAM}
    assert {name: names for name, names in found.items() if names} == {}


def test_every_private_name_of_the_file_is_accounted_for():
    tree = ast.parse(SEAM.read_text(encoding="utf-8"))
    methods = {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
    assigned = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    named = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    found = {name for name in methods | assigned | named | set(private_names(tree)) if is_private(name)}
    assert found == PRIVATE


async def test_a_pipeline_runs_its_components_through_one_method():
    class Observed(ObservedPipeline):
        async def run_component(self, name, inputs, run):
            outputs = await run(inputs)
            seen.append((name, dict(inputs), [document.content for document in outputs["documents"]]))
            return outputs

    seen = []
    store = InMemoryDocumentStore()
    store.write_documents([Document(content="salt tax")])
    pipeline = Observed()
    pipeline.add_component("retriever", InMemoryBM25Retriever(store))
    await pipeline.run_async({"retriever": {"query": "salt"}})
    (entry,) = seen
    assert (entry[0], entry[1]["query"], entry[2]) == ("retriever", "salt", ["salt tax"])


def test_the_environment_of_a_prompt_builder_decides_how_it_renders():
    source = '{% message role="user" %}{{ one.missing }}{% endmessage %}'
    builder = ChatPromptBuilder(template=source, required_variables="*")
    template_environment(builder).undefined = StrictUndefined
    with pytest.raises(UndefinedError, match="has no attribute 'missing'"):
        builder.run(template_variables={"one": {}})
    assert template_environment(TextFileToDocument()) is None


def test_a_message_with_more_meta_leaves_the_one_before_as_it_was():
    before = ChatMessage.from_assistant("Li Su.", meta={"usage": {"total_tokens": 3}})
    after = with_meta(before, counted=True)
    assert (after.text, after.meta) == ("Li Su.", {"usage": {"total_tokens": 3}, "counted": True})
    after.meta["usage"]["total_tokens"] = 4
    assert before.meta == {"usage": {"total_tokens": 3}}


def foreign_pipeline():
    """Five components with Haystack's stores, retrievers and nothing else of Shiguan."""
    text = "Zhang Xun held Suiyang in 757. The town fell in the autumn."
    parents, children = InMemoryDocumentStore(), InMemoryDocumentStore(embedding_similarity_function="cosine")
    parents.write_documents([Document(id="p", content=text, meta={"source": "tang.epub"})])
    child = Document(id="c", content=text[:30], meta={"parent_id": "p", "start": 0, "end": 30})
    children.write_documents(E5DocumentEmbedder().run(documents=[child])["documents"])
    pipeline = Pipeline()
    pipeline.add_component("embedder", HyDEEmbedder(E5TextEmbedder(), document_embedder=E5DocumentEmbedder()))
    pipeline.add_component("retriever", InMemoryEmbeddingRetriever(children, top_k=1))
    pipeline.add_component("fetcher", ParentDocumentFetcher(parents))
    pipeline.add_component("context", ContextBuilder(token_budget=200))
    pipeline.add_component("grader", HallucinationGrader())
    pipeline.add_component("citations", CitationExtractor())
    pipeline.connect("embedder.embedding", "retriever.query_embedding")
    pipeline.connect("retriever.documents", "fetcher.documents")
    pipeline.connect("fetcher.documents", "context.documents")
    pipeline.connect("context.documents", "grader.documents")
    pipeline.connect("context.documents", "citations.documents")
    pipeline.connect("grader.replies", "citations.replies")
    return pipeline


def test_five_components_in_a_foreign_pipeline_are_dumped_and_loaded():
    def ask(asked):
        reply = ChatMessage.from_assistant("Zhang Xun held Suiyang in 757 [1]. He had three eyes [1].")
        question = "Who held Suiyang?"
        data = {"embedder": {"text": question}, "grader": {"replies": [reply], "query": question}}
        (answer,) = asked.run(data)["citations"]["answers"]
        return answer.data, [(each["quote"], each["verdict"]) for each in answer.meta["citations"]]

    made = foreign_pipeline()  # the loaded stores are the same, which Haystack finds by their index
    loaded = Pipeline.loads(made.dumps())
    assert ask(loaded) == ask(made)
    assert ask(made)[1] == [("Zhang Xun held Suiyang in 757.", "supported")]


def test_our_loader_needs_neither_a_list_of_ones_own_nor_torch(tmp_path):
    """In a process of its own, in which nothing was loaded before: stores alone, what reads files, and all modes."""
    code = """
import sys
sys.modules.update(torch=None, transformers=None, accelerate=None, sentence_transformers=None)
from shiguan.engine.loading import list_modes, load_pipeline, load_stores
from shiguan.ingest.conversion import _pipeline
for store in load_stores("embedded", data_dir=sys.argv[1]).values():
    store.close()
part = '{"type": "shiguan.ingest.source_inspector.SourceInspector", "init_parameters": {}}'
_pipeline('{"components": {"inspector": %s}, "connections": []}' % part)
for mode in list_modes()["embedded"]:
    pipeline = load_pipeline("embedded", mode, data_dir=sys.argv[1])
    if "ranker" in pipeline.graph:
        pipeline.get_component("ranker").warm_up()
    print(mode)
"""
    environment = {name: value for name, value in os.environ.items() if name != "HAYSTACK_DESERIALIZATION_ALLOWLIST"}
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.stdout == "simple\nadvanced\nprecise\nagent\n", done.stderr


@pytest.mark.skipif(hasattr(haystack, "AsyncPipeline"), reason="Haystack 2 loads any class")
def test_haystack_3_loads_a_file_only_where_it_may(monkeypatch):
    from haystack.core.errors import DeserializationError

    made = foreign_pipeline()
    monkeypatch.setenv("HAYSTACK_DESERIALIZATION_ALLOWLIST", "")
    monkeypatch.setattr("haystack.core.serialization_security._extra_allowed_modules", [])
    with pytest.raises(DeserializationError, match="not on the trusted-module allowlist"):
        Pipeline.loads(made.dumps())
    loaded = Pipeline.loads(made.dumps(), allowed_modules=["shiguan"])
    assert loaded.to_dict()["components"] == made.to_dict()["components"]


def test_the_cross_encoder_has_its_name_of_haystack_2():
    module = importlib.import_module("haystack.components.rankers.transformers_similarity")
    with suppress(ImportError):  # without the extra `transformers`, on 3
        assert module.TransformersSimilarityRanker.run
    assert not hasattr(module, "AnotherRanker")


@pytest.mark.skipif(not haystack.__version__.startswith("2."), reason="Haystack 3 has the class under another name")
def test_the_cross_encoder_that_the_files_name_is_not_called_legacy_in_the_log(monkeypatch, caplog):
    rankers = importlib.import_module("haystack.components.rankers.transformers_similarity")
    monkeypatch.setattr(rankers.torch_and_transformers_import, "check", lambda: None)
    monkeypatch.setattr(rankers, "resolve_hf_device_map", lambda **given: given)
    with caplog.at_level("INFO"):
        rankers.TransformersSimilarityRanker("some/model")
        rankers.logger.warning("The model `{model}` is slow.", model="some/model")
    assert [record.getMessage() for record in caplog.records] == ["The model `some/model` is slow."]
