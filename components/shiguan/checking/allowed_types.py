"""The one list of what a `type:` in a pipeline file may be, inside of other components too."""

import os
import re
from collections.abc import Iterator

from shiguan.checking.definition import Definition
from shiguan.checking.reading import Finding, shortened

ALLOWED_TYPES = (
    # The stages, and nothing else of the package.
    "shiguan.ingest",
    "shiguan.query",
    "shiguan.retrieval",
    "shiguan.context",
    "shiguan.answer",
    "shiguan.llm.configured_chat_generator.ConfiguredChatGenerator",
    "shiguan.grading",
    "shiguan.memory",
    "shiguan.agent",
    "shiguan.stores",
    # What turns text into other text, vectors and order, without tools, agents and the web.
    "haystack.components.builders",
    "haystack.components.classifiers",
    "haystack.components.converters",
    "haystack.components.embedders",
    "haystack.components.generators",
    "haystack.components.joiners",
    "haystack.components.preprocessors",
    "haystack.components.query",
    "haystack.components.rankers",
    "haystack.components.retrievers",
    "haystack.components.routers",
    "haystack.components.samplers",
    "haystack.components.writers",
    "haystack.document_stores.in_memory",
    # The same kinds from integrations.
    "haystack_integrations.components.converters",
    "haystack_integrations.components.embedders",
    "haystack_integrations.components.generators",
    "haystack_integrations.components.rankers",
    "haystack_integrations.components.retrievers",
    "haystack_integrations.document_stores",
)
"""Packages and modules whose classes a file may name. Anything else is refused before it is imported."""

REFUSED_TYPES = {
    "haystack.components.converters.json": "a jq program reads the environment of the server",
    "haystack.components.converters.image": "it opens files that a document names",
    "haystack.components.embedders.image": "it opens files that a document names",
    "haystack.components.converters.openapi_functions": "it makes calls out of a document",
    "haystack.components.generators.chat.llm": "it is an agent",
    "haystack_integrations.components.generators.mcp": "it calls tools",
}
"""Exceptions from the list, and why."""

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
