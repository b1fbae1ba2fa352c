"""What may run more than once, what never runs, and whether what a reader needs comes with every run."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import networkx as nx

from shiguan.checking.definition import Component, written
from shiguan.checking.reading import Finding, flaw

if TYPE_CHECKING:
    from shiguan.checking.building import BuiltPipeline


def runs_without(built: "BuiltPipeline", reader: Component, source: str) -> str | None:
    """
    Tell why a reader may run more often than a component sends it filters; None if it cannot.

    A value is delivered once and is gone when the receiver has run. So whatever makes the reader run must come through
    the component that sends the filters, and that one must not run again before the reader has.
    """
    rest = built.graph.subgraph(set(built.graph) - {source})
    before = {reader.name, *nx.ancestors(rest, reader.name)}
    for loop in nx.strongly_connected_components(rest.subgraph(before)):
        if len(loop) > 1:
            return f"{_listed(loop)} may run several times"
    for name in sorted(before):
        if any(built.definition.count_feeds((name, key)) > 1 for key in _greedy(built, name)):
            return f"`{name}` hands on each of the values that reach it, one after the other"
    return _asked_unevenly(built, reader) or _overtaken(built, reader, source)


def _greedy(built: "BuiltPipeline", name: str) -> list[str]:
    """Name the inputs that make a component run with each value that comes, as a `BranchJoiner` does."""
    return [key for key, socket in built.inputs(name).items() if socket.is_greedy]


def _asked_unevenly(built: "BuiltPipeline", reader: Component) -> str | None:
    count, sockets = built.definition.count_feeds, built.inputs(reader.name)
    needed = [name for name, socket in sockets.items() if socket.is_mandatory]
    for name in needed:
        if count((reader.name, name)) > 1:
            return f"several components feed `{reader.name}.{name}`"
    others = [name for name in sockets if name != "filters" and count((reader.name, name))]
    return f"`{reader.name}.{others[0]}` alone is enough to make it run" if others and not needed else None


def _overtaken(built: "BuiltPipeline", reader: Component, source: str) -> str | None:
    """Whether the reader may run before its filters are there, or the next round begin before the reader has run."""
    always = built.role(built.definition.components[source]) == "filters"  # nothing but the caller feeds it
    if not always and reader.name not in _waiting_for(built, source, set(built.graph)):
        return f"`{reader.name}` does not wait for `{source}`"
    loop = next((loop for loop in built.loops if source in loop), None)
    if loop and source not in _waiting_for(built, reader.name, loop):
        return f"`{source}` may begin the next round before `{reader.name}` has run"
    return None


def _waiting_for(built: "BuiltPipeline", first: str, within: set[str]) -> set[str]:
    """Find what cannot run before a component has: it needs an input that comes only from those that wait as well."""
    done, waiting, frontier = {first}, set[str](), [first]
    while frontier:
        for name in set(built.graph.successors(frontier.pop())) - waiting:
            if name in within and _waits(built, name, within, done):
                waiting.add(name)
                done.add(name)
                frontier.append(name)
    return waiting


def _waits(built: "BuiltPipeline", name: str, within: set[str], done: set[str]) -> bool:
    for key, socket in built.inputs(name).items():
        senders = set(socket.senders) & within
        if socket.is_mandatory and senders and senders <= done and not built.definition.input_names((name, key)):
            return True
    return False


def _listed(names: set[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def check_starvation(built: "BuiltPipeline") -> Iterator[Finding]:
    """Find inputs that nothing feeds, and loops that are fed from outside past their entrance."""
    for component in built.definition.components.values():
        for name, socket in built.inputs(component.name).items():
            if socket.is_mandatory and not built.definition.count_feeds((component.name, name)):
                yield flaw(
                    component.place,
                    f"Nothing feeds `{component.name}.{name}`, so `{component.name}` never runs.",
                    "Expected a connection or a declared input.",
                    "Connect it, or remove the component.",
                )
    for loop in built.loops:
        if not any(_greedy(built, name) for name in loop):
            yield flaw(
                ("connections",),
                f"The components {_listed(loop)} wait for one another.",
                "Expected a loop that is entered through a `BranchJoiner`.",
                "Remove a connection, or add the joiner.",
            )
        for edge in built.definition.connections:
            into, key = edge.receiver
            if edge.sender[0] not in loop and into in loop and key not in _greedy(built, into):
                yield Finding(
                    edge.place,
                    f"`{written(edge.sender)}` stands outside the loop and feeds `{written(edge.receiver)}` inside it: "
                    "it delivers once, and from the second round on the receiver does not run, or runs without it.",
                    "Expected everything inside a loop to come from inside.",
                    "Carry the value through the loop: name it in `carry` of `AttemptStarter` and `AttemptReader`.",
                )
