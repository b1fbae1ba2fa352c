"""Embeds the documents whose language the embedder knows, and lets the others pass."""

from collections.abc import Callable
from typing import Any, Protocol

from haystack import Document, component


class _DocumentEmbedder(Protocol):
    """Any of Haystack's document embedders."""

    def run(self, documents: list[Document]) -> dict[str, Any]:
        """Give the documents back with their embeddings, in `documents`."""


@component
class LanguageAwareDocumentEmbedder:
    """
    Wraps a document embedder with what it needs to know about languages and lengths.

    An embedder that knows only English gives Chinese passages vectors that mean nothing, at full cost, and fused with
    the words' ranking they make it worse. So only documents in `languages` are embedded; the rest go on without a
    vector and are found by their words. Documents are embedded in slices sorted by length, since a batch costs as much
    as its longest member, and `progress` hears of every slice.

    Example in YAML:
    ```yaml
    type: shiguan.ingest.language_aware_document_embedder.LanguageAwareDocumentEmbedder
    init_parameters:
      languages: [en]
      document_embedder:
        type: haystack_integrations.components.embedders.….SentenceTransformersDocumentEmbedder
        init_parameters: {model: sentence-transformers/all-MiniLM-L6-v2}
    ```
    """

    def __init__(
        self, document_embedder: _DocumentEmbedder, *, languages: list[str] | None = None, batch_size: int = 128
    ) -> None:
        """
        Keep the embedder.

        :param document_embedder: Any document embedder component.
        :param languages: ISO 639-1 codes that it knows; None for all.
        :param batch_size: Documents in one slice.
        :raises ValueError: If the slice is not positive.
        """
        if batch_size < 1:
            raise ValueError(f"`batch_size` must be positive, got {batch_size}.")
        self.document_embedder = document_embedder
        self.languages = languages
        self.batch_size = batch_size

    def warm_up(self) -> None:
        """Load the embedder's model; a second call does nothing."""
        warm_up = getattr(self.document_embedder, "warm_up", None)
        if warm_up is not None:
            warm_up()

    @component.output_types(documents=list[Document], embedded=int, warnings=list[str])
    def run(self, documents: list[Document], progress: Callable[[str, int, int], None] | None = None) -> dict[str, Any]:
        """
        Embed documents.

        :param documents: Documents with `language` in their meta.
        :param progress: A plain function called with `"embedding"`, how many documents are done, and of how many.
        :returns: All `documents` in their order, those of known languages with an embedding; `embedded`, how many that
            are; `warnings`, one for all documents that have none.
        """
        known = [
            index
            for index, document in enumerate(documents)
            if self.languages is None or document.meta.get("language") in self.languages
        ]
        result = list(documents)
        if known:
            self.warm_up()
            known.sort(key=lambda index: len(documents[index].content or ""), reverse=True)
        done = len(documents) - len(known)
        for start in range(0, len(known), self.batch_size):
            if progress is not None:
                progress("embedding", done + start, len(documents))
            indexes = known[start : start + self.batch_size]
            embedded = self.document_embedder.run(documents=[documents[index] for index in indexes])["documents"]
            for index, document in zip(indexes, embedded, strict=True):
                result[index] = document
        if progress is not None and documents:
            progress("embedding", len(documents), len(documents))
        return {"documents": result, "embedded": len(known), "warnings": self._warnings(documents, known)}

    def _warnings(self, documents: list[Document], known: list[int]) -> list[str]:
        others = len(documents) - len(known)
        if not others:
            return []
        indexes = set(known)
        languages = sorted(
            {str(document.meta.get("language", "und")) for i, document in enumerate(documents) if i not in indexes}
        )
        return [
            f"{others:,} of {len(documents):,} new passages have no vector: they are in {', '.join(languages)}, and "
            f"the embedder knows only {', '.join(self.languages or [])}; they are found by their words."
        ]
