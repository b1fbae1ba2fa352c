"""The sections of a file, their names and shapes; and connections, which join sockets that exist and can fit."""

import re
from collections.abc import Iterator
from typing import Any

from shiguan.checking.reading import Finding, Place, flaw, shortened

_SECTIONS = (
    "metadata max_runs_per_component connection_type_validation components connections inputs outputs explain".split()
)
_MAX_COMPONENTS, _MAX_CONNECTIONS = 200, 1_000
_COMPONENT_KEYS = {"type", "init_parameters"}
_NAME = re.compile(r"[A-Za-z_][\w-]{0,79}")
_SOCKET = re.compile(r"[A-Za-z_][\w-]{0,79}\.\S(.{0,198}\S)?")
_SOCKET_RULE = "Expected `component.socket`, such as `retriever.documents`."


def check_structure(content: dict[str, Any]) -> Iterator[Finding]:
    """Find what keeps a file from being understood as a pipeline at all."""
    for key in content:
        if key not in _SECTIONS and not key.startswith("x-"):
            yield Finding(
                (key,),
                f"There is no section `{shortened(key)}`.",
                f"Expected {', '.join(_SECTIONS)}, or a name that begins with `x-`.",
                "Correct the name: what stands below it would be ignored.",
            )
    yield from _components(content.get("components"))
    yield from _connections(content.get("connections"))
    yield from _declared(content)
    if not isinstance(content.get("metadata", {}), dict):
        yield _shape(("metadata",), content["metadata"], "a mapping")
    if content.get("connection_type_validation", True) is not True:
        yield _shape(("connection_type_validation",), content["connection_type_validation"], "true, or leave it out")
    runs = content.get("max_runs_per_component", 1)
    if not isinstance(runs, int) or isinstance(runs, bool) or not 1 <= runs <= 1000:
        yield _shape(("max_runs_per_component",), runs, "a whole number from 1 to 1000")


def _components(components: Any) -> Iterator[Finding]:
    if not isinstance(components, dict) or not components:
        yield flaw(
            ("components",),
            f"The file is no pipeline: its `components` are {_shown(components)}.",
            "Expected at least one component with a name and a `type`.",
            "Start from a file of pipelines/.",
        )
        return
    if len(components) > _MAX_COMPONENTS:
        yield _shape(("components",), len(components), f"at most {_MAX_COMPONENTS} of them")
        return
    for name, spec in components.items():
        place = ("components", name)
        if not _NAME.fullmatch(name):
            yield Finding(
                place,
                f"`{shortened(name)}` is no name for a component.",
                "Expected letters, digits, `_` and `-`, 80 at most, a letter first.",
                "Rename it, here and in the connections.",
            )
        if not isinstance(spec, dict) or not isinstance(spec.get("type"), str):
            yield flaw(
                place,
                f"The component `{shortened(name)}` has no `type`.",
                "Expected the full module path of its class.",
                "Give it one, or remove the component.",
            )
            continue
        for key in spec:
            if key not in _COMPONENT_KEYS:
                yield Finding(
                    (*place, key),
                    f"A component has no `{shortened(key)}`.",
                    "Expected `type` and `init_parameters`.",
                    "Correct the name: what stands below it would be ignored.",
                )
        if not isinstance(spec.get("init_parameters") or {}, dict):
            yield _shape((*place, "init_parameters"), spec["init_parameters"], "a mapping of names to values")


def _connections(connections: Any) -> Iterator[Finding]:
    if connections is None:
        return
    if not isinstance(connections, list):
        yield _shape(("connections",), connections, "a list of `sender` and `receiver`")
        return
    if len(connections) > _MAX_CONNECTIONS:
        yield _shape(("connections",), len(connections), f"at most {_MAX_CONNECTIONS:,} of them")
        return
    for position, edge in enumerate(connections):
        place: Place = ("connections", position)
        if not isinstance(edge, dict) or set(edge) != {"sender", "receiver"}:
            yield _shape(place, edge, "exactly `sender` and `receiver`")
            continue
        for end in ("sender", "receiver"):
            if not isinstance(edge[end], str) or not _SOCKET.fullmatch(edge[end]):
                yield Finding(
                    (*place, end),
                    f"`{shortened(edge[end])}` names no socket.",
                    _SOCKET_RULE,
                    "Write both names: a socket that is guessed may be another one tomorrow.",
                )


def _declared(content: dict[str, Any]) -> Iterator[Finding]:
    for section in ("inputs", "outputs", "explain"):
        targets = content.get(section)
        if targets is None:
            continue
        if not isinstance(targets, dict):
            yield _shape((section,), targets, "a mapping of names to sockets")
            continue
        for name, value in targets.items():
            listed = value if section == "inputs" else [value]
            if not isinstance(listed, list) or not listed:
                yield _shape((section, name), value, "a list of sockets, such as `[retriever.query]`")
                continue
            for position, target in enumerate(listed):
                if not isinstance(target, str) or not _SOCKET.fullmatch(target):
                    place: Place = (section, name, position) if section == "inputs" else (section, name)
                    yield flaw(
                        place,
                        f"`{shortened(target)}` names no socket.",
                        _SOCKET_RULE,
                        "Write both names.",
                    )


def _shape(place: Place, value: Any, expected: str) -> Finding:
    return flaw(
        place,
        f"`{shortened(place[-1])}` is {_shown(value)}.",
        f"Expected {expected}.",
        "Correct it; pipelines/embedded/simple.yml shows how it looks.",
    )


def _shown(value: Any) -> str:
    if value is None:
        return "missing"
    kinds = {dict: "a mapping", list: "a list", str: "a text", bool: "a truth value"}
    return f"{kinds.get(type(value), 'a value')}, `{shortened(value)}`" if value not in ({}, []) else "empty"
