"""Embeds questions by the model that all pipelines of the process share, those that wait at the same time together."""

from typing import Any

from haystack import component

from shiguan.support.model_cache import PACKAGED_MODEL
from shiguan.support.question_encoder import QuestionEncoder, question_encoder


@component
class BatchingTextEmbedder:
    """
    Gives a question the vector that finds its passages, at the cost of the model's forward pass and little more.

    Stands where Haystack's `SentenceTransformersTextEmbedder` can stand, alone or inside a retriever or a
    `HyDEEmbedder`, and gives the same embedding for transformers with mean pooling. It differs in three points.
    Questions that arrive while the model is busy are encoded together, without a window of time in which a lone one
    waits. All embedders of a process that name the same model share one copy of it. And the token vectors that the pass
    gives anyway are remembered for a while, so that `LateInteractionRanker` needs no second pass.

    Example:
    ```python
    BatchingTextEmbedder().run(text="Who was Guo Ziyi?")["embedding"]   # 384 numbers
    ```
    """

    def __init__(self, model: str = PACKAGED_MODEL) -> None:
        """
        Name the model; nothing is loaded yet.

        :param model: The embedder's name in the Hugging Face cache, or its folder; the one that the passages were
            embedded with. Nothing is downloaded.
        :raises ValueError: If the name is empty.
        """
        if not model.strip():
            raise ValueError("`model` must name an embedder or its folder, got an empty text.")
        self.model = model

    def warm_up(self) -> None:
        """
        Load the model, or take the copy that this process has; a second call does nothing.

        :raises ConfigurationError: If the model is not on this machine, or cannot be used this way.
        """
        self._encoder.warm_up()

    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, Any]:
        """
        Embed a question.

        :param text: The question; what is beyond the model's window is not read.
        :returns: `embedding`, as many numbers as the model has dimensions.
        :raises TypeError: If `text` is no text.
        :raises ConfigurationError: If the model is not on this machine, or cannot be used this way.
        """
        return {"embedding": self._encoder.encode(_checked(text)).embedding.tolist()}

    @component.output_types(embedding=list[float])
    async def run_async(self, text: str) -> dict[str, Any]:
        """
        Embed a question without blocking the event loop.

        :param text: The question; what is beyond the model's window is not read.
        :returns: As `run`.
        :raises TypeError: If `text` is no text.
        :raises ConfigurationError: If the model is not on this machine, or cannot be used this way.
        """
        return {"embedding": (await self._encoder.encode_async(_checked(text))).embedding.tolist()}

    @property
    def _encoder(self) -> QuestionEncoder:
        return question_encoder(self.model)


def _checked(text: object) -> str:
    if not isinstance(text, str):
        raise TypeError(
            f"`text` must be a string, got {type(text).__name__}. Documents are embedded by a document embedder."
        )
    return text
