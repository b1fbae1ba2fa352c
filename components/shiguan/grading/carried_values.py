"""The types of the values that a loop may carry, by the names that stand in YAML."""

from typing import Any, Final

from haystack import Document
from haystack.dataclasses import ChatMessage

_TYPES: Final[dict[str, Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "dict": dict[str, Any],
    "list[str]": list[str],
    "list[float]": list[float],
    "list[Document]": list[Document],
    "list[ChatMessage]": list[ChatMessage],
}
# What the state of the loop has under its own names.
_TAKEN = frozenset({"query", "queries", "question", "attempt", "documents", "feedback", "messages", "read", "state",
    "history", "best",
})  # fmt: skip


def check_carried(carry: dict[str, str] | None) -> None:
    """Check the names and types of carried values."""
    for name, type_ in (carry or {}).items():
        if name in _TAKEN or not name.isidentifier():
            raise ValueError(
                f"`carry` cannot hold `{name}`: the loop has that name itself, or it is no identifier. "
                f"Taken are {', '.join(sorted(_TAKEN))}; choose another name."
            )
        if type_ not in _TYPES:
            raise ValueError(f"`carry` gives `{name}` the type `{type_}`; it must be one of {', '.join(_TYPES)}.")


def socket_types(carry: dict[str, str] | None) -> dict[str, Any]:
    """Give the types of carried values."""
    return {name: _TYPES[type_] for name, type_ in (carry or {}).items()}
