"""From the sentences that matched to the passages worth reading."""

from collections.abc import Sequence
from typing import Any

from haystack import Document, component, logging
from haystack.document_stores.types import DocumentStore

from shiguan.tenants import all_of, require_filters
from shiguan.text.passages import SharedDocument

logger = logging.getLogger(__name__)

_SECOND = 0.3
"""What a parent's second match is worth to it, as a share of what it has above the lowest score of the list."""


@component
class ParentDocumentFetcher:
    """
    Gives the answer whole passages where retrieval matched single sentences.

    Stands after the fusion. Children are small so that they match precisely; the LLM reads their parents, which hold
    one complete thought each. A parent's score is its best child's and .3 of what its second has above the lowest score
    of the list: where two of its places match, one of them is less likely to have matched by accident. It carries the
    spans that matched, so that later stages know which sentences brought it here. A parent is fetched under the
    caller's filters and checked against its children's tenant once more: an id that leads into another tenant's library
    finds nothing.

    Documents without a `parent_id` (a flat library, written without `ParentChildSplitter`) stand for themselves.
    """

    def __init__(self, document_store: DocumentStore, *, top_k: int | None = None) -> None:
        """
        Name the store of the parents.

        :param document_store: Where the parents are; any Haystack document store that filters by `id`.
        :param top_k: How many parents to return at most, counted as they are found; None for all.
        :raises ValueError: If `top_k` is not positive.
        """
        if top_k is not None and top_k < 1:
            raise ValueError(f"`top_k` must be positive, got {top_k}.")
        self.document_store = document_store
        self.top_k = top_k

    @component.output_types(documents=list[Document], warnings=list[str])
    def run(
        self, documents: list[Document], filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, Any]:
        """
        Fetch the parents of the children that were found.

        :param documents: Children, best first, with `meta.parent_id`, `meta.start` and `meta.end`.
        :param filters: The filters that the children were found under, from `TenantFilter`.
        :param top_k: How many parents to return at most, for this call.
        :returns: `documents`: parents, best first, each with its score and `meta.matches`, a list of
            `{"child_id", "start", "end", "score"}` in code points of the parent's content, best first; `warnings`.
        """
        limit = self.top_k if top_k is None else top_k
        families = families_of(documents)
        lowest = _lowest(documents)
        waiting = list(families)
        found: list[Document] = []
        asked = lost = foreign = 0
        while waiting and (limit is None or len(found) < limit):
            # Those that are missing are made up for by the next ones; mostly there are none, and this is one request.
            batch = waiting if limit is None else waiting[: limit - len(found)]
            waiting = waiting[len(batch) :]
            wanted = [key for key in batch if families[key][0].meta.get("parent_id")]
            asked += len(wanted)
            parents = {parent.id: parent for parent in self._fetch(wanted, filters)} if wanted else {}
            for key in batch:
                children = families[key]
                parent = parents.get(key)
                if not children[0].meta.get("parent_id"):
                    found.append(children[0])
                elif parent is None:
                    lost += 1
                elif parent.meta.get("tenant_id") != children[0].meta.get("tenant_id"):
                    foreign += 1
                else:
                    found.append(_with_matches(parent, children, lowest))
        warnings = []
        if lost:
            warnings.append(
                f"{lost} of {asked} passages that matched could not be read from the library; it may be changing "
                "right now. Ask again, and ingest the source again if this stays."
            )
        if foreign:
            warnings.append(
                f"{foreign} of {asked} passages that matched belong to another tenant than what matched in them, and "
                "were left out. The library was written by something else than `shiguan ingest`, or tampered with: "
                "ingest their sources again."
            )
        for warning in warnings:
            logger.warning("{warning}", warning=warning)
        return {"documents": found, "warnings": warnings}

    def _fetch(self, ids: list[str], filters: dict[str, Any] | None) -> list[Document]:
        by_id: dict[str, Any] = {"field": "id", "operator": "in", "value": ids}
        allowed = require_filters(filters, type(self).__name__)
        return self.document_store.filter_documents(all_of(by_id, allowed))


def families_of(children: Sequence[Document]) -> dict[str, list[Document]]:
    """Group children by their parent, or by themselves where they have none; both in the order of their scores."""
    families: dict[str, list[Document]] = {}
    # The sort is stable: children without a score, or with the same one, keep the order they came in.
    for child in sorted(children, key=lambda child: -(child.score or 0.0)):
        families.setdefault(child.meta.get("parent_id") or child.id, []).append(child)
    lowest = _lowest(children)
    return dict(sorted(families.items(), key=lambda family: -(_score(family[1], lowest) or 0.0)))


def _lowest(children: Sequence[Document]) -> float:
    """Give what a hit has for being in the list at all: cosines and ranks do not begin at 0."""
    return min((child.score or 0.0 for child in children), default=0.0)


def _score(children: list[Document], lowest: float) -> float | None:
    second = children[1].score if len(children) > 1 else None
    return children[0].score if second is None else (children[0].score or 0.0) + _SECOND * (second - lowest)


def _with_matches(parent: Document, children: list[Document], lowest: float) -> Document:
    matches = [
        {"child_id": child.id, "start": child.meta["start"], "end": child.meta["end"], "score": child.score}
        for child in children
    ]
    # Whole passages go through several components; sharing their text spares a copy of it at each.
    return SharedDocument(
        id=parent.id, content=parent.content, score=_score(children, lowest), meta={**parent.meta, "matches": matches}
    )
