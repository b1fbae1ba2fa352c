"""Embeds documents, and keeps the vectors of their tokens, in one pass through the model."""

from dataclasses import replace
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict

from shiguan.support.model_cache import PACKAGED_MODEL
from shiguan.support.packed_tokens import META_KEY, pack
from shiguan.support.token_encoder import EncodedText, token_encoder


@component
class TokenVectorDocumentEmbedder:
    """
    Gives documents their embedding, and with it the vectors of their tokens.

    The embeddings are those of Haystack's `SentenceTransformersDocumentEmbedder` with the same parameters. The vectors
    that the model makes of a text's tokens on the way to its embedding are kept too: the store takes them out of the
    document, and later a question is compared with them token by token, without a second model (late interaction;
    Khattab and Zaharia, "ColBERT: Efficient and Effective Passage Search via Contextualized Late Interaction over
    BERT", 2020). Packed, those of a child take 5 KB.

    What lies beyond the model's window (256 tokens for the default) is in neither; it is found by its words.

    Example in YAML:
    ```yaml
    type: shiguan.ingest.token_vector_document_embedder.TokenVectorDocumentEmbedder
    init_parameters:
      model: sentence-transformers/all-MiniLM-L6-v2
      meta_fields_to_embed: [title]
    ```
    """

    tenant_role = "writes"

    def __init__(
        self,
        model: str = PACKAGED_MODEL,
        *,
        token_vectors: bool = True,
        meta_fields_to_embed: list[str] | None = None,
        embedding_separator: str = "\n",
        batch_size: int = 32,
    ) -> None:
        """
        Keep the settings; the model is loaded at the first run.

        :param model: A transformer with mean pooling in the Hugging Face cache, or its folder. Nothing is downloaded.
        :param token_vectors: Whether the token vectors are kept, for a store that knows them, such as
            `QdrantEdgeDocumentStore`. Without them nothing can be ranked by late interaction.
        :param meta_fields_to_embed: Meta fields that are encoded before the content, such as the title; their tokens
            count as the document's.
        :param embedding_separator: What stands between these and the content.
        :param batch_size: How many documents go through the model at once.
        :raises ValueError: If the batch is not positive.
        """
        if batch_size < 1:
            raise ValueError(f"`batch_size` must be positive, got {batch_size}.")
        self.model = model
        self.token_vectors = token_vectors
        self.meta_fields_to_embed = meta_fields_to_embed
        self.embedding_separator = embedding_separator
        self.batch_size = batch_size

    def to_dict(self) -> dict[str, Any]:
        """
        Write the settings; needed because this stands inside another component.

        :returns: What `from_dict` takes.
        """
        return default_to_dict(
            self,
            model=self.model,
            token_vectors=self.token_vectors,
            meta_fields_to_embed=self.meta_fields_to_embed,
            embedding_separator=self.embedding_separator,
            batch_size=self.batch_size,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "TokenVectorDocumentEmbedder":
        """
        Make an embedder from its settings.

        :param data: What `to_dict` returned.
        :returns: The embedder.
        """
        return default_from_dict(cls, data)

    def warm_up(self) -> None:
        """
        Load the model, once for all embedders of the process.

        :raises ConfigurationError: If it is not on this machine, or no transformer with mean pooling.
        """
        token_encoder(self.model).warm_up()

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, Any]:
        """
        Embed documents.

        :param documents: The documents; a missing content counts as an empty one.
        :returns: `documents`: the same with their embeddings, in their order; with their token vectors in
            `meta.token_vectors` if these are kept.
        :raises ConfigurationError: If the model cannot be loaded.
        """
        encoded = token_encoder(self.model).encode(
            [self._text(document) for document in documents],
            with_tokens=self.token_vectors,
            batch_size=self.batch_size,
        )
        return {"documents": list(map(self._embedded, documents, encoded))}

    def _embedded(self, document: Document, text: EncodedText) -> Document:
        meta = document.meta
        if self.token_vectors:
            meta = {**meta, META_KEY: pack(text, self.model)}
        return replace(document, meta=meta, embedding=text.embedding.tolist())

    def _text(self, document: Document) -> str:
        values = (document.meta.get(field) for field in self.meta_fields_to_embed or [])
        return self.embedding_separator.join([*(str(v) for v in values if v is not None), document.content or ""])
