"""Scores the passages that were found, and asks once for a better search where they lack the question's words."""

import re
from dataclasses import replace
from typing import Any, Literal, get_args

from haystack import Document, component

from shiguan.text.passages import passage_text
from shiguan.text.terms import covered, question_subject, question_weights, terms

Method = Literal["words", "scores"]
_WORD = re.compile(r"[^\W_]+")


@component
class RelevanceGrader:
    """
    Decides whether the passages are worth reading, before an answer is written from them; no model is asked.

    Stands behind the ranker. Every passage gets a score from 0 to 10, and all together one: from the question's words
    that they have, weighed by rarity (`words`), or from the scores of a cross-encoder, 0 to 1 (`scores`). Below the
    threshold, and only once for a question, the output `retry` fires instead of `documents`: the state of the same
    attempt, with a search for the words of the question that no passage has. It goes into the `BranchJoiner` at the
    head of the loop. Where no passage has any of the words (they may be in another language) there is nothing to go by,
    and the passages pass.

    Example:
    ```python
    RelevanceGrader().run(documents=documents, query="When did An Lushan rise?")["relevance"]
    # {"method": "words", "overall": 8.0, "passages": [{"id": "…", "score": 8.0}], "reformulated": ""}
    ```
    """

    tenant_role = "retries"

    def __init__(self, method: Method = "words", *, threshold: float = 4.0) -> None:
        """
        Set how to score and what is enough.

        :param method: `words` or `scores`.
        :param threshold: The overall score, 0 to 10, below which the question is searched for once more.
        :raises ValueError: If an argument is out of its range.
        """
        if method not in get_args(Method):
            raise ValueError(f"`method` must be one of {', '.join(get_args(Method))}, got `{method}`.")
        if not 0 <= threshold <= 10:
            raise ValueError(f"`threshold` must be 0 to 10, got {threshold}.")
        self.method = method
        self.threshold = threshold

    @component.output_types(documents=list[Document], retry=dict[str, Any], relevance=dict[str, Any])
    def run(self, documents: list[Document], query: str, *, state: dict[str, Any] | None = None) -> dict[str, Any]:
        """
        Grade passages.

        :param documents: The passages, best first.
        :param query: The person's question, not the query of the round.
        :param state: The state of the loop's round; None outside a loop, where nothing is ever asked again.
        :returns: `documents`, with `meta.relevance`; or `retry`, the state with another query and these passages.
            Beside them `relevance` (`method`, `overall`, `passages` with `id` and `score`, `reformulated`).
        """
        weights = question_weights(query)
        said = [set(terms(passage_text(document))) for document in documents]
        known = set[str]().union(*said)
        if self.method == "words":
            scores = [round(10 * covered(weights, words), 2) for words in said]
            overall = round(10 * covered(weights, known), 2)
        else:
            scores = [round(10 * min(max(document.score or 0.0, 0.0), 1.0), 2) for document in documents]
            overall = max(scores, default=0.0)
        lacking = " ".join(word for word in _WORD.findall(question_subject(query)) if not known.issuperset(terms(word)))
        again = state is not None and not state["reformulated"] and 0 < overall < self.threshold and terms(lacking)
        relevance = {
            "method": self.method,
            "overall": overall,
            "passages": [{"id": one.id, "score": score} for one, score in zip(documents, scores, strict=True)],
            "reformulated": lacking if again else "",
        }
        if state is not None and again:
            better = {"query": f"{query} {lacking}", "queries": [*state["queries"], lacking], "documents": documents}
            return {"retry": {**state, **better, "reformulated": True}, "relevance": relevance}
        graded = [
            replace(document, meta={**document.meta, "relevance": score})
            for document, score in zip(documents, scores, strict=True)
        ]
        return {"documents": graded, "relevance": relevance}
