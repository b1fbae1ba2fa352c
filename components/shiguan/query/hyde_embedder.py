"""Embeds a question by way of the passage that might answer it."""

import asyncio
import math
from typing import Any

from haystack import Document, component
from haystack.components.embedders.types import DocumentEmbedder, TextEmbedder
from haystack.components.generators.chat.types import ChatGenerator

from shiguan.llm.calls import ask_llm_async, blocking, is_available, run_nested_async, warm_up_generator
from shiguan.llm.prompt_rendering import render_prompt
from shiguan.llm.source_blocks import neutral_text
from shiguan.serialization import Serializable
from shiguan.text.languages import detect_language
from shiguan.text.questions import cleaned_passage

_NO_LLM = "No LLM is configured: the question was embedded as it is, without a hypothetical passage."
# A passage is cut to so many characters.
_LONGEST_PASSAGE = 1200


@component
class HyDEEmbedder(Serializable):
    """
    Embeds a hypothetical passage together with the question (HyDE).

    A question and the passage that answers it are written differently; a passage that a model imagines is written like
    the real one, and so lies nearer to it, even where its details are wrong. Stands in the place of a text embedder,
    alone or nested in a retriever. `use_hyde` comes from `QueryAnalyzer`, since only questions whose answer is prose
    gain from it. The embedding is the mean of the passage's embedding and the question's own, each of length one,
    brought to length one again: Gao et al. 2022, Precise Zero-Shot Dense Retrieval without Relevance Labels,
    https://arxiv.org/abs/2212.10496, section 3. The paper averages without normalising and samples eight passages;
    here it is one, because each is a call.

    The passage is embedded as a passage: many models tell them from questions. `MultiQueryHybridRetriever` searches it
    by words as well.

    Without a model, after an error and without a usable passage the question is embedded as the embedder does it; a
    warning says so.

    Reply of the model: the passage alone, as plain text.

    Example:
    ```python
    embedder = HyDEEmbedder(
        E5TextEmbedder(), document_embedder=E5DocumentEmbedder(), chat_generator=ConfiguredChatGenerator()
    )
    embedder.run(text="安史之乱为什么会爆发？", use_hyde=True)
    # {"embedding": [0.03, …], "hypothetical_passages": ["天寶末，帝春秋高…"], "warnings": [], "llm_calls": 1}
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
        Name who imagines and who embeds.

        :param text_embedder: Any of Haystack's text embedders, for the question.
        :param document_embedder: The document embedder of the same model, for the passage.
        :param chat_generator: The model; None for none.
        """
        self.text_embedder = text_embedder
        self.document_embedder = document_embedder
        self.chat_generator = chat_generator

    def warm_up(self) -> None:
        """Prepare the question's embedder and the generator; a second call does nothing."""
        warm_up_generator(self.text_embedder)
        warm_up_generator(self.chat_generator)

    @component.output_types(embedding=list[float], hypothetical_passages=list[str], warnings=list[str], llm_calls=int)
    async def run_async(self, text: str, use_hyde: bool = True) -> dict[str, Any]:
        """
        Embed a question.

        :param text: The question.
        :param use_hyde: Whether to imagine a passage for it.
        :returns: `embedding`, of length one where a passage went into it, empty where the embedder gives none;
            `hypothetical_passages`, the one, or none; `warnings`; `llm_calls`, 0 or 1.
        """
        self.warm_up()
        embedding = run_nested_async(self.text_embedder, text=text)
        if not use_hyde or not text.strip() or not is_available(self.chat_generator):
            own = await embedding
            warnings = [_NO_LLM] if use_hyde and text.strip() else []
            passage, calls = "", 0
        else:
            language = detect_language(text)
            messages = render_prompt("hyde_embedder", query=neutral_text(text), language=language)
            own, reply = await asyncio.gather(embedding, ask_llm_async(self.chat_generator, messages))
            passage, calls = cleaned_passage(reply.text, _LONGEST_PASSAGE), 1
            reason = reply.failure or "the LLM wrote no passage"
            warnings = [] if passage else [f"No hypothetical passage ({reason}): the question was embedded as it is."]
        vector = own["embedding"]
        if passage and vector:
            warm_up_generator(self.document_embedder)
            found = await run_nested_async(self.document_embedder, documents=[Document(content=passage)])
            vector = _mean(vector, found["documents"][0].embedding or [])
        return {
            "embedding": vector,
            "hypothetical_passages": [passage] if passage else [],
            "warnings": [*(own.get("warnings") or []), *warnings],
            "llm_calls": calls,
        }

    run = blocking(run_async)


def _mean(question: list[float], passage: list[float]) -> list[float]:
    if not passage:
        return question
    return _unit([(one + other) / 2 for one, other in zip(_unit(question), _unit(passage), strict=True)])


def _unit(vector: list[float]) -> list[float]:
    length = math.sqrt(sum(value * value for value in vector))
    return [value / length for value in vector] if length > 0 else list(vector)
