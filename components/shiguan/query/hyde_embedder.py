"""Embeds a question by way of the passage that might answer it."""

import asyncio
import math
from functools import partial
from typing import Any

from haystack import Document, component
from haystack.components.embedders.types import DocumentEmbedder, TextEmbedder
from haystack.components.generators.chat.types import ChatGenerator

from shiguan.llm.calls import LlmReply, ask_llm_async, blocking, is_available, run_nested_async, warm_up_generator
from shiguan.llm.prompt_rendering import render_prompt
from shiguan.llm.source_blocks import neutral_text
from shiguan.serialization import Serializable
from shiguan.text.languages import detect_language
from shiguan.text.questions import cleaned_passage

_NO_LLM = "No LLM is configured: the question was embedded as it is, without a hypothetical passage."
# A passage is cut to so many characters.
_LONGEST_PASSAGE = 1200
_MOST_PASSAGES = 8


@component
class HyDEEmbedder(Serializable):
    """
    Embeds hypothetical passages together with the question (HyDE).

    A question and the passage that answers it are written differently; a passage that a model imagines is written like
    the real one, and so lies nearer to it, even where its details are wrong. Stands in the place of a text embedder,
    alone or nested in a retriever. `use_hyde` comes from `QueryAnalyzer`, since only questions whose answer is prose
    gain from it. The embedding is the mean of the passages' embeddings and the question's own, each of length one,
    brought to length one again: Gao et al. 2022, Precise Zero-Shot Dense Retrieval without Relevance Labels,
    https://arxiv.org/abs/2212.10496, section 3. The paper averages without normalising and samples eight passages;
    one is the default here, because each is a call. The calls run side by side.

    Passages are embedded as passages, all in one call of the document embedder: many models tell them from questions.
    `MultiQueryHybridRetriever` searches them by words as well.

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
        n_passages: int = 1,
        style: str = "",
        use_hyde: bool = True,
        generation_kwargs: dict[str, Any] | None = None,
    ) -> None:
        """
        Set how passages are imagined.

        :param text_embedder: Any of Haystack's text embedders, for the question.
        :param document_embedder: The document embedder of the same model, for the passages.
        :param chat_generator: The model; None for none.
        :param n_passages: How many passages are imagined; a call each.
        :param style: How the library is written, in words, such as "classical Chinese, as in the dynastic histories".
        :param use_hyde: What `run` does when it is not told.
        :param generation_kwargs: For these calls, such as `{"temperature": 0.7}`.
        :raises ValueError: If `n_passages` is out of its range.
        """
        if not 1 <= n_passages <= _MOST_PASSAGES:
            raise ValueError(f"`n_passages` must lie between 1 and {_MOST_PASSAGES}, got {n_passages}.")
        self.text_embedder = text_embedder
        self.document_embedder = document_embedder
        self.chat_generator = chat_generator
        self.n_passages = n_passages
        self.style = style
        self.use_hyde = use_hyde
        self.generation_kwargs = generation_kwargs

    def warm_up(self) -> None:
        """Prepare the question's embedder and the generator; a second call does nothing."""
        warm_up_generator(self.text_embedder)
        warm_up_generator(self.chat_generator)

    @component.output_types(embedding=list[float], hypothetical_passages=list[str], warnings=list[str], llm_calls=int)
    async def run_async(self, text: str, use_hyde: bool | None = None) -> dict[str, Any]:
        """
        Embed a question.

        :param text: The question.
        :param use_hyde: Whether to imagine passages for it; None for the component's own `use_hyde`.
        :returns: `embedding`, of length one where passages went into it, empty where the embedder gives none;
            `hypothetical_passages`; `warnings`; `llm_calls`.
        """
        self.warm_up()
        wanted = bool(text.strip()) and (self.use_hyde if use_hyde is None else use_hyde)
        embedding = run_nested_async(self.text_embedder, text=text)
        replies: list[LlmReply] = []
        if wanted and is_available(self.chat_generator):
            language = detect_language(text)
            messages = render_prompt("hyde_embedder", query=neutral_text(text), language=language, style=self.style)
            ask = partial(ask_llm_async, self.chat_generator, messages, generation_kwargs=self.generation_kwargs)
            own, replies = await asyncio.gather(embedding, asyncio.gather(*(ask() for _ in range(self.n_passages))))
        else:
            own = await embedding
        cleaned = (cleaned_passage(reply.text, _LONGEST_PASSAGE) for reply in replies)
        passages = list(dict.fromkeys(filter(None, cleaned)))
        warnings = [_NO_LLM] if wanted and not replies else []
        if replies and not passages:
            reason = next((reply.failure for reply in replies if reply.failure), "the LLM wrote no passage")
            warnings = [f"No hypothetical passage ({reason}): the question was embedded as it is."]
        vector = own["embedding"]
        if passages and vector:
            warm_up_generator(self.document_embedder)
            documents = [Document(content=passage) for passage in passages]
            found = (await run_nested_async(self.document_embedder, documents=documents))["documents"]
            vector = _mean([vector, *(document.embedding for document in found if document.embedding)])
        return {
            "embedding": vector,
            "hypothetical_passages": passages,
            "warnings": [*(own.get("warnings") or []), *warnings],
            "llm_calls": len(replies),
        }

    run = blocking(run_async)


def _mean(vectors: list[list[float]]) -> list[float]:
    if len(vectors) == 1:
        return vectors[0]
    return _unit([sum(values) / len(vectors) for values in zip(*map(_unit, vectors), strict=True)])


def _unit(vector: list[float]) -> list[float]:
    length = math.sqrt(sum(value * value for value in vector))
    return [value / length for value in vector] if length > 0 else list(vector)
