"""Merges the passages of a new search with those of earlier rounds."""

from dataclasses import replace
from itertools import zip_longest
from typing import Any

from haystack import Document, component

# How many passages may be read in one round.
_MOST = 10


@component
class PassageMerger:
    """
    Adds what a new search found to what the loop has read so far, each passage once, up to ten.

    Stands in the self-correcting loop between the ranker and the context. New and earlier passages take turns, the
    earlier ones that supported something first (so `HallucinationGrader` orders them): neither a search that went
    astray nor passages that did not help can fill the limit alone. Haystack's `DocumentJoiner` merges by score, and
    the scores of two searches for different queries do not compare.

    Example:
    ```python
    PassageMerger().run(documents=[c, d], earlier=[a, b])["documents"]
    # [a, c, b, d]
    ```
    """

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document], earlier: list[Document] | None = None) -> dict[str, Any]:
        """
        Merge.

        :param documents: What was found in this round, best first.
        :param earlier: What earlier rounds read, best first; None or empty in the first round.
        :returns: `documents`, each id once, best first. In the first round they are the given ones, cut to the limit.
        """
        old = list(earlier or [])
        if not old:
            return {"documents": list(documents)[:_MOST]}
        turns = [one for pair in zip_longest(old, documents) for one in pair if one is not None]
        # The new copy of a passage is whole and says where it matched this time.
        fresh = {document.id: document for document in documents}
        merged = [fresh.get(document.id, document) for document in {one.id: one for one in turns}.values()]
        # The context orders by score where every passage has one; scores of different searches must not decide. It
        # numbers the passages anew.
        count = len(merged)
        return {
            "documents": [
                replace(
                    document,
                    score=1.0 - place / count,
                    meta={name: value for name, value in document.meta.items() if name != "number"},
                )
                for place, document in enumerate(merged[:_MOST])
            ]
        }
