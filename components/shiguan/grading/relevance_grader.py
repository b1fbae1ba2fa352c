"""Scores the passages that were found, and requests one more search where they lack the question's words."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from haystack import Document, component

from shiguan.grading.attempts import Attempt
from shiguan.reading.passage import Passage
from shiguan.reading.question import read_question
from shiguan.text.terms import covered, question_subject, terms

_WORD = re.compile(r"[^\W_]+")
# How many passages may be read in one round, and the overall score below which the question is searched for once more.
_MOST, _RELEVANT = 10, 4.0


@component
class RelevanceGrader:
    """
    Decides whether the passages are relevant enough before an answer is written from them; no model is asked.

    It comes after the ranker. Every passage gets a score from 0 to 10, and so do all together: from the question's
    words that they have, weighted by rarity. Below 4, and only once for a question, the output `retry` is sent instead
    of `documents`: the same attempt, with a search for the words of the question that no passage has. It goes to
    `AttemptLoop`. Where no passage has any of the words (they may be in another language) nothing can be judged, and
    the passages pass.

    In a later round of the loop new and earlier passages alternate, each once, those that supported something first:
    neither a bad search nor passages that did not help can fill all ten places. The scores of searches for different
    queries cannot be compared, so scores are set by the order.

    Example:
    ```python
    RelevanceGrader().run(documents=documents, query="When did An Lushan rise?")["relevance"]
    ```
    """

    @component.output_types(documents=list[Document], retry=Attempt, relevance=dict[str, Any])
    def run(self, documents: list[Document], query: str = "", *, attempt: Attempt | None = None) -> dict[str, Any]:
        """
        Grade passages.

        :param documents: The passages, best first.
        :param query: The user's question; that of the attempt if empty.
        :param attempt: The round of the loop; None outside a loop, where nothing is searched again.
        :returns: `documents`, with `meta.relevance`; or `retry`, the attempt with other queries and these passages.
            Besides these, `relevance` (`overall`, `passages` with `id` and `score`, `reformulated`).
        """
        query = query or (attempt.question if attempt else "")
        documents = _merged(documents, attempt.documents if attempt else ())
        weights = read_question(query).weights
        words = [Passage(document).words for document in documents]
        known = set[str]().union(*words)
        scores = [round(10 * covered(weights, own), 2) for own in words]
        overall = round(10 * covered(weights, known), 2)
        lacking = " ".join(word for word in _WORD.findall(question_subject(query)) if not known.issuperset(terms(word)))
        if attempt is None or attempt.searched_again or not (0 < overall < _RELEVANT and terms(lacking)):
            lacking = ""
        relevance = {
            "overall": overall,
            "passages": [{"id": found.id, "score": score} for found, score in zip(documents, scores, strict=True)],
            "reformulated": lacking,
        }
        if attempt is not None and lacking:
            queries = (*attempt.queries, lacking)
            retry = replace(attempt, queries=queries, documents=tuple(documents), searched_again=True)
            return {"retry": retry, "relevance": relevance}
        graded = [
            replace(document, meta={**document.meta, "relevance": score})
            for document, score in zip(documents, scores, strict=True)
        ]
        return {"documents": graded, "relevance": relevance}


def _merged(documents: Sequence[Document], earlier: Sequence[Document]) -> list[Document]:
    """Alternate new passages with those of earlier rounds, each once."""
    if not earlier:
        return list(documents)[:_MOST]
    ids = dict.fromkeys(found.id for pair in zip_longest(earlier, documents) for found in pair if found is not None)
    # The new copy of a passage is whole and has the matches of this search.
    by_id = {document.id: document for document in (*earlier, *documents)}
    merged = [by_id[name] for name in ids]
    return [replace(document, score=1.0 - place / len(merged)) for place, document in enumerate(merged[:_MOST])]
