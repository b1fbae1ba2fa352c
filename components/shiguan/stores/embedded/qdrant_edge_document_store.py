"""The embedded document store: documents, BM25 and vectors in one folder, in process."""

from pathlib import Path

from shiguan.resources import data_folder
from shiguan.stores import PipelineStore
from shiguan.stores.embedded.shard_format import ShardFormat
from shiguan.stores.embedded.shards import Shard, open_shard
from shiguan.stores.embedded.store_operations import StoreOperations
from shiguan.tenants import TenantGuarded


class QdrantEdgeDocumentStore(TenantGuarded, PipelineStore, StoreOperations):
    """
    Keeps documents, and finds them by BM25 and by vectors, in one folder and without a server.

    It stands at the end of the index pipeline and behind the retrievers of the embedded deployment, once for parents
    (`embedding_dim=None`: no BM25 and no vectors, fetched by id) and once for children. The folder is
    `<path>/<name>`, and it is made at the first use. All stores and pipelines of a process that name the same folder
    share one engine and may read and write it from many threads; a second process gets `StoreLockedError`. What a
    method has written is on disk when it returns.

    BM25 follows Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), section 3.4,
    with the IDF of Lucene, ln(1 + (N - n + 0.5) / (n + 0.5)), computed by the engine when a question comes. We depart
    from it in one point: the average length is fixed and no mean over the store, so that a document's weights do not
    depend on what else is stored, nor on the order of writing.

    Vectors are compared by their cosine (-1 to 1, higher is closer): all up to `exact_below` documents, through an
    HNSW graph above. The store keeps a document's id, content, meta (JSON values), embedding and sparse embedding
    exactly; `blob` and `score` are not kept.

    ```python
    store = QdrantEdgeDocumentStore(name="children", path="/tmp/library", embedding_dim=None, bm25=True)
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
        exact_below: int = 20_000,
        bm25: bool | None = None,
        bm25_fields: list[str] | None = None,
    ) -> None:
        """
        Describe the store; nothing is opened yet.

        :param name: The folder's name below `path`: letters, digits, `-`, `_` and dots inside.
        :param path: Where the folder is; by default the variable SHIGUAN_DATA_DIR, else the user's data folder.
        :param embedding_dim: Length of the embeddings; `None` for a store without vectors.
        :param embedding_model: The model that questions are embedded with, as the identity of the documents' embedder
            begins. Where the folder's vectors were made with another one, documents are found by their words alone;
            None does not ask.
        :param exact_below: Up to how many documents vectors are compared one by one.
        :param bm25: Whether documents can be found by their words; by default if they have embeddings.
        :param bm25_fields: Meta fields whose text is indexed with the content, such as `title`; texts or lists of them.
        :raises ValueError: If a parameter is out of its range.
        """
        if not name or name.startswith(".") or not all(c.isalnum() or c in "-_." for c in name):
            raise ValueError(f"`name` must be a plain folder name, got {name!r}. Put the rest of the path into `path`.")
        if embedding_dim is not None and embedding_dim < 1:
            raise ValueError(f"`embedding_dim` must be positive, or None for no vectors, got {embedding_dim}")
        if exact_below < 0:
            raise ValueError(f"`exact_below` must not be negative, got {exact_below}")
        self.name = name
        self.path = path
        self.embedding_dim = embedding_dim
        self.embedding_model = embedding_model
        self.exact_below = exact_below
        self.bm25 = bm25
        self.bm25_fields = bm25_fields
        self._opened: Shard | None = None

    @property
    def folder(self) -> Path:
        """The data folder, as the parameters and the environment have it now."""
        return data_folder(self.path).expanduser().resolve() / self.name

    def close(self) -> None:
        """Free the folder for other processes. The next use of this or another store opens it again."""
        if self._opened is not None:
            self._opened.close()

    def build_index(self) -> None:
        """
        Build the HNSW graph now and wait for it, however few documents there are.

        The store starts this by itself, in the background, when enough documents were written; a program that ends
        after writing may want to wait for it. Searches and writes go on meanwhile.
        """
        builder = self._shard.build_graph()
        if builder is not None:
            builder.wait()

    @property
    def _shard(self) -> Shard:
        if self._opened is None or self._opened.closed:
            self._opened = open_shard(self.folder, self._format(), self.exact_below)
        return self._opened

    def _format(self) -> ShardFormat:
        return ShardFormat(
            embedding_dim=self.embedding_dim,
            embedding_model=self.embedding_model,
            bm25=self.embedding_dim is not None if self.bm25 is None else self.bm25,
            bm25_fields=list(self.bm25_fields or []),
        )
