"""Which components of a pipeline may run more than once, and whether what they need comes with every run."""

import networkx as nx

from shiguan.checking.definition import Component, Definition, Socket
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
    """Whether the next round may begin before the reader has had its turn in this one."""
    loop = next((loop for loop in loops(definition) if source in loop), None)
    if loop is None:
        return None
    waiting: set[str] = set()
    frontier = [reader.name]
    while frontier:
        done = frontier.pop()
        if done in waiting:
            continue
        waiting.add(done)
        frontier += [name for name in definition.graph.successors(done) if _waits(definition, name, loop, waiting)]
    return None if source in waiting else f"`{source}` may begin the next round before `{reader.name}` has run"


def _waits(definition: Definition, name: str, loop: set[str], waiting: set[str]) -> bool:
    """Whether one of the inputs that a component cannot run without comes, within the loop, only from those waiting."""
    for key, socket in sockets_of(definition.components[name]).inputs.items():
        receiver: Socket = (name, key)
        senders = {edge.sender[0] for edge in definition.senders(receiver)} & loop
        if socket.mandatory and senders and senders <= waiting and not definition.input_names(receiver):
            return True
    return False


def _goes_round(graph: "nx.DiGraph[str]", nodes: set[str]) -> bool:
    return len(nodes) > 1 or any(graph.has_edge(name, name) for name in nodes)


def _listed(names: set[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))
