"""Hands a grader's verdicts on to whoever shows them, by the sentences that they are about."""

from collections.abc import Mapping
from typing import Any

from shiguan.text.terms import terms

_NEEDED = frozenset({"text", "verdict", "score", "reason", "number"})


def graded_claims(meta: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Read the verdicts that `HallucinationGrader` left in a reply."""
    grounding = meta.get("grounding")
    claims = grounding.get("claims") if isinstance(grounding, Mapping) else None
    return {
        plain_sentence(str(claim["text"])): claim
        for claim in (claims if isinstance(claims, list) else [])
        if isinstance(claim, Mapping) and claim.keys() >= _NEEDED
    }


def plain_sentence(sentence: str) -> str:
    """Reduce a sentence to what stays the same when marks are added or taken away."""
    return " ".join(terms(sentence))
