"""Answers from the numbered sources without a language model, by quoting the sentences that answer."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from haystack import component, logging
from haystack.dataclasses import ChatMessage, StreamingCallbackT, StreamingChunk
from haystack.dataclasses.streaming_chunk import select_streaming_callback
from haystack.tools import ToolsType

from shiguan.answer.answer_sentences import Candidate, answerability, candidates, points_back
from shiguan.llm.prompts import not_found_sentence
from shiguan.llm.source_blocks import SourceBlock, parse_question, parse_sources
from shiguan.text.han import has_han
from shiguan.text.languages import detect_language
from shiguan.text.near_duplicates import shingles, similarity
from shiguan.text.terms import terms

logger = logging.getLogger(__name__)

MODEL_NAME = "extractive"
# A further sentence is quoted only if it is nearly as good as the best one.
_NEARLY = 1.2
_SAME = 0.6
_LONGEST = 400
# A sentence that opens like this needs the one before it.
_CLAUSE_END = re.compile(r"[，,；;：:、](?=\s|[^\d\s])")
_WIDE_END = re.compile(r"[\u3000-\u9fff\uff00-\uffef][\"'”’」』）)\]》]*$")
_ENDED = re.compile(r"[.!?…。！？；;:：][\"'”’」』）)\]》]*$")


@component
class ExtractiveChatGenerator:
    """
    Quotes the sentences of the sources that answer the question, each with its number.

    Implements Haystack's chat generator protocol, so that the whole system runs without a key. It reads the sources
    and the question from the prompt (`shiguan.llm.source_blocks`), ranks every sentence by words shared with the
    question, by their rarity, and by the kind of answer asked for (a time, a number, a person, a reason…), and says
    the mode's not-found sentence when no sentence is good enough. It never adds a word of its own, and it says who
    answered: the reply's meta has `model: extractive` and a usage of zero tokens.

    Example:
    ```python
    generator = ExtractiveChatGenerator()
    generator.run(messages=prompt)["replies"][0].text
    # "天寶十四載十一月，安祿山反於范陽。[1]"
    ```
    """

    def __init__(self, mode: str = "simple", *, max_sentences: int = 3, threshold: float = 0.0) -> None:
        """
        Set how much to quote and when to abstain.

        :param mode: Whose not-found sentence to say: `simple`, `advanced` or `precise`.
        :param max_sentences: Most sentences of an answer.
        :param threshold: How likely the sources must answer the question, as log-odds: below it the answer is the
            not-found sentence. At 0.0 about nineteen of twenty answerable questions are answered, and at least four of
            five that another library would answer are not; docs/answers.md has the numbers.
        :raises ValueError: If `max_sentences` is not positive.
        """
        if max_sentences < 1:
            raise ValueError(f"`max_sentences` must be positive, got {max_sentences}.")
        not_found_sentence(mode, "en")
        self.mode = mode
        self.max_sentences = max_sentences
        self.threshold = threshold

    @component.output_types(replies=list[ChatMessage])
    def run(
        self,
        messages: list[ChatMessage] | str,
        streaming_callback: StreamingCallbackT | None = None,
        generation_kwargs: dict[str, Any] | None = None,
        *,
        tools: ToolsType | None = None,  # noqa: ARG002
    ) -> dict[str, list[ChatMessage]]:
        """
        Answer the last user message.

        :param messages: The prompt, with sources as `ContextBuilder` writes them.
        :param streaming_callback: Called with each quoted sentence.
        :param generation_kwargs: Part of the protocol; there is nothing to set.
        :param tools: Part of the protocol; none is used.
        :returns: `replies`, one message; none for an empty prompt.
        """
        reply, pieces = self._reply(messages, generation_kwargs)
        callback = select_streaming_callback(None, streaming_callback, requires_async=False)
        if callback is not None:
            for chunk in _chunks(pieces):
                callback(chunk)
        return {"replies": [reply] if reply else []}

    @component.output_types(replies=list[ChatMessage])
    async def run_async(
        self,
        messages: list[ChatMessage] | str,
        streaming_callback: StreamingCallbackT | None = None,
        generation_kwargs: dict[str, Any] | None = None,
        *,
        tools: ToolsType | None = None,  # noqa: ARG002
    ) -> dict[str, list[ChatMessage]]:
        """
        Answer the last user message, for asynchronous pipelines.

        :param messages: The prompt, with sources as `ContextBuilder` writes them.
        :param streaming_callback: Awaited with each quoted sentence.
        :param generation_kwargs: Part of the protocol; there is nothing to set.
        :param tools: Part of the protocol; none is used.
        :returns: `replies`, one message; none for an empty prompt.
        """
        reply, pieces = self._reply(messages, generation_kwargs)
        callback = select_streaming_callback(None, streaming_callback, requires_async=True)
        if callback is not None:
            for chunk in _chunks(pieces):
                await callback(chunk)
        return {"replies": [reply] if reply else []}

    def _reply(
        self,
        messages: list[ChatMessage] | str,
        generation_kwargs: dict[str, Any] | None,  # noqa: ARG002
    ) -> tuple[ChatMessage | None, list[str]]:
        """Give the reply and the pieces that it consists of."""
        if isinstance(messages, str):
            messages = [ChatMessage.from_user(messages)]
        asked = [message for message in messages if message.is_from("user") and message.text]
        if not asked:
            return None, []
        prompt = asked[-1].text or ""
        question = parse_question(prompt)
        sources = parse_sources(prompt) or []
        language = detect_language(question)
        if language == "und":
            language = str(asked[-1].meta.get("language", "en"))
        pieces = self._answer(question, sources) or [not_found_sentence(self.mode, language)]
        usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
        meta = {"model": MODEL_NAME, "index": 0, "finish_reason": "stop", "usage": usage}
        return ChatMessage.from_assistant("".join(pieces), meta=meta), pieces

    def _answer(self, question: str, sources: Sequence[SourceBlock]) -> list[str]:
        found = sorted(candidates(question, sources), key=lambda candidate: -candidate.score)
        if not found:
            return []
        value = answerability(question, sources, found[0])
        logger.debug("Best sentence {value} against {threshold}", value=value, threshold=self.threshold)
        if value < self.threshold:
            return []
        return _quoted(_chosen(found, self.max_sentences), question)


def _chosen(found: Sequence[Candidate], limit: int) -> list[Candidate]:
    """Take the best sentence, what it points back to, and others nearly as good that say something else."""
    places = {candidate.key: candidate for candidate in found}
    chosen: list[Candidate] = []
    for candidate in found:
        if len(chosen) >= limit or candidate.score < found[0].score - _NEARLY:
            break
        runs = shingles(candidate.text)
        if candidate in chosen or any(similarity(runs, shingles(other.text)) >= _SAME for other in chosen):
            continue
        before = places.get((candidate.number, candidate.position - 1))
        if before and before not in chosen and len(chosen) + 2 <= limit and points_back(candidate.text):
            chosen.append(before)
        chosen.append(candidate)
    # The best sentence's passage first, each passage in its own order.
    order = {number: rank for rank, number in enumerate(dict.fromkeys(candidate.number for candidate in chosen))}
    return sorted(chosen, key=lambda candidate: (order[candidate.number], candidate.position))


def _quoted(chosen: Sequence[Candidate], question: str) -> list[str]:
    pieces: list[str] = []
    for candidate in chosen:
        text = _one_line(_shortened(candidate.text, question))
        if not _ENDED.search(text):
            # A heading, a verse or a row of a table has no stop; without one it would run into the next sentence.
            text += "。" if has_han(text[-1:]) else "."
        # Han text is set without spaces; between it and Latin text one stands.
        before = "" if not pieces or has_han(text[:3]) else " "
        mark = f"[{candidate.number}]" if _WIDE_END.search(text) else f" [{candidate.number}]"
        pieces.append(before + text + mark)
    return pieces


def _shortened(text: str, question: str) -> str:
    """Cut an overlong sentence to the run of clauses that has most of the question's words."""
    if len(text) <= _LONGEST:
        return text
    asked = set(terms(question))
    ends = [match.end() for match in _CLAUSE_END.finditer(text)]
    clauses = [(start, end) for start, end in pairwise([0, *ends, len(text)]) if end > start]
    best, best_value = (0, _LONGEST), -1.0
    for at, (start, _) in enumerate(clauses):
        stop = max(
            [end for _, end in clauses[at:] if end - start <= _LONGEST], default=min(start + _LONGEST, len(text))
        )
        value = len(asked.intersection(terms(text[start:stop])))
        if value > best_value:
            best, best_value = (start, stop), value
    start, stop = best
    before, after = "…" if start else "", "…" if stop < len(text) else ""
    return before + text[start:stop].strip().rstrip("，,；;：:、") + after


def _one_line(text: str) -> str:
    # A line break inside a Chinese sentence is no space.
    text = re.sub(r"(?<=[\u3000-\u9fff\uff00-\uffef])\s*\n\s*(?=[\u3000-\u9fff\uff00-\uffef])", "", text)
    return " ".join(text.split())


def _chunks(pieces: Sequence[str]) -> list[StreamingChunk]:
    last = len(pieces) - 1
    return [
        StreamingChunk(
            content=piece,
            meta={"model": MODEL_NAME},
            finish_reason="stop" if place == last else None,
            index=0,
            start=place == 0,
        )
        for place, piece in enumerate(pieces)
    ]
