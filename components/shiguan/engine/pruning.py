"""Cuts a pipeline down to what is asked of it."""

from typing import Any

from shiguan.errors import ConfigurationError


def pruned(definition: dict[str, Any], outputs: list[str], name: str) -> dict[str, Any]:
    """Keep the components that some outputs need, and the connections and inputs between them."""
    declared: dict[str, str] = definition.get("outputs") or {}
    unknown = [output for output in outputs if output not in declared]
    if unknown:
        raise ConfigurationError(
            f"The pipeline `{name}` has no output `{unknown[0]}`. Its outputs: {', '.join(declared)}. Name one "
            "of these."
        )
    connections = _without_loops(list(definition["components"]), definition.get("connections") or [])
    needed: set[str] = set()
    frontier = [declared[output].split(".")[0] for output in outputs]
    while frontier:
        component = frontier.pop()
        if component not in needed:
            needed.add(component)
            frontier += [
                edge["sender"].split(".")[0] for edge in connections if edge["receiver"].split(".")[0] == component
            ]
    inputs = {
        key: kept
        for key, targets in (definition.get("inputs") or {}).items()
        if (kept := [target for target in targets if target.split(".")[0] in needed])
    }
    explained: dict[str, str] = definition.get("explain") or {}
    return {
        **definition,
        "components": {key: spec for key, spec in definition["components"].items() if key in needed},
        "connections": [edge for edge in connections if edge["receiver"].split(".")[0] in needed],
        "inputs": inputs,
        "outputs": {output: target for output, target in declared.items() if target.split(".")[0] in needed},
        "explain": {key: target for key, target in explained.items() if target.split(".")[0] in needed},
    }


def _without_loops(components: list[str], connections: list[dict[str, str]]) -> list[dict[str, str]]:
    """Leave out the connections that lead back: the first round of a loop needs nothing from them."""
    state: dict[str, str] = {}
    kept: list[dict[str, str]] = []

    def visit(component: str) -> None:
        state[component] = "open"
        for edge in connections:
            if edge["sender"].split(".")[0] != component:
                continue
            receiver = edge["receiver"].split(".")[0]
            if state.get(receiver) == "open":
                continue
            kept.append(edge)
            if receiver not in state:
                visit(receiver)
        state[component] = "done"

    fed = {edge["receiver"].split(".")[0] for edge in connections}
    for component in sorted(components, key=lambda name: name in fed):
        if component not in state:
            visit(component)
    return kept
