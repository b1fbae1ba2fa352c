"""Merges the passages of a new search with those of earlier rounds."""

from dataclasses import replace
from typing import Any

from haystack import Document, component

# What `ContextBuilder` adds for one prompt: it numbers the merged passages anew.
_OF_ONE_PROMPT = ("number",)


@component
class PassageMerger:
    """
    Adds what a new search found to what the loop has read so far, each passage once, up to a limit.

    Stands in the self-correcting loop between the ranker and the context. New and earlier passages take turns, the
    earlier ones that supported something first (so `HallucinationGrader` orders them): neither a search that went
    astray nor passages that did not help can fill the limit alone. Haystack's `DocumentJoiner` merges by score, and
    the scores of two searches for different queries do not compare.

    Example:
    ```python
    PassageMerger(top_k=3).run(documents=[c, d], earlier=[a, b])["documents"]
    # [a, c, b]
    ```
    """

    def __init__(self, top_k: int = 10) -> None:
        """
        Set the limit.

        :param top_k: How many passages may be read in one round.
        :raises ValueError: If it is not positive.
        """
        if top_k < 1:
            raise ValueError(f"`top_k` must be positive, got {top_k}.")
        self.top_k = top_k

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
            return {"documents": list(documents)[: self.top_k]}
        turns: list[Document] = []
        for place in range(max(len(old), len(documents))):
            turns.extend(old[place : place + 1])
            turns.extend(documents[place : place + 1])
        # The new copy of a passage is whole and says where it matched this time.
        fresh = {document.id: document for document in documents}
        merged = [fresh.get(document.id, document) for document in {one.id: one for one in turns}.values()]
        # The context orders by score where every passage has one; scores of different searches must not decide.
        count = len(merged)
        return {
            "documents": [
                replace(
                    document,
                    score=1.0 - place / count,
                    meta={name: value for name, value in document.meta.items() if name not in _OF_ONE_PROMPT},
                )
                for place, document in enumerate(merged)
            ][: self.top_k]
        }
