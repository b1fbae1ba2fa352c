"""An embedded store of short vectors, for tests and for the processes that they start."""

from haystack.document_stores.types import DuplicatePolicy

from shiguan.stores.embedded.qdrant_edge_document_store import QdrantEdgeDocumentStore

ALL = DuplicatePolicy.OVERWRITE


def make(folder, **parameters):
    """Give a store for maintenance, over all tenants."""
    return QdrantEdgeDocumentStore(**{"path": str(folder), "embedding_dim": 4, **parameters}).unscoped()
