"""Only classes from the list may be built, inside of others too."""

from collections.abc import Iterator

from shiguan.checking.allowlist import SETTING, refusal
from shiguan.checking.definition import Component, Definition, inner_components
from shiguan.checking.finding import Finding, shortened


def check_allowed_types(definition: Definition) -> Iterator[Finding]:
    """
    Find types that a file must not name.

    Haystack imports whatever stands as `type`, which runs the module's code, and has no list of its own.
    """
    for component in definition.components.values():
        yield from _check(component, definition.allowed_types)
        for inner in inner_components(component):
            yield from _check(inner, definition.allowed_types)


def _check(component: Component, allowed: tuple[str, ...]) -> Iterator[Finding]:
    place, type_ = (*component.place, "type"), shortened(component.type, 160)
    reason = refusal(component.type, allowed)
    if reason is not None:
        yield Finding(
            place,
            f"The type `{type_}` is not allowed: {reason}.",
            "Expected a class of Shiguan's stages, of Haystack's builders, classifiers, converters, embedders, "
            "generators, joiners, preprocessors, rankers, retrievers, routers or writers, or a store; docs/security.md "
            "has the list.",
            f"Use one of these. If you trust this one, allow it with `--allow-type` or ${SETTING}.",
        )
    elif component.signature.state == "unknown":
        yield Finding(
            place,
            f"There is no class `{type_}`.",
            "Expected the module in which the class is written, and its name.",
            "Correct the path.",
        )
