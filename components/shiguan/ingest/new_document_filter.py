"""Lets through only what the store does not hold yet, so that nothing is written and embedded twice."""

from typing import Any

from haystack import Document, component


@component
class NewDocumentFilter:
    """
    Drops documents whose id is in the store already.

    Stands before the writer of children, so that a known child keeps its vector. Ids are hashes of all that a document
    is, so the same id is the same document: a file that is ingested again costs no writing and no embedding, and one
    that changed costs only its changed passages. In an index it waits for the parents, so that a child that is found
    leads to its passage even if the process dies between the two.
    """

    tenant_role = "writes"

    def __init__(self, document_store: Any) -> None:
        """
        Keep the store.

        :param document_store: The store that the documents are going to; it tells which ids it has (`existing_ids`).
        """
        self.document_store = document_store

    @component.output_types(documents=list[Document], known=int)
    def run(self, documents: list[Document], parents_written: int | None = None) -> dict[str, Any]:  # noqa: ARG002
        """
        Filter documents.

        :param documents: Documents on their way to the store.
        :param parents_written: What the writer of the parents gives; connected, it makes the children come after them.
        :returns: The `documents` that are new, each id once, in their order; `known`, how many were dropped.
        """
        known = self.document_store.existing_ids([document.id for document in documents])
        new: dict[str, Document] = {}
        for document in documents:
            if document.id not in known:
                new.setdefault(document.id, document)
        return {"documents": list(new.values()), "known": len(documents) - len(new)}
