"""The one list of what a `type:` in a pipeline file may be, inside of other components too."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from shiguan.checking.definition import Definition
from shiguan.checking.reading import Finding, shortened
from shiguan.resources import read_table

ALLOWED = read_table(Path(__file__).with_name("allowed.yaml"))
"""What a file may name; anything else is refused before it is imported."""

ALLOWED_TYPES = tuple(ALLOWED["allowed"])
REFUSED_TYPES: dict[str, str] = ALLOWED["refused"]

SETTING = "SHIGUAN_ALLOWED_TYPES"
"""The environment variable that extends the list: packages, modules or classes, separated by commas."""


def extensions(given: list[str] | None = None) -> tuple[str, ...]:
    """Gather what an operator allows beyond the list."""
    words = [*re.split(r"[,\s]+", os.environ.get(SETTING, "")), *(given or [])]
    return tuple(dict.fromkeys(word.rstrip(".") for word in words if word.strip(". ")))


def refusal(type_: str, allowed: tuple[str, ...] = ()) -> str | None:
    """Decide about one type."""
    if _below(type_, allowed):
        return None
    if "image" in re.split(r"[._]", type_.rpartition(".")[0]):
        return "it opens files that a document names"
    for refused, reason in REFUSED_TYPES.items():
        if _below(type_, (refused,)):
            return reason
    return None if _below(type_, ALLOWED_TYPES) else "it is not on the list of allowed types"


def _below(type_: str, prefixes: tuple[str, ...]) -> bool:
    return any(type_ == prefix or type_.startswith(f"{prefix}.") for prefix in prefixes)


def check_allowed_types(definition: Definition) -> Iterator[Finding]:
    """
    Find types that a file must not name.

    Haystack imports whatever stands as `type`, which runs the module's code, and has no list of its own.
    """
    for part in [part for component in definition.components.values() for part in (component, *component.inner)]:
        reason = refusal(part.type, definition.allowed_types)
        if reason is not None:
            yield Finding(
                (*part.place, "type"),
                f"The type `{shortened(part.type, 160)}` is not allowed: {reason}.",
                "Expected a class of Shiguan's stages, of Haystack's builders, classifiers, converters, embedders, "
                "generators, joiners, preprocessors, rankers, retrievers, routers or writers, or a store; "
                "docs/security.md has the list.",
                f"Use one of these. If you trust this one, allow it with `--allow-type` or ${SETTING}.",
            )
