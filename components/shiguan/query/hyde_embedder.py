"""Embeds a question by way of the passage that might answer it."""

import asyncio
import math
import re
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from haystack import component
from haystack.components.embedders.types import TextEmbedder
from haystack.components.generators.chat.types import ChatGenerator
from haystack.dataclasses import ChatMessage

from shiguan.llm.calls import LlmReply, ask_llm, ask_llm_async, is_available, warm_up_generator
from shiguan.llm.neutral_text import neutral_text
from shiguan.llm.prompt_rendering import render_prompt
from shiguan.support.languages import detect_language

_NO_LLM = "No LLM is configured: the question was embedded as it is, without a hypothetical passage."
_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"```[ \t]*\w*")
_LABEL = re.compile(
    r"^\s*(?:\**(?:hypothetical |imagined )?(?:passage|answer|paragraph|document)\**\s*[:：]\**|"
    r"(?:假想|段落|正文|原文|答)[^，。\s]{0,4}[:：]|"
    r"here(?:'s| is)[^\n:]{0,80}:|(?:以下|下面)是[^\n：:]{0,30}[：:])\s*",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"^\W*(?:i(?:'m| am) (?:sorry|unable|not able)|sorry\b|i (?:cannot|can't|won't)|as an ai|很?抱歉|对不起|對不起|"
    r"作为(?:一个)?(?:AI|人工智能|语言模型)|我?无法|我不能)",
    re.IGNORECASE,
)
_SHORTEST = 8
_MOST_PASSAGES = 8


