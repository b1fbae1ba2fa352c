"""Fetches the passages of the sentences that matched."""

from collections.abc import Mapping, Sequence
from typing import Any

from haystack import Document, component, logging
from haystack.document_stores.types import DocumentStore

from shiguan.tenants import TenantGuarded, all_of, require_filters, where
from shiguan.text.passages import SharedDocument

logger = logging.getLogger(__name__)

# The meta fields for a child's parent that splitters write: ours, and Haystack's `HierarchicalDocumentSplitter`.
_PARENT_ID_FIELDS = ("parent_id", "__parent_id")
# An index or a table of figures has the words of many questions and the answer of none. A share suits every scale of
# scores, ranks too.
_WEIGHTS = {"list": 0.5}


@component
class ParentDocumentFetcher:
    """
    Gives the answer whole passages where retrieval matched single sentences.

    It comes after the fusion. Children are small so that they match precisely; the LLM reads their parents, each of
    which holds a complete thought. A parent has the score of its best child and the spans that matched, so that later
    stages know which sentences matched. It is fetched under the caller's filters and must belong to the tenant of its
    children: an id of another tenant's library finds nothing. Lists of places in a book (`meta.kind` is `list`, see
    docs/books.md) count half, and `kind_weights` sets the share of other kinds, such as `quote`.

    Works with the children of `ParentChildSplitter`, of Haystack's `HierarchicalDocumentSplitter`, or any documents
    that name their parent in their meta. Documents without a parent are returned themselves.

    Example:
    ```python
    parents = InMemoryDocumentStore()
    parents.write_documents([Document(id="p", content="An Lushan rose in Fanyang. The court fled.")])
    child = Document(content="The court fled.", score=0.9, meta={"parent_id": "p"})
    ParentDocumentFetcher(parents).run(documents=[child])["documents"][0].content
    # "An Lushan rose in Fanyang. The court fled."
    ```
    """

    def __init__(
        self,
        document_store: DocumentStore,
        *,
        top_k: int | None = None,
        kind_weights: dict[str, float] | None = None,
    ) -> None:
        """
        Set the store of the parents.

        :param document_store: Where the parents are; any Haystack document store that filters by `id`.
        :param top_k: How many parents to return at most, counted as they are found; None for all.
        :param kind_weights: What share of its score a passage of a kind keeps, 1 where it is not named, more to prefer
            it: `{"list": 0.5, "quote": 1.2}`; None for half of lists.
        :raises ValueError: If `top_k` is not positive, or a weight negative.
        """
        if any(weight < 0 for weight in (kind_weights or {}).values()):
            raise ValueError(f"`kind_weights` must not be negative, got {kind_weights}.")
        if top_k is not None and top_k < 1:
            raise ValueError(f"`top_k` must be positive, got {top_k}.")
        self.document_store = document_store
        self.top_k = top_k
        self.kind_weights = kind_weights

    @component.output_types(documents=list[Document], warnings=list[str])
    def run(
        self, documents: list[Document], filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, Any]:
        """
        Fetch the parents of the children that were found.

        :param documents: Children, best first; their place in the parent as `meta.start` and `meta.end`, in code
            points, if that is known.
        :param filters: The filters under which the children were found. Shiguan's own stores refuse to be read without
            those of a `TenantFilter`.
        :param top_k: How many parents to return at most, for this call.
        :returns: `documents`: parents, best first, each with its score and `meta.matches`, a list of
            `{"child_id", "start", "end", "score"}` in code points of the parent's content, best first; `warnings`.
        :raises RefusedError: If the store keeps tenants apart and `filters` name none.
        """
        limit = self.top_k if top_k is None else top_k
        families, alone = _families(documents)
        waiting = list(families)
        found: list[Document] = []
        asked = lost = foreign = 0
        while waiting and (limit is None or len(found) < limit):
            # The next ones replace those that are missing; usually none are, and this is a single request.
            batch = waiting if limit is None else waiting[: limit - len(found)]
            waiting = waiting[len(batch) :]
            wanted = [key for key in batch if key not in alone]
            asked += len(wanted)
            parents = {parent.id: parent for parent in self._fetch(wanted, filters)} if wanted else {}
            for key in batch:
                children = families[key]
                parent = parents.get(key)
                if key in alone:
                    found.append(children[0])
                elif parent is None:
                    lost += 1
                elif parent.meta.get("tenant_id") != children[0].meta.get("tenant_id"):
                    foreign += 1
                else:
                    found.append(_with_matches(parent, children, self.kind_weights or _WEIGHTS))
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
        return {"documents": sorted(found, key=lambda parent: -(parent.score or 0.0)), "warnings": warnings}

    def _fetch(self, ids: list[str], filters: dict[str, Any] | None) -> list[Document]:
        if isinstance(self.document_store, TenantGuarded):
            filters = require_filters(filters, type(self).__name__)
        return self.document_store.filter_documents(all_of(where("id", "in", ids), filters))


def _families(children: Sequence[Document]) -> tuple[dict[str, list[Document]], set[str]]:
    """Group children by their parent, both in the order of their scores; also return the ids of those without one."""
    families: dict[str, list[Document]] = {}
    alone: set[str] = set()
    # The sort is stable: children without a score, or with the same one, keep their order.
    for child in sorted(children, key=lambda child: -(child.score or 0.0)):
        parent = next((child.meta[field] for field in _PARENT_ID_FIELDS if child.meta.get(field)), None)
        if parent is None and child.id not in families:
            alone.add(child.id)
        families.setdefault(parent or child.id, []).append(child)
    return families, alone


def _with_matches(parent: Document, children: Sequence[Document], weights: Mapping[str, float]) -> Document:
    matches = [
        {"child_id": child.id, "start": child.meta["start"], "end": child.meta["end"], "score": child.score}
        for child in children
        if {"start", "end"} <= child.meta.keys()
    ]
    score = children[0].score
    if score is not None:
        # Scores may be below 0.
        score -= abs(score) * (1 - weights.get(str(parent.meta.get("kind")), 1.0))
    # Whole passages go through several components; sharing their text avoids a copy at each.
    return SharedDocument(id=parent.id, content=parent.content, score=score, meta={**parent.meta, "matches": matches})
