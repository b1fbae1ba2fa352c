"""Embeds a question by way of the passage that might answer it."""

import asyncio
import math
from typing import Any

from haystack import Document, component
from haystack.components.embedders.types import DocumentEmbedder, TextEmbedder
from haystack.components.generators.chat.types import ChatGenerator
from haystack.dataclasses import ChatMessage

from shiguan.llm.calls import (
    LlmReply,
    ask_llm,
    ask_llm_async,
    is_available,
    run_nested_async,
    warm_up_generator,
)
from shiguan.llm.prompt_rendering import render_prompt
from shiguan.llm.source_blocks import neutral_text
from shiguan.serialization import Serializable
from shiguan.text.languages import detect_language
from shiguan.text.questions import cleaned_passage

_NO_LLM = "No LLM is configured: the question was embedded as it is, without a hypothetical passage."
_MOST_PASSAGES = 8
# A passage is cut to so many characters.
_LONGEST_PASSAGE = 1200


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
    one is the default here, because each is a call. In an event loop the calls run side by side.

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
        raise_on_failure: bool = False,
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
        :param raise_on_failure: Let an error of the model through.
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
        self.raise_on_failure = raise_on_failure

    def warm_up(self) -> None:
        """Prepare the question's embedder and the generator; a second call does nothing."""
        warm_up_generator(self.text_embedder)
        warm_up_generator(self.chat_generator)

    @component.output_types(embedding=list[float], hypothetical_passages=list[str], warnings=list[str], llm_calls=int)
    def run(self, text: str, use_hyde: bool | None = None) -> dict[str, Any]:
        """
        Embed a question.

        :param text: The question.
        :param use_hyde: Whether to imagine passages for it; None for the component's own `use_hyde`.
        :returns: `embedding`, of length one where passages went into it, empty where the embedder gives none;
            `hypothetical_passages`; `warnings`; `llm_calls`.
        """
        self.warm_up()
        generator, warnings = self._generator(text, use_hyde)
        own = _of_question(self.text_embedder.run(text=text))
        if generator is None:
            return _result(own, [], [], warnings)
        messages = self._prompt(text)
        replies = [ask_llm(generator, messages, **self._how) for _ in range(self.n_passages)]
        passages, warnings = self._passages(replies)
        documents = [Document(content=passage) for passage in passages] if own[0] else []
        if documents:
            warm_up_generator(self.document_embedder)
            documents = self.document_embedder.run(documents=documents)["documents"]
        return _result(own, passages, documents, warnings, len(replies))

    @component.output_types(embedding=list[float], hypothetical_passages=list[str], warnings=list[str], llm_calls=int)
    async def run_async(self, text: str, use_hyde: bool | None = None) -> dict[str, Any]:
        """Do as `run`, without blocking the event loop."""
        self.warm_up()
        generator, warnings = self._generator(text, use_hyde)
        embedding = run_nested_async(self.text_embedder, text=text)
        if generator is None:
            return _result(_of_question(await embedding), [], [], warnings)
        messages = self._prompt(text)
        asking = asyncio.gather(*(ask_llm_async(generator, messages, **self._how) for _ in range(self.n_passages)))
        result, replies = await asyncio.gather(embedding, asking)
        own = _of_question(result)
        passages, warnings = self._passages(replies)
        documents = [Document(content=passage) for passage in passages] if own[0] else []
        if documents:
            warm_up_generator(self.document_embedder)
            documents = (await run_nested_async(self.document_embedder, documents=documents))["documents"]
        return _result(own, passages, documents, warnings, len(replies))

    def _generator(self, text: str, use_hyde: bool | None) -> tuple[ChatGenerator | None, list[str]]:
        wanted = self.use_hyde if use_hyde is None else use_hyde
        if not wanted or not text.strip():
            return None, []
        if self.chat_generator is None or not is_available(self.chat_generator):
            return None, [_NO_LLM]
        return self.chat_generator, []

    def _prompt(self, text: str) -> list[ChatMessage]:
        language = detect_language(text)
        return render_prompt("hyde_embedder", query=neutral_text(text), language=language, style=self.style)

    @property
    def _how(self) -> dict[str, Any]:
        return {"generation_kwargs": self.generation_kwargs, "raise_on_failure": self.raise_on_failure}

    def _passages(self, replies: list[LlmReply]) -> tuple[list[str], list[str]]:
        passages = [passage for reply in replies if (passage := cleaned_passage(reply.text, _LONGEST_PASSAGE))]
        passages = list(dict.fromkeys(passages))
        if passages:
            return passages, []
        reason = next((reply.failure for reply in replies if reply.failure), "the LLM wrote no passage")
        return [], [f"No hypothetical passage ({reason}): the question was embedded as it is."]


def _mean(vectors: list[list[float]]) -> list[float]:
    if len(vectors) == 1:
        return vectors[0]
    units = [_unit(vector) for vector in vectors]
    return _unit([sum(values) / len(units) for values in zip(*units, strict=True)])


def _unit(vector: list[float]) -> list[float]:
    length = math.sqrt(sum(value * value for value in vector))
    return [value / length for value in vector] if length > 0 else list(vector)


def _of_question(result: dict[str, Any]) -> tuple[list[float], list[str]]:
    return result["embedding"], result.get("warnings") or []


def _result(
    own: tuple[list[float], list[str]],
    passages: list[str],
    embedded: list[Document],
    warnings: list[str],
    calls: int = 0,
) -> dict[str, Any]:
    vector, of_embedder = own
    return {
        "embedding": _mean([vector, *[list(document.embedding) for document in embedded if document.embedding]]),
        "hypothetical_passages": passages,
        "warnings": [*of_embedder, *warnings],
        "llm_calls": calls,
    }
