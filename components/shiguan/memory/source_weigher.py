"""Puts facts of the library and fragments of the conversation in one order, facts first among equals."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from haystack import Document, component

# Facts stand before memory: among equals the passage comes first.
_FACT_WEIGHT, _MEMORY_WEIGHT = 1.0, 0.6


@component
class SourceWeigher:
    """
    Orders what the library says and what was said, each scored among its own.

    Stands behind the ranker of the library's passages and behind `MemoryRetriever`; the two never share a pool. Within
    each list a score is replaced by its rank, 1 for the best down to 1/n, equal scores alike, and multiplied by the
    weight of its source. A fragment can so stand above a weak passage and never above one that is as good: at equal
    values the passage comes first. `meta.origin` says `fact` or `memory`, `meta.weighed` what the place is made of.

    Example:
    ```python
    passages = [Document(content="He was killed in 757.", score=9.0), Document(content="Luoyang", score=1.0)]
    SourceWeigher().run(documents=passages, memory=[Document(content="We spoke of 757.", score=0.4)])["documents"]
    # the first passage (1.0), the fragment (0.6), the second passage (0.5)
    ```
    """

    @component.output_types(
        documents=list[Document], facts=list[Document], memory=list[Document], recalled=list[Document], text=str
    )
    def run(
        self,
        documents: list[Document] | None = None,
        memory: list[Document] | None = None,
        source: str = "both",
        shown: int | None = None,
    ) -> dict[str, Any]:
        """
        Weigh both lists.

        :param documents: Passages of the library, best first; None where a loop finds them.
        :param memory: Fragments of the conversation, best first.
        :param source: The router's word. With `history` and something remembered no passage counts, and what is
            remembered is the answer.
        :param shown: From this turn on the prompt has the turns as messages; the text leaves them out.
        :returns: `documents`, both in one order; `facts` and `memory`, each alone in its own; `recalled`, the memory
            where it is the answer; `text`, the memory for a prompt, in the order in which it was said.
        """
        fragments = _weighed(memory or [], "memory", _MEMORY_WEIGHT)
        recalled = fragments if source == "history" else []
        facts = [] if recalled else _weighed(documents or [], "fact", _FACT_WEIGHT)
        both = sorted([*facts, *fragments], key=lambda document: -document.meta["weighed"]["value"])
        said = sorted(fragments, key=lambda fragment: fragment.meta.get("turns") or [])
        told = [one for one in said if shown is None or (one.meta.get("turns") or [0])[0] < shown]
        text = "\n".join(f"- {fragment.content}" for fragment in told)
        return {"documents": both, "facts": facts, "memory": fragments, "recalled": recalled, "text": text}


def _weighed(documents: Sequence[Document], origin: str, weight: float) -> list[Document]:
    """Copy the documents in their order, with their weighed ranks; equal scores have the same."""
    ranks: dict[float | None, float] = {}
    for place, document in enumerate(documents):
        ranks.setdefault(document.score, 1 - place / len(documents))
    return [
        replace(
            document,
            meta={
                **document.meta,
                "origin": origin,
                "weighed": {"rank": ranks[document.score], "weight": weight, "value": weight * ranks[document.score]},
            },
        )
        for document in documents
    ]
