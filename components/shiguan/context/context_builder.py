"""Turns ranked parents into one bounded, numbered context with the same text every time."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count as count_from
from typing import Any

from haystack import Document, component, logging

from shiguan.llm.source_blocks import neutral_text, numbered, render_block, render_sources, source_block
from shiguan.models.token_counter import TokenCounter
from shiguan.text.passages import cut_span, passage_terms, shingles, similarity

logger = logging.getLogger(__name__)

# From this similarity of term shingles on, 0 to 1, the lower-ranked of two passages is left out.
_DUPLICATE = 0.9
_ANY_NUMBER = 10


@component
class ContextBuilder:
    """
    Chooses the passages that the generator reads, numbers them, and writes them between delimiters.

    It comes between the last ranking and the prompt. The best passages come first, by score and then by id, so the same
    passages give byte-identical text; passages without a score keep their order. Near-duplicates of a better passage
    are left out. Whole passages are added while they fit the budget; the best one is cut around its matched children
    rather than left out.

    A passage that has a number keeps it, and one that is in an earlier message of the prompt is referred to by it; new
    ones get the numbers after the highest, best first.

    In the rendered context everything that looks like a delimiter, a citation mark or a role is made harmless. The
    documents that are returned keep the original text, so that a citation's place in it is a place in the stored
    parent.

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

    def __init__(self, token_budget: int = 6000) -> None:
        """
        Set the limit.

        :param token_budget: The most tokens in the context, headers included, by the embedder's tokenizer.
        :raises ValueError: If the budget is not positive.
        """
        if token_budget < 1:
            raise ValueError(f"`token_budget` must be positive, got {token_budget}.")
        self.token_budget = token_budget
        self._counter = TokenCounter()

    def warm_up(self) -> None:
        """Load the tokenizer; a second call does nothing."""
        self._counter.warm_up()

    @component.output_types(documents=list[Document], context=str, warnings=list[str])
    def run(self, documents: list[Document], *, shown: list[Document] | None = None) -> dict[str, Any]:
        """
        Build the context.

        :param documents: Parents, best first or with scores; those without text are left out. They are chosen by rank
            and ordered by number: that in their meta or in `shown`, or one after the highest of these.
        :param shown: The passages that already have a number, as `meta.number`; those with content are in earlier
            messages of the prompt.
        :returns: `documents`, those in the prompt by their numbers, earlier ones too, with `meta.number` from 1 and, if
            cut, `meta.cut`, the [start, end] of their content in the stored parent; `context`, the rendered text;
            `warnings` about what was cut or did not fit.
        """
        self.warm_up()
        kept = _without_duplicates(documents)
        chosen, warnings = self._chosen(kept)
        given = [each for each in (*(shown or []), *documents) if isinstance(each.meta.get("number"), int)]
        numbers: dict[str, int] = {document.id: document.meta["number"] for document in reversed(given)}
        earlier = {document.id: document for document in shown or [] if document.content is not None}
        free = count_from(max(numbers.values(), default=0) + 1)
        new = [document.id for document in chosen if document.id not in numbers]
        numbers.update(zip(new, free, strict=False))
        found = [numbered(document, numbers[document.id]) for document in chosen]
        logger.debug("Context of {count} passages out of {given}", count=len(chosen), given=len(kept))
        passages = {**earlier, **{document.id: _as_shown(document, earlier) for document in found}}
        blocks = [source_block(document) for document in found if document.id not in earlier]
        blocks.sort(key=lambda block: block.number)
        again = [document.meta["number"] for document in found if document.id in earlier]
        return {
            "documents": sorted(passages.values(), key=lambda document: document.meta["number"]),
            "context": render_sources(blocks, again),
            "warnings": [*self._counter.warnings, *warnings],
        }

    def _chosen(self, kept: Sequence[Document]) -> tuple[list[Document], list[str]]:
        chosen: list[Document] = []
        warnings: list[str] = []
        left = self.token_budget - self._counter.count(render_sources([]))
        for document in kept:
            cost = self._cost(document)
            if cost > left and not chosen:
                document = self._cut(document, left)  # noqa: PLW2901
                cost = self._cost(document)
                warnings.append(
                    f"The best passage was cut to fit the context of {self.token_budget} tokens. "
                    "Raise `token_budget` to read it whole."
                )
            if cost <= left or not chosen:
                chosen.append(document)
                left -= cost
        if len(chosen) < len(kept) / 2:
            # The budget is there to leave out the last of many passages; leaving out most needs a warning.
            warnings.append(
                f"{len(kept) - len(chosen)} of {len(kept)} passages did not fit the context of "
                f"{self.token_budget} tokens and were left out. Raise `token_budget` to read more."
            )
        return chosen, warnings

    def _cost(self, document: Document) -> int:
        tokens = document.meta.get("tokens")
        # The tokens of a whole passage were counted by the ingest; no token reaches from one line into another.
        if "cut" in document.meta or not isinstance(tokens, int):
            tokens = self._counter.count(neutral_text(document.content or ""))
        return self._header(document) + tokens

    def _header(self, document: Document) -> int:
        # All get the same number, so that a header costs the same at any rank. One token more, for a tokenizer that
        # counts line breaks.
        return self._counter.count(render_block(source_block(numbered(document, _ANY_NUMBER), ""))) + 1

    def _cut(self, document: Document, budget: int) -> Document:
        text, room = document.content or "", max(1, budget - self._header(document))
        start, end = cut_span(text, matched_spans(document), room, self._counter.count)
        offset = document.meta["cut"][0] if "cut" in document.meta else 0
        meta = {**document.meta, "cut": [offset + start, offset + end]}
        return replace(document, content=text[start:end], meta=meta)


def _without_duplicates(documents: Sequence[Document]) -> list[Document]:
    """Rank passages, without near-duplicates of a better one."""
    kept: list[tuple[str, set[str]]] = []
    found = []
    for document in ranked(documents):
        text = document.content or ""
        words = set(passage_terms(text))
        # Each word that another passage lacks is in at least one shingle that it lacks: with more new words than this
        # the shingles cannot be similar enough, and need not be computed.
        most_new = 3 * (1 - _DUPLICATE) / _DUPLICATE * len(passage_terms(text))
        alike = (other for other, known in kept if len(words) - len(words & known) <= most_new)
        if all(similarity(shingles(text), shingles(other)) < _DUPLICATE for other in alike):
            kept.append((text, words))
            found.append(document)
    return found


def _as_shown(document: Document, shown: Mapping[str, Document]) -> Document:
    """Return a passage as the model has read it, which an earlier message may have cut differently."""
    earlier = shown.get(document.id)
    if earlier is None:
        return document
    meta = {name: value for name, value in document.meta.items() if name != "cut"}
    read = {"cut": earlier.meta["cut"]} if "cut" in earlier.meta else {}
    return replace(document, content=earlier.content, meta={**meta, **read})


def ranked(documents: Sequence[Document]) -> list[Document]:
    """Order passages best first, independently of the order in which they arrive."""
    readable = [document for document in documents if (document.content or "").strip()]
    if all(document.score is not None for document in readable):
        readable.sort(key=lambda document: (-(document.score or 0.0), document.id, str(matched_spans(document))))
    first: dict[str, Document] = {}
    for document in readable:
        first.setdefault(document.id, document)
    return list(first.values())


def matched_spans(document: Document) -> list[tuple[int, int]]:
    """Return the places of a parent that the retrieval matched."""
    return [
        (match["start"], match["end"])
        for match in document.meta.get("matches") or []
        if isinstance(match, dict) and {"start", "end"} <= match.keys()
    ]
