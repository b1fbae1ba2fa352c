"""What may run more than once, what never runs, and whether what a reader needs comes with every run."""

from collections.abc import Iterator

import networkx as nx

from shiguan.checking.definition import Component, Definition, Socket
from shiguan.checking.reading import Finding, flaw
from shiguan.checking.sockets import BRANCH_JOINER, sockets_of


def loops(definition: Definition) -> list[set[str]]:
    """Find the loops: the names of components that can reach one another."""
    found = nx.strongly_connected_components(definition.graph)
    return sorted((loop for loop in found if _goes_round(definition.graph, loop)), key=min)


def runs_without(definition: Definition, reader: Component, source: str) -> str | None:
    """
    Tell why a reader may run more often than a component sends it filters; None if it cannot.

    A value is delivered once and is gone when the receiver has run. So whatever makes the reader run must come through
    the component that sends the filters, and that one must not run again before the reader has.
    """
    rest = definition.graph.subgraph(set(definition.graph) - {source})
    before = {reader.name, *nx.ancestors(rest, reader.name)}
    for loop in nx.strongly_connected_components(rest.subgraph(before)):
        if _goes_round(rest, loop):
            return f"{_listed(loop)} may run several times"
    for name in sorted(before):
        component = definition.components[name]
        greedy = [key for key, socket in sockets_of(component).inputs.items() if "GreedyVariadic" in socket.annotation]
        for key in greedy or (["value"] if component.type == BRANCH_JOINER else []):
            if definition.feeds((name, key)) > 1:
                return f"`{name}` hands on each of the values that reach it, one after the other"
    return _asked_unevenly(definition, reader) or _overtaken(definition, reader, source)


def _asked_unevenly(definition: Definition, reader: Component) -> str | None:
    sockets = sockets_of(reader)
    needed = [name for name, socket in sockets.inputs.items() if socket.mandatory]
    for name in needed:
        if definition.feeds((reader.name, name)) > 1:
            return f"several components feed `{reader.name}.{name}`"
    others = [name for name in sockets.inputs if name != "filters" and definition.feeds((reader.name, name))]
    if not needed and others:
        return f"`{reader.name}.{others[0]}` alone is enough to make it run"
    return None


def _overtaken(definition: Definition, reader: Component, source: str) -> str | None:
    """Whether the reader may run before its filters are there, or the next round begin before the reader has run."""
    everything = set(definition.graph)
    always = definition.components[source].role == "filters"  # nothing but the caller feeds it
    if not always and reader.name not in _waiting_for(definition, source, everything):
        return f"`{reader.name}` does not wait for `{source}`"
    loop = next((loop for loop in loops(definition) if source in loop), None)
    if loop and source not in _waiting_for(definition, reader.name, loop):
        return f"`{source}` may begin the next round before `{reader.name}` has run"
    return None


def _waiting_for(definition: Definition, first: str, within: set[str]) -> set[str]:
    """Find what cannot run before a component has: it needs an input that comes only from those that wait as well."""
    done, waiting, frontier = {first}, set[str](), [first]
    while frontier:
        for name in set(definition.graph.successors(frontier.pop())) - waiting:
            if name in within and _waits(definition, name, within, done):
                waiting.add(name)
                done.add(name)
                frontier.append(name)
    return waiting


def _waits(definition: Definition, name: str, within: set[str], done: set[str]) -> bool:
    for key, socket in sockets_of(definition.components[name]).inputs.items():
        receiver: Socket = (name, key)
        senders = {edge.sender[0] for edge in definition.senders(receiver)} & within
        if socket.mandatory and senders and senders <= done and not definition.input_names(receiver):
            return True
    return False


def _goes_round(graph: "nx.DiGraph[str]", nodes: set[str]) -> bool:
    return len(nodes) > 1 or any(graph.has_edge(name, name) for name in nodes)


def _listed(names: set[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def check_starvation(definition: Definition) -> Iterator[Finding]:
    """Find inputs that nothing feeds, and loops that are fed from outside past their entrance."""
    fed = {edge.receiver for edge in definition.connections}
    fed |= {target for targets in definition.inputs.values() for target in targets}
    for component in definition.components.values():
        for name, socket in sockets_of(component).inputs.items():
            if socket.mandatory and (component.name, name) not in fed:
                yield flaw(
                    component.place,
                    f"Nothing feeds `{component.name}.{name}`, so `{component.name}` never runs.",
                    "Expected a connection or a declared input.",
                    "Connect it, or remove the component.",
                )
    for loop in loops(definition):
        if not any(definition.components[name].type == BRANCH_JOINER for name in loop):
            yield flaw(
                ("connections",),
                f"The components {', '.join(f'`{name}`' for name in sorted(loop))} wait for one another.",
                "Expected a loop that is entered through a `BranchJoiner`.",
                "Remove a connection, or add the joiner.",
            )
        for edge in definition.connections:
            entered = edge.receiver[0]
            if edge.sender[0] in loop or entered not in loop:
                continue
            if definition.components[entered].type != BRANCH_JOINER:
                yield Finding(
                    edge.place,
                    f"`{'.'.join(edge.sender)}` stands outside the loop and feeds `{'.'.join(edge.receiver)}` inside "
                    "it: it delivers once, and from the second round on the receiver does not run, or runs without it.",
                    "Expected everything inside a loop to come from inside.",
                    "Carry the value through the loop: name it in `carry` of `AttemptStarter` and `AttemptReader`.",
                )
