"""Lets through only what the store does not hold yet, so that nothing is written and embedded twice."""

from typing import Any

from haystack import Document, component
from haystack.document_stores.types import DocumentStore

_BATCH = 10_000


@component
class NewDocumentFilter:
    """
    Drops documents whose id is in the store already.

    Stands before the writer of children, so that a known child keeps its vector. Ids are hashes of all that a document
    is, so the same id is the same document: a file that is ingested again costs no writing and no embedding, and one
    that changed costs only its changed passages.
    """

    tenant_role = "writes"

    def __init__(self, document_store: DocumentStore) -> None:
        """
        Keep the store.

        :param document_store: The store that the documents are going to.
        """
        self.document_store = document_store

    @component.output_types(documents=list[Document], known=int)
    def run(self, documents: list[Document]) -> dict[str, Any]:
        """
        Filter documents.

        :param documents: Documents on their way to the store.
        :returns: The `documents` that are new, each id once, in their order; `known`, how many were dropped.
        """
        ids = [document.id for document in documents]
        known: set[str] = set()
        for start in range(0, len(ids), _BATCH):
            known |= self._existing(ids[start : start + _BATCH])
        new: dict[str, Document] = {}
        for document in documents:
            if document.id not in known:
                new.setdefault(document.id, document)
        return {"documents": list(new.values()), "known": len(documents) - len(new)}

    def _existing(self, ids: list[str]) -> set[str]:
        # Reading whole documents to learn their ids is what other stores offer.
        look_up = getattr(self.document_store, "existing_ids", None)
        if look_up is not None:
            return set(look_up(ids))
        found = self.document_store.filter_documents({"field": "id", "operator": "in", "value": ids})
        return {document.id for document in found}
