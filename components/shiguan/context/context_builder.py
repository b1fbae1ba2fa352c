"""Turns ranked parents into one bounded, numbered context that is the same text every time."""

from dataclasses import replace
from typing import Any

from haystack import Document, component, logging

from shiguan.support.near_duplicates import shingles, similarity
from shiguan.support.passage_cut import cut_span
from shiguan.support.source_blocks import SourceBlock, render_block, render_sources
from shiguan.support.token_counter import TokenCounter

logger = logging.getLogger(__name__)


@component
class ContextBuilder:
    """
    Chooses the passages that the generator reads, numbers them, and writes them between delimiters.

    Stands between the passages' last ranking and the prompt. The best passages come first, by score and then by id,
    so the same passages give byte-identical text in whatever order they arrive; passages without a score keep the
    order in which they came. Near-duplicates of a better passage are left out. Passages are added while they fit the
    budget; the best one is cut around its matched children, at the edges of sentences, rather than left out.

    What the passages say is data: in the rendered context everything in them that looks like a delimiter, a citation
    mark or a role is made harmless. The documents that are returned keep the original text.

    Example:
    ```python
    builder = ContextBuilder(token_budget=3000)
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
        token_budget: int = 3000,
        *,
        duplicate_threshold: float = 0.9,
        max_passages: int | None = None,
        tokenizer: str = "sentence-transformers/all-MiniLM-L6-v2",
    ) -> None:
        """
        Set the limits.

        :param token_budget: Most tokens that the context may have, headers included.
        :param duplicate_threshold: From this similarity of term shingles on (0 to 1), the lower-ranked passage is
            left out.
        :param max_passages: Most passages in the context; None for as many as fit.
        :param tokenizer: The model whose tokenizer counts.
        :raises ValueError: If a limit is out of its range.
        """
        if token_budget < 1:
            raise ValueError(f"`token_budget` must be positive, got {token_budget}.")
        if not 0 < duplicate_threshold <= 1:
            raise ValueError(f"`duplicate_threshold` must be above 0 and at most 1, got {duplicate_threshold}.")
        if max_passages is not None and max_passages < 1:
            raise ValueError(f"`max_passages` must be positive or None, got {max_passages}.")
        self.token_budget = token_budget
        self.duplicate_threshold = duplicate_threshold
        self.max_passages = max_passages
        self.tokenizer = tokenizer
        self._counter = TokenCounter(tokenizer)

    @component.output_types(documents=list[Document], context=str, warnings=list[str])
    def run(self, documents: list[Document], query: str = "") -> dict[str, Any]:  # noqa: ARG002
        """
        Build the context.

        :param documents: Parents, best first or with scores; those without text are left out.
        :param query: The question. Part of the contract; the strategy in use does not read it.
        :returns: `documents`, those in the context, in its order, with `meta.number` from 1 and, if cut, the kept
            text as content and `meta.cut`, its [start, end] in the stored parent; `context`, the rendered text; and
            `warnings` about what was cut or did not fit.
        """
        kept = self._without_duplicates(_ranked(documents))
        if self.max_passages is not None:
            kept = kept[: self.max_passages]
        chosen: list[Document] = []
        warnings: list[str] = []
        left = self.token_budget - self._counter.count(render_sources([]))
        for document in kept:
            numbered = _numbered(document, len(chosen) + 1)
            cost = self._cost(numbered)
            if cost > left and not chosen:
                numbered = self._cut(numbered, left)
                cost = self._cost(numbered)
                warnings.append(
                    f"The best passage was cut to fit the context of {self.token_budget} tokens. "
                    "Raise `token_budget` to read it whole."
                )
            if cost <= left or not chosen:
                chosen.append(numbered)
                left -= cost
        if len(chosen) < len(kept) / 2:
            # That the last of many passages do not fit is the budget's purpose; that most do not is worth saying.
            warnings.append(
                f"{len(kept) - len(chosen)} of {len(kept)} passages did not fit the context of "
                f"{self.token_budget} tokens and were left out. Raise `token_budget` to read more."
            )
        logger.debug("Context of {count} passages out of {given}", count=len(chosen), given=len(documents))
        context = render_sources(_block(document) for document in chosen)
        return {"documents": chosen, "context": context, "warnings": [*self._counter.warnings, *warnings]}

    def _without_duplicates(self, documents: list[Document]) -> list[Document]:
        kept: list[Document] = []
        seen: list[frozenset[tuple[str, ...]]] = []
        for document in documents:
            runs = shingles(document.content or "")
            if all(similarity(runs, other) < self.duplicate_threshold for other in seen):
                kept.append(document)
                seen.append(runs)
        return kept

    def _cost(self, document: Document) -> int:
        # One more than the block, for a tokenizer that counts line breaks.
        return self._counter.count(render_block(_block(document))) + 1

    def _cut(self, document: Document, budget: int) -> Document:
        text = document.content or ""
        header = self._cost(replace(document, content=""))
        matches = [
            (match["start"], match["end"])
            for match in document.meta.get("matches") or []
            if isinstance(match, dict) and {"start", "end"} <= match.keys()
        ]
        start, end = cut_span(text, matches, max(1, budget - header), self._counter.count)
        offset = document.meta["cut"][0] if "cut" in document.meta else 0
        meta = {**document.meta, "cut": [offset + start, offset + end]}
        return replace(document, content=text[start:end], meta=meta)


def _ranked(documents: list[Document]) -> list[Document]:
    unique = {document.id: document for document in reversed(documents) if (document.content or "").strip()}
    readable = [document for document in documents if unique.get(document.id) is document]
    if any(document.score is None for document in readable):
        return readable
    return sorted(readable, key=lambda document: (-(document.score or 0.0), document.id))


def _numbered(document: Document, number: int) -> Document:
    # Every component's inputs are copied by the pipeline: what no later stage reads is not sent on.
    return replace(document, meta={**document.meta, "number": number}, embedding=None, sparse_embedding=None)


def _block(document: Document) -> SourceBlock:
    meta = document.meta
    section = meta.get("section") or []
    headings = [section] if isinstance(section, str) else [str(heading) for heading in section]
    file, title = str(meta.get("source") or ""), str(meta.get("title") or "")
    return SourceBlock(
        number=meta["number"],
        text=document.content or "",
        file=file,
        title="" if title == file else title,
        section=" › ".join(headings),
        place=_place(meta),
    )


def _place(meta: dict[str, Any]) -> str:
    anchor = meta.get("anchor")
    if not isinstance(anchor, dict):
        anchor = {}
    page = anchor.get("page", meta.get("page_number"))
    if page is not None:
        return f"page {page}"
    return str(anchor.get("href") or "")
