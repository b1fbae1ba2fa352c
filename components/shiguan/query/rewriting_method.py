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
    """Choose the method for a question that stands alone."""
    if complexity <= direct_until or task == "code" or (task == "summarize" and not imaginable):
        return "none"
    if type_ == "multi_hop" or complexity >= decompose_from:
        return "decompose"
    if type_ in ("comparison", "aggregation", "open_ended"):
        return "multi_query"
    return "step_back" if type_ == "complex_reasoning" else "expand"


def method_of(analysis: Mapping[str, Any] | None) -> str | None:
    """Read the method from an analysis that came over a wire."""
    method = (analysis or {}).get("method")
    return method if method in METHODS else None
