"""Embeds a question together with a hypothetical passage that answers it."""

import asyncio
import math
from typing import Any

from haystack import Document, component
from haystack.components.embedders.types import DocumentEmbedder, TextEmbedder
from haystack.components.generators.chat.types import ChatGenerator

from shiguan.llm.calls import (
    NO_LLM,
    ask_llm_async,
    blocking,
    is_available,
    run_nested_async,
    warm_up_generator,
)
from shiguan.llm.prompts import render_prompt
from shiguan.llm.source_blocks import neutral_text
from shiguan.reading.text import read_text
from shiguan.serialization import Serializable
from shiguan.text.questions import cleaned_passage

_WITHOUT_LLM = f"{NO_LLM}: the question was embedded as it is, without a hypothetical passage."
# Passages are cut to this many characters.
_LONGEST_PASSAGE = 1200


@component
class HyDEEmbedder(Serializable):
    """
    Embeds a question, its other wordings and the passage that a model imagines as their answer as one vector (HyDE).

    A passage that a model imagines is written like the real one, and so is nearer to it than the question, even where
    its details are wrong. It takes the place of a text embedder before the embedding retriever. `use_hyde` comes from
    the analysis, since only questions whose answer is prose gain from it.

    The embedding is the mean of the unit vectors of the question, its wordings and the passage, normalised again (Gao
    et al. 2022, "Precise Zero-Shot Dense Retrieval without Relevance Labels", https://arxiv.org/abs/2212.10496, section
    3, without normalising and with eight passages; here one, because each is a call).

    Without a model, after an error and without a usable passage the wordings alone are embedded; a warning says so.

    Reply of the model: the passage alone, as plain text.

    Example:
    ```python
    embedder = HyDEEmbedder(text_embedder, document_embedder=document_embedder, chat_generator=OpenAIChatGenerator())
    embedder.run(text="安史之乱为什么会爆发？")
    # {"embedding": [0.03, …], "hypothetical_passages": ["天寶末，帝春秋高…"], "warnings": []}
    ```
    """

    def __init__(
        self,
        text_embedder: TextEmbedder,
        *,
        document_embedder: DocumentEmbedder,
        chat_generator: ChatGenerator | None = None,
    ) -> None:
        """
        Set the models.

        :param text_embedder: Any of Haystack's text embedders, for the question.
        :param document_embedder: The document embedder of the same model, for the passages.
        :param chat_generator: The model; None for none.
        """
        self.text_embedder = text_embedder
        self.document_embedder = document_embedder
        self.chat_generator = chat_generator

    def warm_up(self) -> None:
        """Prepare the question's embedder and the generator; a second call does nothing."""
        warm_up_generator(self.text_embedder)
        warm_up_generator(self.chat_generator)

    @component.output_types(embedding=list[float], hypothetical_passages=list[str], warnings=list[str])
    async def run_async(self, text: str | list[str], use_hyde: bool = True) -> dict[str, Any]:
        """
        Embed a question.

        :param text: The question, or the question and its other wordings.
        :param use_hyde: Whether to imagine a passage for it.
        :returns: `embedding`, a unit vector if it is made of more than the question, empty where the embedder gives
            none; `hypothetical_passages`, at most one; `warnings`.
        """
        self.warm_up()
        texts = [text] if isinstance(text, str) else list(dict.fromkeys(filter(str.strip, text))) or [""]
        question = texts[0]
        wanted = use_hyde and bool(question.strip())
        embedded = asyncio.gather(*(run_nested_async(self.text_embedder, text=wording) for wording in texts))
        reply, passage, warnings = None, "", [_WITHOUT_LLM] if wanted else []
        if wanted and is_available(self.chat_generator):
            messages = render_prompt(
                "hyde_embedder", query=neutral_text(question), language=read_text(question).language
            )
            own, reply = await asyncio.gather(embedded, ask_llm_async(self.chat_generator, messages))
            passage, warnings = cleaned_passage(reply.text, _LONGEST_PASSAGE), []
        else:
            own = await embedded
        if reply is not None and not passage:
            reason = reply.failure or "the LLM wrote no passage"
            warnings = [f"No hypothetical passage ({reason}): the question was embedded as it is."]
        vectors = [result["embedding"] for result in own if result["embedding"]]
        if passage and vectors:
            warm_up_generator(self.document_embedder)
            documents = [Document(content=passage)]
            found = (await run_nested_async(self.document_embedder, documents=documents))["documents"]
            vectors += [document.embedding for document in found if document.embedding]
        return {
            "embedding": _mean(vectors),
            "hypothetical_passages": [passage] if passage else [],
            "warnings": [*dict.fromkeys(text for result in own for text in result.get("warnings") or []), *warnings],
        }

    run = blocking(run_async)


def _mean(vectors: list[list[float]]) -> list[float]:
    if len(vectors) < 2:
        return vectors[0] if vectors else []
    return _unit([sum(values) / len(vectors) for values in zip(*map(_unit, vectors), strict=True)])


def _unit(vector: list[float]) -> list[float]:
    length = math.sqrt(sum(value * value for value in vector))
    return [value / length for value in vector] if length > 0 else list(vector)
