"""Puts into words what an attempt lacked: for the search, and for the next prompt."""

from collections.abc import Sequence

from shiguan.claims.checker import CheckedClaim
from shiguan.llm.source_blocks import neutral_text
from shiguan.text.terms import terms

_MOST_CLAIMS = 3
_LONGEST_CLAIM, _LONGEST_QUERY = 300, 600
_WORDS = {
    "en": ("The sources do not support these sentences of it:", "What it lacked: ", "“{claim}” ({reason})"),
    "zh": ("下列句子没有资料支持：", "所缺：", "“{claim}”（{reason}）"),
}


def retry_queries(question: str, claims: Sequence[CheckedClaim], missing: str = "") -> tuple[str, list[str]]:
    """Make the search for the next attempt from the question, the claims without support and what is missing."""
    weakest = sorted(claims, key=lambda one: one.support.score)[:_MOST_CLAIMS]
    queries = [question, *(one.stated[:_LONGEST_CLAIM] for one in weakest), missing[:_LONGEST_CLAIM]]
    queries = list(dict.fromkeys(query.strip() for query in queries if terms(query)))
    joined = question
    said = set(terms(question))
    for query in queries[1:]:
        new = [word for word in dict.fromkeys(terms(query)) if word not in said]
        if new and len(joined) + len(query) < _LONGEST_QUERY:
            joined = f"{joined} {query}"
            said.update(new)
    return joined, queries or [question]


def feedback_text(claims: Sequence[CheckedClaim], language: str, grade_feedback: str = "") -> str:
    """
    Tell the generator what was wrong with its answer.

    What the answer said is quoted as data: it may repeat what a passage wanted the model to say.
    """
    intro, lacked, item = _WORDS["zh" if language == "zh" else "en"]
    lines = []
    if claims:
        lines.append(intro)
        for one in claims[: 2 * _MOST_CLAIMS]:
            text = neutral_text(" ".join(one.claim.text.split()))[:_LONGEST_CLAIM]
            lines.append("- " + item.format(claim=text, reason=neutral_text(one.support.reason)))
    if grade_feedback.strip():
        lines.append(lacked + neutral_text(" ".join(grade_feedback.split()))[:_LONGEST_QUERY])
    return "\n".join(lines)
