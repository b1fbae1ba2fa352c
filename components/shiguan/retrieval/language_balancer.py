"""Weighs the passages of a library's languages against each other."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from haystack import Document, component

# How steeply a language counts less whose nearest passage is farther from the question.
_FALL = 4
# How much less of a question's words makes it so much (e times) less likely that it is about books in this language.
_STEP = 0.3


@component
class LanguageBalancer:
    """
    Lets a language count less in which a library hardly has what a question asks for.

    Stands behind the joiner, whose scores are deviations within each language and know nothing of the others. A
    language counts less, by the fourth power, the farther its nearest passage is; and the question's own language
    counts less the more of the question's words are known in another one alone. Without that the best of every language
    would stand side by side, and a question on a book in another language would be answered from the wrong books.
    The numbers are in docs/decisions/0012.

    Example:
    ```python
    balancer.run(documents=joined, nearest=by_vectors, lacking={"en": 0.4})["documents"]
    ```
    """

    @component.output_types(documents=list[Document])
    def run(
        self, documents: list[Document], nearest: list[Document] | None = None, lacking: dict[str, float] | None = None
    ) -> dict[str, list[Document]]:
        """
        Weigh the languages.

        :param documents: Passages with scores from 0, of each language from its own lowest.
        :param nearest: What was found by vectors, with cosines; without it no language is nearer than another.
        :param lacking: A language, and how much more of the question's words another one knows, from 0 to 1.
        :returns: `documents`, copies with their new scores, the best first, equal scores by id.
        """
        return {"documents": balanced(documents, nearest or [], lacking or {})}


def balanced(
    documents: Sequence[Document], nearest: Sequence[Document], lacking: Mapping[str, float]
) -> list[Document]:
    """Copy passages with the scores that their languages leave them, the best first."""
    best: dict[str, float] = {}
    for document in nearest:
        language = _language(document)
        best[language] = max(best.get(language, 0.0), document.score or 0.0)
    most = max(best.values(), default=0.0)
    weights = {_language(document): 1.0 for document in documents}
    for language in weights:
        near = (best.get(language, most) / most) ** _FALL if most > 0 else 1.0
        weights[language] = near * math.exp(-lacking.get(language, 0.0) / _STEP)
    weighed = [
        replace(document, score=(document.score or 0.0) * weights[_language(document)]) for document in documents
    ]
    return sorted(weighed, key=lambda document: (-(document.score or 0.0), document.id))


def _language(document: Document) -> str:
    return str(document.meta.get("language"))
