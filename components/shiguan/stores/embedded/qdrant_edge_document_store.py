"""The embedded document store: documents, BM25 and vectors in one folder, in process."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar, cast

from haystack.dataclasses import Document
from haystack.document_stores.types import DuplicatePolicy
from qdrant_edge import CountRequest, EdgeShard, PayloadSelector, PointVectors, UpdateOperation

from shiguan.errors import StoreError
from shiguan.resources import data_folder
from shiguan.stores import PipelineStore, is_model, other_vectors
from shiguan.stores.embedded import reading
from shiguan.stores.embedded.points import DENSE, ID, META, ORDER, ShardFormat, decode_document, meta_path, point_id
from shiguan.stores.embedded.reading import translate
from shiguan.stores.embedded.shards import Shard, open_shard
from shiguan.stores.embedded.sharing import EngineClient, shared, turn
from shiguan.tenants import TenantGuarded

Found = TypeVar("Found")

_BATCH = 256
_DELETED = 10_000
_IDS_ONLY = PayloadSelector.Include([ID])
_IN_ORDER = PayloadSelector.Include([ID, ORDER])
# A server's tenants ask with a filter each; more different ones than this are counted anew.
_MOST_COUNTS = 1000


class QdrantEdgeDocumentStore(TenantGuarded, PipelineStore):
    """
    Keeps documents, and finds them by BM25 and by vectors, in one folder and without a server.

    The index pipeline writes to it and the retrievers of the embedded deployment read it, one store for parents
    (`embedding_dim=None`: no BM25 and no vectors, fetched by id) and one for children. The folder is
    `<path>/<name>`, made at the first use. All stores and pipelines of a process that name the same folder share one
    engine and may read and write it from many threads. Other processes of the machine share it too: the first one has
    the folder open and serves the others, and when it ends another opens it. What a method has written is on disk when
    it returns.

    BM25 follows Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), section 3.4,
    with the IDF of Lucene, ln(1 + (N - n + 0.5) / (n + 0.5)), computed by the engine for each question. We depart from
    it in two points. The average length is fixed, not a mean over the store, so that a document's weights do not depend
    on what else is stored, nor on the order of writing. A term of a question counts once, and less if it is a pair of
    Han characters or has a character of modern Chinese grammar.

    Vectors are compared by their cosine (-1 to 1, higher is closer), every one that the filters allow: above 20,000
    documents by four bits of each number, and the nearest of these by all (TurboQuant, https://arxiv.org/abs/2504.19874).
    The store keeps a document's id, content and meta (JSON values) exactly, its embedding as float32 of length 1.

    ```python
    store = QdrantEdgeDocumentStore(name="children", path="/tmp/library")
    store.write_documents([Document(id="1", content="他的书", meta={"tenant_id": "default"})])
    tenant = {"field": "meta.tenant_id", "operator": "==", "value": "default"}
    store.bm25_retrieval("书", tenant, top_k=1)[0].id  # "1"
    ```
    """

    def __init__(
        self,
        name: str = "children",
        *,
        path: str | None = None,
        embedding_dim: int | None = 384,
        embedding_model: str | None = None,
        bm25_fields: list[str] | None = None,
    ) -> None:
        """
        Describe the store; nothing is opened yet.

        :param name: The folder's name below `path`: letters, digits, `-`, `_` and dots inside.
        :param path: Where the folder is; by default the variable SHIGUAN_DATA_DIR, else the user's data folder.
        :param embedding_dim: Length of the embeddings; `None` for a store that is read by id alone.
        :param embedding_model: The model that questions are embedded with, as the identity of the documents' embedder
            begins. If the folder's vectors were made with another one, documents are found by their words alone; None
            skips this check.
        :param bm25_fields: Meta fields whose text is indexed with the content, such as `title`; texts or lists of them.
        :raises ValueError: If a parameter is out of its range.
        """
        if not name or name.startswith(".") or not all(c.isalnum() or c in "-_." for c in name):
            raise ValueError(f"`name` must be a plain folder name, got {name!r}. Put the rest of the path into `path`.")
        if embedding_dim is not None and embedding_dim < 1:
            raise ValueError(f"`embedding_dim` must be positive, or None for no vectors, got {embedding_dim}")
        self.name = name
        self.path = path
        self.embedding_dim = embedding_dim
        self.embedding_model = embedding_model
        self.bm25_fields = bm25_fields
        self._opened: Shard | EngineClient | None = None
        self._lent = False  # to another process's call
        self._format = ShardFormat(
            embedding_dim=embedding_dim,
            embedding_model=embedding_model,
            bm25_fields=list(bm25_fields or []),
        )

    @property
    def folder(self) -> Path:
        """The data folder, as the parameters and the environment have it now."""
        return data_folder(self.path).expanduser().resolve() / self.name

    def close(self) -> None:
        """Release the folder for other processes. The next use of this or another store opens it again."""
        if self._opened is not None:
            self._opened.close()

    def turn(
        self, tenant_id: str, source: str, waiting: Callable[[str], object] | None = None
    ) -> AbstractContextManager[None]:
        """Keep others from writing or deleting a source during a `with` block; see `sharing.turn`."""
        return turn(self.folder.parent / "writers", tenant_id, source, waiting)

    def _open(self) -> Shard | EngineClient:
        if self._opened is None or (self._opened.closed and not self._lent):
            self._opened = open_shard(self.folder, self._format, self._answer)
        return self._opened

    @property
    def _shard(self) -> Shard:
        """The engine, in a method that is `shared`, which opened it."""
        return cast("Shard", self._opened)

    @classmethod
    def _answer(
        cls, shard: Shard, method: Callable[..., Any], settings: dict[str, Any], arguments: dict[str, Any]
    ) -> Any:
        # The store of the other process has checked that the call names a tenant.
        store = cls(shard.folder.name, path=str(shard.folder.parent), **settings).unscoped()
        shard.check_format(store._format)
        store._opened, store._lent = shard, True
        return method(store, **arguments)

    @shared
    def list_ids_without_vector(self, filters: dict[str, Any] | None = None) -> list[str]:
        """List the ids of the documents that have no vector yet."""
        with self._shard.read() as edge:
            records = reading.pages(edge, reading.without_vector(filters), _IN_ORDER)
            rows = [(payload[ORDER], payload[ID]) for payload in (record.payload for record in records)]
        return [document_id for _, document_id in sorted(rows)]

    @shared
    def write_vectors(self, documents: list[Document], *, model: str) -> int:
        """Write the vectors of stored documents, and change nothing else; they are on disk when this returns."""
        vectors = {document.id: self._format.vector(document) for document in documents}
        with self._shard.write() as edge:
            stored = reading.existing_ids(edge, list(vectors))
            batch = [
                PointVectors(point_id(document_id), {DENSE: vector.tolist()})
                for document_id, vector in vectors.items()
                if document_id in stored
            ]
            if batch:
                self._shard.claim_vectors(edge, model)
                self._shard.update(edge, UpdateOperation.update_vectors(batch), len(batch))
        return len(batch)

    @shared
    def drop_vectors(self) -> None:
        """Delete all vectors, so that another embedder's can be written; documents and their words stay."""
        self._shard.drop_vectors()

    @shared
    def embedder(self) -> str | None:
        """Return the identity of the embedder that made the vectors; None if none was recorded."""
        return self._shard.format.embedding_model

    @shared
    def other_vectors(self, model: str | None = None) -> str | None:
        """Explain that the vectors are those of another embedder; None if they are not."""
        wanted = model or self.embedding_model
        shard = self._shard
        found = shard.format.embedding_model
        if wanted is None or is_model(found, wanted) or not self._count("with a vector", None):
            return None
        return other_vectors(shard.folder, found, wanted)

    @shared
    def vector_warnings(self, filters: dict[str, Any] | None) -> list[str]:
        """Explain what a search by vectors cannot find; counted once after each write."""
        other = self.other_vectors()
        if other is not None:
            return [other]
        missing = self.count_without_vector(filters)
        if not missing:
            return []
        return [
            f"{missing:,} of {self._count('all', filters):,} retrieval units have no vector yet and were searched by "
            "their words alone. A running ingest or server makes the missing ones, or `shiguan ingest --resume`."
        ]

    @shared
    def count_without_vector(self, filters: dict[str, Any] | None = None) -> int:
        """Count the documents without a vector; counted once after each write."""
        return self._count("without a vector", filters) if self._count("without a vector", None) else 0

    @shared
    def count_by_file(self, filters: dict[str, Any] | None = None) -> dict[str, tuple[int, int]]:
        """Count the documents of each file; counted once after each write."""

        def count(edge: EdgeShard) -> dict[str, tuple[int, int]]:
            words = reading.count_values(edge, "file_id", translate(filters))
            missing = reading.count_values(edge, "file_id", reading.without_vector(filters))
            return {file: (count, count - missing.get(file, 0)) for file, count in words.items()}

        return self._once("by file", filters, count)

    @shared
    def count_languages(self, filters: dict[str, Any] | None = None) -> dict[str, int]:
        """Count the documents in each language; counted once after each write."""
        return self._once("languages", filters, lambda edge: reading.count_values(edge, "language", translate(filters)))

    @shared
    def list_files(self, filters: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        """Describe each file; looked up once after each write, without reading all of its documents."""
        return self._once("files", filters, lambda edge: reading.list_files(edge, filters))

    def _count(self, which: str, filters: dict[str, Any] | None) -> int:
        def count(edge: EdgeShard) -> int:
            if which == "with a vector":
                return reading.count_vectors(edge)
            condition = translate(filters) if which == "all" else reading.without_vector(filters)
            return int(edge.count(CountRequest(exact=True, filter=condition)))

        return self._once(which, filters, count)

    def _once(self, which: str, filters: dict[str, Any] | None, find: Callable[[EdgeShard], Found]) -> Found:
        counts = self._shard.counts
        key = f"{which} {json.dumps(filters, sort_keys=True, default=str)}"
        if key not in counts:
            with self._shard.read() as edge:
                found = find(edge)
            if len(counts) < _MOST_COUNTS:
                counts[key] = found
            return found
        return cast("Found", counts[key])

    @shared
    def write_documents(self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE) -> int:
        """Store documents."""
        if not isinstance(documents, list) or not all(isinstance(document, Document) for document in documents):
            raise ValueError("`documents` must be a list of Documents.")
        with self._shard.write() as edge:
            if policy != DuplicatePolicy.OVERWRITE:
                documents = reading.without_duplicates(edge, documents, policy)
            if any(document.embedding is not None for document in documents):
                self._shard.claim_vectors(edge, self.embedding_model)
            orders = self._shard.next_orders(len(documents))
            for start in range(0, len(documents), _BATCH):
                batch = documents[start : start + _BATCH]
                rows = zip(batch, orders[start:], strict=False)
                new = [self._format.point(document, order) for document, order in rows]
                vectors = sum(document.embedding is not None for document in batch)
                self._shard.update(edge, UpdateOperation.upsert_points(new), vectors)
        return len(documents)

    @shared
    def filter_documents(self, filters: dict[str, Any] | None = None) -> list[Document]:
        """Read the documents that match."""
        vectors = [DENSE] if self._format.embedding_dim else False
        with self._shard.read() as edge:
            records = list(reading.pages(edge, translate(filters), True, vectors))
        records.sort(key=lambda record: record.payload[ORDER])
        return [decode_document(record.payload, record.vector or {}) for record in records]

    @shared
    def existing_ids(self, document_ids: list[str]) -> set[str]:
        """Find which documents are stored."""
        with self._shard.read() as edge:
            return reading.existing_ids(edge, document_ids)

    @shared
    def list_meta(self, filters: dict[str, Any] | None, fields: list[str]) -> list[dict[str, Any]]:
        """Read some meta fields, or `id`, of the documents that match, without the documents themselves."""
        wanted = PayloadSelector.Include([ID if field == ID else meta_path(field) for field in fields])
        with self._shard.read() as edge:
            payloads = [record.payload for record in reading.pages(edge, translate(filters), wanted)]
        own = [payload.get(META) or {} for payload in payloads]
        return [meta | {ID: payload[ID]} for meta, payload in zip(own, payloads, strict=True)] if ID in fields else own

    def iter_ids(self, filters: dict[str, Any] | None = None) -> Iterator[str]:
        """List the ids of the documents that match, page by page; nothing is locked between pages."""
        offset = None
        while True:
            ids, offset = self._page_of_ids(filters, offset)
            yield from ids
            if offset is None:
                return

    @shared
    def _page_of_ids(self, filters: dict[str, Any] | None, offset: Any) -> list[Any]:
        with self._shard.read() as edge:
            records, following = reading.page(edge, offset, translate(filters), _IDS_ONLY)
        return [[record.payload[ID] for record in records], None if following is None else str(following)]

    @shared
    def count_documents_by_filter(self, filters: dict[str, Any]) -> int:
        """Count the documents that match; counted once after each write."""
        return self._count("all", filters)

    @shared
    def delete_documents(self, document_ids: list[str]) -> None:
        """Delete documents; ids that are not stored are ignored."""
        if document_ids:
            with self._shard.write() as edge:
                self._shard.delete(edge, [point_id(document_id) for document_id in document_ids])

    def delete_all_documents(self) -> None:
        """Delete every document and keep the store."""
        self.delete_by_filter({})

    @shared
    def delete_by_filter(self, filters: dict[str, Any]) -> int:
        """Delete the documents that match."""
        with self._shard.write() as edge:
            doomed = [str(record.id) for record in reading.pages(edge, translate(filters), False)]
            for start in range(0, len(doomed), _DELETED):
                self._shard.delete(edge, doomed[start : start + _DELETED])
        return len(doomed)

    @shared
    def bm25_retrieval(
        self,
        query: str,
        filters: dict[str, Any] | None = None,
        *,
        top_k: int = 50,
        also: Mapping[str, float] | None = None,
    ) -> list[Document]:
        """Find documents by the words of a question, and by other terms with their weights."""
        if self.embedding_dim is None:
            raise StoreError(
                f"The store `{self.name}` cannot be searched by words, because its `embedding_dim` is None. Search the "
                "store of children, or set `embedding_dim` and ingest again into another folder."
            )
        with self._shard.read() as edge:
            return reading.search_terms(edge, query, filters, top_k=top_k, also=also)

    @shared
    def known_terms(self, terms: Iterable[str], language: str, filters: dict[str, Any] | None = None) -> set[str]:
        """Find the terms, of `shiguan.text.terms`, that any document in a language has."""
        with self._shard.read() as edge:
            return reading.known_terms(edge, terms, language, filters)

    @shared
    def texts_with(self, terms: list[str], filters: dict[str, Any] | None = None) -> list[str]:
        """Read the texts of documents that have any of some terms, at most twenty."""
        with self._shard.read() as edge:
            return reading.texts_with(edge, terms, filters)

    @shared
    def embedding_retrieval(
        self, query_embedding: list[float], filters: dict[str, Any] | None = None, *, top_k: int = 50
    ) -> list[Document]:
        """Find documents by an embedding."""
        vector = self._format.query_vector(query_embedding)
        if self.other_vectors():
            return []
        with self._shard.read() as edge:
            quantized = self._shard.quantized
            return reading.search_vectors(edge, vector, filters, quantized=quantized, top_k=top_k)