@component
class HyDEEmbedder:
    """
    Embeds hypothetical passages together with the question (HyDE).

    A question and the passage that answers it are written differently; a passage that a model imagines is written like
    the real one, and so lies nearer to it, even where its details are wrong. Stands in the place of a text embedder,
    alone or nested in a retriever. `use_hyde` comes from `QueryAnalyzer`, since only questions whose answer is prose
    gain from it. The embedding is the mean of the passages' embeddings and the question's own, each of length one,
    brought to length one again: Gao et al. 2022, Precise Zero-Shot Dense Retrieval without Relevance Labels,
    https://arxiv.org/abs/2212.10496, section 3. The paper averages without normalising and samples eight passages;
    one is the default here, because each is a call. The calls run side by side.

    Without a model, after an error and without a usable passage the question is embedded as the embedder does it; a
    warning says so.

    Reply of the model: the passage alone, as plain text.

    Example:
    ```python
    embedder = HyDEEmbedder(text_embedder, chat_generator=ConfiguredChatGenerator(), style="classical Chinese")
    embedder.run(text="安史之乱为什么会爆发？", use_hyde=True)
    # {"embedding": [0.03, …], "hypothetical_passages": ["天寶末，帝春秋高…"], "warnings": [], "llm_calls": 1}
    ```
    """

    def __init__(
        self,
        text_embedder: TextEmbedder,
        *,
        chat_generator: ChatGenerator | None = None,
        n_passages: int = 1,
        style: str = "",
        use_hyde: bool = True,
        max_characters: int = 1200,
        generation_kwargs: dict[str, Any] | None = None,
        raise_on_failure: bool = False,
    ) -> None:
        """
        Set how passages are imagined.

        :param text_embedder: Any of Haystack's text embedders.
        :param chat_generator: The model; None for none.
        :param n_passages: How many passages are imagined; a call each, side by side.
        :param style: How the library is written, in words, such as "classical Chinese, as in the dynastic histories".
        :param use_hyde: What `run` does when it is not told.
        :param max_characters: A passage is cut to so many.
        :param generation_kwargs: For these calls, such as `{"temperature": 0.7}`.
        :param raise_on_failure: Let an error of the model through.
        :raises ValueError: If a number is out of its range.
        """
        if not 1 <= n_passages <= _MOST_PASSAGES:
            raise ValueError(f"`n_passages` must lie between 1 and {_MOST_PASSAGES}, got {n_passages}.")
        if max_characters < 1:
            raise ValueError(f"`max_characters` must be positive, got {max_characters}.")
        self.text_embedder = text_embedder
        self.chat_generator = chat_generator
        self.n_passages = n_passages
        self.style = style
        self.use_hyde = use_hyde
        self.max_characters = max_characters
        self.generation_kwargs = generation_kwargs
        self.raise_on_failure = raise_on_failure

    def warm_up(self) -> None:
        """Prepare embedder and generator; a second call does nothing."""
        warm_up_generator(self.text_embedder)
        warm_up_generator(self.chat_generator)

    @component.output_types(embedding=list[float], hypothetical_passages=list[str], warnings=list[str], llm_calls=int)
    def run(self, text: str, use_hyde: bool | None = None) -> dict[str, Any]:
        """
        Embed a question.

        :param text: The question.
        :param use_hyde: Whether to imagine passages for it; None for the component's own `use_hyde`.
        :returns: `embedding`, of length one where passages went into it; `hypothetical_passages`, these; `warnings`;
            `llm_calls`.
        """
        generator, warnings = self._generator(text, use_hyde)
        if generator is None:
            return _result(self._embed(text), warnings=warnings)
        messages = self._prompt(text)
        if self.n_passages == 1:
            replies = [self._ask(generator, messages)]
        else:
            with ThreadPoolExecutor(self.n_passages) as pool:
                tasks = [
                    pool.submit(copy_context().run, self._ask, generator, messages) for _ in range(self.n_passages)
                ]
                replies = [task.result() for task in tasks]
        passages, warnings = self._passages(replies)
        vectors = [self._embed(content) for content in [text, *passages]]
        return _result(_mean(vectors), passages, warnings, len(replies))

    @component.output_types(embedding=list[float], hypothetical_passages=list[str], warnings=list[str], llm_calls=int)
    async def run_async(self, text: str, use_hyde: bool | None = None) -> dict[str, Any]:
        """
        Embed a question without blocking the event loop.

        :param text: The question.
        :param use_hyde: Whether to imagine passages for it; None for the component's own `use_hyde`.
        :returns: As `run`.
        """
        generator, warnings = self._generator(text, use_hyde)
        if generator is None:
            return _result(await self._embed_async(text), warnings=warnings)
        messages = self._prompt(text)
        asking = asyncio.gather(*(self._ask_async(generator, messages) for _ in range(self.n_passages)))
        own, replies = await asyncio.gather(self._embed_async(text), asking)
        passages, warnings = self._passages(replies)
        vectors = [own, *[await self._embed_async(passage) for passage in passages]]
        return _result(_mean(vectors), passages, warnings, len(replies))

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

    def _ask(self, generator: ChatGenerator, messages: list[ChatMessage]) -> LlmReply:
        return ask_llm(
            generator, messages, generation_kwargs=self.generation_kwargs, raise_on_failure=self.raise_on_failure
        )

    async def _ask_async(self, generator: ChatGenerator, messages: list[ChatMessage]) -> LlmReply:
        return await ask_llm_async(
            generator, messages, generation_kwargs=self.generation_kwargs, raise_on_failure=self.raise_on_failure
        )

    def _embed(self, text: str) -> list[float]:
        warm_up_generator(self.text_embedder)
        embedding: list[float] = self.text_embedder.run(text=text)["embedding"]
        return embedding

    async def _embed_async(self, text: str) -> list[float]:
        run_async = getattr(self.text_embedder, "run_async", None)
        if not callable(run_async):
            return await asyncio.to_thread(self._embed, text)
        warm_up_generator(self.text_embedder)
        embedding: list[float] = (await run_async(text=text))["embedding"]
        return embedding

    def _passages(self, replies: list[LlmReply]) -> tuple[list[str], list[str]]:
        passages = [passage for reply in replies if (passage := cleaned_passage(reply.text, self.max_characters))]
        passages = list(dict.fromkeys(passages))
        if passages:
            return passages, []
        reason = next((reply.failure for reply in replies if reply.failure), "the LLM wrote no passage")
        return [], [f"No hypothetical passage ({reason}): the question was embedded as it is."]


def cleaned_passage(reply: str, max_characters: int) -> str:
    """
    Take a passage out of a reply.

    :param reply: What the model wrote.
    :param max_characters: The most that is kept.
    :returns: The passage without thoughts, fences, labels and quotation marks around it; empty if it is a refusal or
        next to nothing.
    """
    text = _FENCE.sub("", _THOUGHT.sub(" ", reply))
    text = _LABEL.sub("", text.strip(), count=1)
    text = " ".join(text.split()).strip("\"“”'` ")
    if len(text) < _SHORTEST or _REFUSAL.search(text):
        return ""
    return text[:max_characters]


def _mean(vectors: list[list[float]]) -> list[float]:
    if len(vectors) == 1:
        return vectors[0]
    units = [_unit(vector) for vector in vectors]
    return _unit([sum(values) / len(units) for values in zip(*units, strict=True)])


def _unit(vector: list[float]) -> list[float]:
    length = math.sqrt(sum(value * value for value in vector))
    return [value / length for value in vector] if length > 0 else list(vector)


def _result(
    embedding: list[float], passages: list[str] | None = None, warnings: list[str] | None = None, calls: int = 0
) -> dict[str, Any]:
    return {
        "embedding": embedding,
        "hypothetical_passages": passages or [],
        "warnings": warnings or [],
        "llm_calls": calls,
    }
