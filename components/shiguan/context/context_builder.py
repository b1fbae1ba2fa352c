"""Turns ranked parents into one bounded, numbered context with the same text every time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count as count_from
from typing import Any, Literal, get_args

from haystack import Document, component, logging
from haystack.components.generators.chat.types import ChatGenerator

from shiguan.llm.calls import NO_LLM, ask_llm_async, blocking, is_available, warm_up_generator
from shiguan.llm.json_replies import json_object
from shiguan.llm.prompts import render_prompt
from shiguan.llm.run import check_in_thread
from shiguan.llm.source_blocks import SOURCE_END, SourceStyle, neutral_text, numbered, render_sources, source_header
from shiguan.models.token_counter import TokenCounter
from shiguan.reading.passage import Passage
from shiguan.reading.question import read_question
from shiguan.reading.text import Text, read_text
from shiguan.text.passages import Span, cut_span, similarity, with_gaps
from shiguan.text.questions import fault_of_goal
from shiguan.text.terms import covered

logger = logging.getLogger(__name__)

Strategy = Literal["truncate", "dynamic", "hierarchical", "summarize"]
# From this similarity of term shingles on, 0 to 1, the lower-ranked of two passages is left out.
_DUPLICATE = 0.9
_ANY_NUMBER = 10
# A passage's share for `dynamic` is at least this many tokens: many tiny pieces say less than a few that can be
# understood. A passage with none of the question's words weighs the second, one that has all of them one more.
_LEAST_SHARE, _LEAST_WEIGHT = 120, 0.2
# The meta fields that say what a model has read of a passage.
_READ = ("cut", "kept", "summed_up")
# Summaries may take one token in so many of the budget; each has at most `_SUMMARY` tokens and its header.
_SUMMARIES_SHARE, _SUMMARY = 3, 60
# The passages that one call sums up have together at most so many times the budget's tokens.
_MOST_SUMMED = 4


@dataclass(frozen=True)
class _Entry:
    """A passage of the context: the document that is passed on, and the text that is read where that differs."""

    document: Document
    text: str | None = None

    def as_read(self) -> Document:
        return self.document if self.text is None else replace(self.document, content=self.text)


@component
class ContextBuilder:
    """
    Chooses the passages that the generator reads, numbers them, and writes them between delimiters.

    It comes between the last ranking and the prompt. The best passages come first, by score and then by id, so the same
    passages give byte-identical text; passages without a score keep their order. Near-duplicates of a better passage
    are left out. Passages are added while they fit the budget; the strategy decides what is read of each:

    - `truncate`: whole passages; the best one is cut around its matched children rather than left out.
    - `dynamic`: every passage, cut around its matched children to a share that is the larger the more of the question's
      words it has.
    - `hierarchical`: of each passage its headings and the matched sentences with the one before and after; then, best
      first, the whole passage instead, while it fits.
    - `summarize`: whole passages, and of those that do not fit in two thirds of the budget what they say about the
      question, summed up by a model in one call. Claims are checked against the passages, not against the summaries.
      What the model does not sum up usably is left out, as `truncate` does; a warning says so.

    A passage that has a number keeps it, and one that is in an earlier message of the prompt is referred to by it; new
    ones get the numbers after the highest, best first. A line `…` marks a gap.

    In the rendered context everything that looks like a delimiter, a citation mark or a role is made harmless. The
    documents that are returned keep the original text, as one stretch that has everything that was read, so that a
    citation's place in it is a place in the stored parent.

    Reply of the model: an object with `summaries`, texts by the number of the passage.

    Example:
    ```python
    builder = ContextBuilder()
    built = builder.run(documents=[Document(content="An Lushan rose in 755.", meta={"source": "tang.epub"})])
    print(built["context"])
    # <sources>
    # <source number="1" file="tang.epub">
    # An Lushan rose in 755.
    # </source>
    # </sources>
    ```
    """

    def __init__(
        self,
        token_budget: int = 6000,
        *,
        strategy: Strategy = "truncate",
        style: SourceStyle = "tags",
        separator: str = "\n",
        model: str | None = None,
        chat_generator: ChatGenerator | None = None,
    ) -> None:
        """
        Set the limits and the form.

        :param token_budget: The most tokens in the context, headers included.
        :param strategy: What is read of each passage: `truncate`, `dynamic`, `hierarchical` or `summarize`.
        :param style: How a passage begins: `tags`, as above, or `brackets`, `[Source 1] (File: tang.epub, Page: 63)`.
            Passages in earlier messages have tags in any case.
        :param separator: What stands between two passages.
        :param model: A model whose tokens tiktoken counts, such as `gpt-4.1-mini`; None for the embedder's tokens.
        :param chat_generator: The model of `summarize`; None for none.
        :raises ValueError: If the budget is not positive, or the strategy or the style unknown.
        """
        if token_budget < 1:
            raise ValueError(f"`token_budget` must be positive, got {token_budget}.")
        if strategy not in get_args(Strategy):
            raise ValueError(f"`strategy` must be one of {', '.join(get_args(Strategy))}, got `{strategy}`.")
        if style not in get_args(SourceStyle):
            raise ValueError(f"`style` must be one of {', '.join(get_args(SourceStyle))}, got `{style}`.")
        self.token_budget = token_budget
        self.strategy = strategy
        self.style = style
        self.separator = separator
        self.model = model
        self.chat_generator = chat_generator
        self._counter = TokenCounter(model)

    def warm_up(self) -> None:
        """Load the tokenizer and prepare the nested generator; a second call does nothing."""
        self._counter.warm_up()
        warm_up_generator(self.chat_generator)

    @component.output_types(documents=list[Document], context=str, warnings=list[str])
    async def run_async(
        self,
        documents: list[Document],
        query: str = "",
        *,
        shown: list[Document] | None = None,
    ) -> dict[str, Any]:
        """
        Build the context.

        :param documents: Parents, best first or with scores; those without text are left out. They are chosen by rank
            and ordered by number: that in their meta or in `shown`, or one after the highest of these.
        :param query: The question; read by `dynamic` and `summarize`.
        :param shown: The passages that already have a number, as `meta.number`; those with content are in earlier
            messages of the prompt.
        :returns: `documents`, those in the prompt by their numbers, earlier ones too, with `meta.number` from 1 and, if
            not read whole, the stretch that was read as content, `meta.cut`, its [start, end] in the stored parent, and
            `meta.kept`, the spans within it where gaps are marked, or `meta.summed_up`, the summary that was read of
            the content; `context`, the rendered text; `warnings` about what was cut or did not fit.
        """
        self.warm_up()
        earlier = {document.id: document for document in shown or [] if document.content is not None}
        kept, chosen, warnings, wanted = await check_in_thread(partial(self._first, documents, query, earlier))
        if wanted:
            summaries, faults = await self._summaries(wanted, query)
            if summaries:
                chosen, warnings = await check_in_thread(partial(self._chosen, kept, query, summaries))
            warnings += faults
        given = [each for each in (*(shown or []), *documents) if isinstance(each.meta.get("number"), int)]
        numbers: dict[str, int] = {document.id: document.meta["number"] for document in reversed(given)}
        free = count_from(max(numbers.values(), default=0) + 1)
        new = [entry.document.id for entry in chosen if entry.document.id not in numbers]
        numbers.update(zip(new, free, strict=False))
        found = [_Entry(numbered(entry.document, numbers[entry.document.id]), entry.text) for entry in chosen]
        logger.debug("Context of {count} passages out of {given}", count=len(chosen), given=len(kept))
        passages = {**earlier, **{entry.document.id: _as_shown(entry.document, earlier) for entry in found}}
        sources = [entry.as_read() for entry in found if entry.document.id not in earlier]
        sources.sort(key=lambda source: source.meta["number"])
        again = [numbers[entry.document.id] for entry in found if entry.document.id in earlier]
        return {
            "documents": sorted(passages.values(), key=lambda document: document.meta["number"]),
            "context": render_sources(sources, again, self.style, self.separator),
            "warnings": [*self._counter.warnings, *warnings],
        }

    run = blocking(run_async)

    def _first(
        self, documents: Sequence[Document], query: str, earlier: Mapping[str, Document]
    ) -> tuple[list[Document], list[_Entry], list[str], list[tuple[Document, Document]]]:
        """Rank and choose passages, and those to be summed up, each with the part of it that the model reads."""
        kept = _without_duplicates(documents)
        chosen, warnings = self._chosen(kept, query)
        if self.strategy != "summarize" or len(chosen) == len(kept):
            return kept, chosen, warnings, []
        share = self.token_budget // _SUMMARIES_SHARE
        left, wanted = self.token_budget - share, list[Document]()
        for document in kept:
            cost = self._cost(_Entry(document))
            if cost <= left or document is kept[0]:
                left -= cost
            elif document.id not in earlier and (share := share - self._header(document) - _SUMMARY // 2) >= 0:
                wanted.append(document)
        most = self.token_budget * _MOST_SUMMED // max(1, len(wanted))
        parts = [each if self._cost(_Entry(each)) <= most else self._cut(each, most) for each in wanted]
        return kept, chosen, warnings, list(zip(wanted, parts, strict=True))

    async def _summaries(
        self, wanted: Sequence[tuple[Document, Document]], query: str
    ) -> tuple[dict[str, _Entry], list[str]]:
        """Have passages summed up, in the summaries' share of the budget; also return warnings."""
        share = self.token_budget // _SUMMARIES_SHARE
        summaries: dict[str, _Entry] = {}
        fault = NO_LLM
        if is_available(self.chat_generator):
            sources = render_sources(numbered(part, number) for number, (_, part) in enumerate(wanted, start=1))
            prompt = render_prompt(
                "context_builder", context=sources, query=neutral_text(query), language=read_text(query).language
            )
            reply = await ask_llm_async(self.chat_generator, prompt)
            found = (json_object(reply.text, "summaries") or {}).get("summaries")
            texts = found if isinstance(found, dict) else {}
            for number, (document, part) in enumerate(wanted, start=1):
                summary = self._cut_summary(texts.get(str(number)))
                wrong = reply.failure or fault_of_goal(summary, part.content or "", part.content or "")
                if texts and not summary:
                    wrong = "the LLM wrote nothing about them"
                entry = _Entry(replace(document, meta={**document.meta, "summed_up": summary}), summary)
                if not wrong and (share := share - self._cost(entry)) < 0:
                    wrong = "they had no room left"
                fault = wrong or fault
                if not wrong:
                    summaries[document.id] = entry
        missing = len(wanted) - len(summaries)
        many = f"{missing} of {len(wanted)} passages that did not fit the context were not summed up ({fault})."
        return summaries, [many] if missing else []

    def _cut_summary(self, text: object) -> str:
        line = " ".join(neutral_text(text).split()) if isinstance(text, str) else ""
        start, end = cut_span(line, [], _SUMMARY, self._counter.count)
        return line[start:end]

    def _chosen(
        self, kept: Sequence[Document], query: str, summaries: Mapping[str, _Entry] | None = None
    ) -> tuple[list[_Entry], list[str]]:
        chosen: list[_Entry] = []
        warnings: list[str] = []
        left = self.token_budget - self._counter.count(render_sources([]))
        shares: list[float] = []
        if self.strategy == "dynamic":
            weights = read_question(query).weights
            shares = [_LEAST_WEIGHT + covered(weights, read_text(each.content or "").words) for each in kept]
        pieces = dict(summaries or {})
        if self.strategy == "hierarchical":
            pieces = {document.id: _around(document) for document in kept}
        least = [self._cost(pieces[document.id]) if document.id in pieces else 0 for document in kept]
        for rank, document in enumerate(kept, start=1):
            entry = _Entry(document)
            if shares:
                share = max(int(left * shares[rank - 1] / sum(shares[rank - 1 :])), min(_LEAST_SHARE, left))
                entry = _Entry(self._cut(document, share)) if self._cost(entry) > share else entry
            elif pieces and self._cost(entry) > left - sum(least[rank:]):
                entry = pieces.get(document.id, entry)
            # Only a summary, or the best passage, takes the room of the summaries that follow.
            room = left - sum(least[rank:]) if summaries and entry.text is None else left
            cost = self._cost(entry)
            if cost > left and not chosen:
                entry = _Entry(self._cut(entry.document, room))
                cost = self._cost(entry)
                warnings.append(
                    f"The best passage was cut to fit the context of {self.token_budget} tokens. "
                    "Raise `token_budget` to read it whole."
                )
            if cost <= room or not chosen:
                chosen.append(entry)
                left -= cost
        if len(chosen) < len(kept) / 2:
            # The budget is there to leave out the last of many passages; leaving out most needs a warning.
            warnings.append(
                f"{len(kept) - len(chosen)} of {len(kept)} passages did not fit the context of "
                f"{self.token_budget} tokens and were left out. Raise `token_budget` to read more."
            )
        return chosen, warnings

    def _cost(self, entry: _Entry) -> int:
        document, text = entry.document, entry.text
        tokens = document.meta.get("tokens")
        # The tokens of a whole passage were counted by the ingest; no token reaches from one line into another.
        if text is not None or "cut" in document.meta or not isinstance(tokens, int) or self.model is not None:
            tokens = self._counter.count(neutral_text((document.content or "") if text is None else text))
        return self._header(document) + tokens

    def _header(self, document: Document) -> int:
        # All get the same number, so that a header costs the same at any rank. One token more, for a tokenizer that
        # counts line breaks.
        header = source_header(document, _ANY_NUMBER, self.style)
        end = f"\n{SOURCE_END}" if self.style == "tags" else ""
        return self._counter.count(f"{header}\n{end}{self.separator}") + 1

    def _cut(self, document: Document, budget: int) -> Document:
        stretch = Passage(document).shortened(max(1, budget - self._header(document)), self._counter.count)
        # `kept` describes parts of a longer stretch; this one is read whole.
        return replace(stretch, meta={name: value for name, value in stretch.meta.items() if name != "kept"})


