"""Finds the place in the book where a citation starts."""

from typing import Any


def anchor_at(meta: dict[str, Any], start: int) -> dict[str, Any] | None:
    """Give the anchor of the place at which a citation starts."""
    for block in meta.get("blocks") or []:
        if isinstance(block, dict) and block.get("start", 0) <= start < block.get("end", 0):
            return _moved(block.get("anchor") or meta.get("anchor"), start - block["start"])
    return _moved(meta.get("anchor"), 0)


def _moved(anchor: Any, by: int) -> dict[str, Any] | None:
    if not isinstance(anchor, dict):
        return None
    if isinstance(anchor.get("offset"), int):
        return {**anchor, "offset": anchor["offset"] + by}
    return dict(anchor)
