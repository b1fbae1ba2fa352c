"""Passes on only documents that the store does not have yet, so that nothing is written and embedded twice."""

from typing import Any

from haystack import Document, component


@component
class NewDocumentFilter:
    """
    Drops documents whose id is already in the store.

    It comes before the writer of children, so that a known child keeps its vector. Ids are hashes of everything in a
    document, so the same id is the same document: a file that is ingested again is not written and embedded again, and
    of one that changed only the changed passages are. In an index it waits for the parents, so that every child that is
    found has its parent even if the process dies between the two.
    """

    tenant_role = "writes"

    def __init__(self, document_store: Any) -> None:
        """
        Set the store.

        :param document_store: The store of the documents; it reports which ids it has (`existing_ids`).
        """
        self.document_store = document_store

    @component.output_types(documents=list[Document], known=int)
    def run(self, documents: list[Document], parents_written: int | None = None) -> dict[str, Any]:  # noqa: ARG002
        """
        Filter documents.

        :param documents: Documents on their way to the store.
        :param parents_written: The output of the parents' writer; connected so that this runs after it.
        :returns: The `documents` that are new, each id once, in order; `known`, how many were dropped.
        """
        known = self.document_store.existing_ids([document.id for document in documents])
        new: dict[str, Document] = {}
        for document in documents:
            if document.id not in known:
                new.setdefault(document.id, document)
        return {"documents": list(new.values()), "known": len(documents) - len(new)}