def _around(document: Document) -> _Entry:
    """Create the entry for the matched sentences of a passage, each with the one before and after it."""
    text, passage = document.content or "", Passage(document)
    sentences, matches = passage.text.sentences, passage.spans
    touched = [at for at, (a, b) in enumerate(sentences) if any(a < end and start < b for start, end in matches)]
    spans: list[Span] = []
    last = -1
    for at in touched or [0]:
        near = sentences[max(0, at - 1) : at + 2]
        if spans and at - 1 <= last + 1:
            spans[-1] = (spans[-1][0], near[-1][1])
        else:
            spans.append((near[0][0], near[-1][1]))
        last = at + 1
    if text[slice(*spans[0])] == text.strip():
        return _Entry(document)
    shortened = passage.stretch(spans[0][0], spans[-1][1])
    kept = [[passage.offset + start, passage.offset + end] for start, end in spans]
    return _Entry(replace(shortened, meta={**shortened.meta, "kept": kept}), with_gaps(text, spans))


def _without_duplicates(documents: Sequence[Document]) -> list[Document]:
    """Rank passages, without near-duplicates of a better one."""
    kept: list[Text] = []
    found = []
    for document in ranked(documents):
        text = read_text(document.content or "")
        # Each word that another passage lacks is in at least one shingle that it lacks: with more new words than this
        # the shingles cannot be similar enough, and need not be computed.
        most_new = 3 * (1 - _DUPLICATE) / _DUPLICATE * len(text.terms)
        alike = (other for other in kept if len(text.words) - len(text.words & other.words) <= most_new)
        if all(similarity(text.shingles, other.shingles) < _DUPLICATE for other in alike):
            kept.append(text)
            found.append(document)
    return found


def _as_shown(document: Document, shown: Mapping[str, Document]) -> Document:
    """Return a passage as the model has read it, which an earlier message may have cut differently."""
    earlier = shown.get(document.id)
    if earlier is None:
        return document
    meta = {name: value for name, value in document.meta.items() if name not in _READ}
    read: dict[str, Any] = {name: earlier.meta[name] for name in _READ if name in earlier.meta}
    return replace(document, content=earlier.content, meta={**meta, **read})


def ranked(documents: Sequence[Document]) -> list[Document]:
    """Order passages best first, independently of the order in which they arrive."""
    readable = [document for document in documents if (document.content or "").strip()]
    if all(document.score is not None for document in readable):
        readable.sort(key=lambda document: (-(document.score or 0.0), document.id, str(Passage(document).spans)))
    first: dict[str, Document] = {}
    for document in readable:
        first.setdefault(document.id, document)
    return list(first.values())
