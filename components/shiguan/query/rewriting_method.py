"""Chooses how a question is rewritten, from what it is like."""

from collections.abc import Mapping
from typing import Any

METHODS = ("none", "multi_query", "step_back", "decompose", "expand", "contextualize")


def choose_method(
    type_: str,
    complexity: int,
    *,
    task: str = "qa",
    imaginable: bool = True,
    direct_until: int = 3,
    decompose_from: int = 7,
) -> str:
    """
    Choose the method for a question that stands alone.

    :param type_: The question's type.
    :param complexity: 1 to 10.
    :param task: What is to be done.
    :param imaginable: False for the summary of a whole text and for code, which no other wording finds better.
    :param direct_until: Up to this complexity the question is searched as it is.
    :param decompose_from: From this complexity on it is taken apart.
    :returns: One of `METHODS`, never `contextualize`.
    """
    if complexity <= direct_until or task == "code" or (task == "summarize" and not imaginable):
        return "none"
    if type_ == "multi_hop" or complexity >= decompose_from:
        return "decompose"
    if type_ in ("comparison", "aggregation", "open_ended"):
        return "multi_query"
    return "step_back" if type_ == "complex_reasoning" else "expand"


def method_of(analysis: Mapping[str, Any] | None) -> str | None:
    """
    Read the method from an analysis that came over a wire.

    :param analysis: The `analysis` of `QueryAnalyzer`, or None.
    :returns: The method; None if there is none, or none that is known.
    """
    method = (analysis or {}).get("method")
    return method if method in METHODS else None
