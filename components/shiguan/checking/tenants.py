"""Checks that every read has the tenant's filter, and that what is written is stamped with its sender's tenant."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import networkx as nx

from shiguan.checking.definition import Component, Socket, listed, may_be, names_store, written
from shiguan.checking.reading import Finding

if TYPE_CHECKING:
    from shiguan.checking.building import BuiltPipeline

_FILTERS = ("filters", "retriever_kwargs")
"""The inputs that carry a tenant's filters: directly, or as arguments for the retrievers inside a component."""

_EVERYTHING = "it would find every tenant's documents"
_STORE_PACKAGES = ("haystack.document_stores.", "haystack_integrations.document_stores.")


def check_tenant_reads(built: "BuiltPipeline") -> Iterator[Finding]:
    """
    Find ways in which a document of another tenant could reach a prompt or an output.

    A reader without the tenant's filter is refused wherever its documents go, and `filters` in its `init_parameters` do
    not count, since those of a run replace them.
    """
    for component in built.definition.components.values():
        if built.role(component) == "filters":
            yield from _tenant(built, component, "filters")
        if built.role(component) == "loops":
            # An attempt may enter another loop with the filters that it began with.
            reason = _unfiltered(built, (component.name, "filters"), "filters")
            if reason is not None:
                yield Finding(component.place, f"`{component.name}` is filtered by {reason}.")
        parts = [part for part in _holders(built, component) if built.role(part) != "writes"]
        if parts:
            yield from _inner(built, component, [part for part in parts if part is not component])
            yield from _filters(built, component)


def _holders(built: "BuiltPipeline", component: Component) -> list[Component]:
    """
    Find what reaches a store: a component, or one inside it.

    It has a store among its parameters, its class takes one, or its package is one of retrievers: some open their own
    database.
    """
    stores = [part for part in component.inner if _is_store(part)]
    parts = {part.place: part for part in (component, *component.inner) if not _is_store(part)}
    holders = {part.place for part in parts.values() if built.may_hold_a_store(part)}
    for store in stores:
        place = store.place[:-1]
        while place not in parts:
            place = place[:-1]
        holders.add(place)
    return [part for place, part in parts.items() if place in holders]


def _is_store(part: Component) -> bool:
    named = names_store(part.place[-1])
    return named or part.type.startswith(_STORE_PACKAGES) or part.type.endswith("Store")


def _tenant(built: "BuiltPipeline", component: Component, others: str) -> Iterator[Finding]:
    """Check that a component gets the tenant from the caller, and neither it nor `others` from a component."""
    name = component.name
    names = built.definition.input_names((name, "tenant_id"))
    for given, place in names.items():
        if given != "tenant_id":
            problem = f"The tenant of `{name}` comes from the input `{given}` and not from `tenant_id`"
            yield Finding(place, f"{problem}, which a server fills from the caller's key.")
    if "tenant_id" not in names:
        yield Finding(
            component.place, f"`{name}` does not get the input `tenant_id`, which says whose documents these are."
        )
    for edge in built.definition.connections:
        if edge.receiver in ((name, "tenant_id"), (name, others)):
            problem = f"`{written(edge.sender)}` sends to `{written(edge.receiver)}`: a value that a component makes up"
            yield Finding(edge.place, f"{problem}, or may never send, cannot decide whose documents these are.")


def _filters(built: "BuiltPipeline", reader: Component) -> Iterator[Finding]:
    """Check that every run of a reader has the tenant's filters."""
    known = built.inputs(reader.name)
    # Arguments of retrievers are filters only in a component that passes them on.
    taken = [name for name in _FILTERS if name in known and (name == "filters" or built.readers_inside(reader))]
    if not taken and built.classes[reader.type] is not None:
        yield Finding(reader.place, f"`{reader.name}` reads a store and has no input `filters`: {_EVERYTHING}.")
        return
    for number, name in enumerate(taken or ["filters"]):
        socket = (reader.name, name)
        for given, place in built.definition.input_names(socket).items():
            yield Finding(place, f"The input `{given}` goes to `{written(socket)}` and bypasses the `TenantFilter`.")
        edges = built.definition.senders(socket)
        if not edges and not number:
            yield Finding(reader.place, f"Nothing is connected to `{written(socket)}`: {_EVERYTHING}.")
        for edge in edges:
            wrong = _wrong_filter(built, reader, edge.sender, name)
            if wrong is not None:
                yield Finding(edge.place, f"{wrong}.")


def _wrong_filter(built: "BuiltPipeline", reader: Component, sender: Socket, name: str) -> str | None:
    reason = _unfiltered(built, sender, name)
    if reason is not None:
        return f"`{reader.name}` is filtered by {reason}"
    if built.role(reader) == "answers":
        return None  # whatever ends the question makes it run, and it reads nothing without filters
    loop = next((loop for loop in built.loops if reader.name in loop), set[str]())
    if loop and sender[0] not in loop:
        return f"`{reader.name}` is in a loop and gets its filters from outside; in the second round {_EVERYTHING}"
    again = _runs_without(built, reader, sender[0])
    return again and (
        f"`{reader.name}` may run more often than `{sender[0]}` sends it filters: {again}. Without them {_EVERYTHING}"
    )


def _runs_without(built: "BuiltPipeline", reader: Component, source: str) -> str | None:
    """
    Return why a reader may run more often than a component sends it filters; None if it cannot.

    A value is delivered once and used up when the receiver runs. So whatever makes the reader run must come through the
    component that sends the filters, and that must not run again before the reader has.
    """
    rest = built.graph.subgraph(set(built.graph) - {source})
    before = {reader.name, *nx.ancestors(rest, reader.name)}
    for loop in nx.strongly_connected_components(rest.subgraph(before)):
        if len(loop) > 1:
            return f"{listed(loop)} may run several times"
    for name in sorted(before):
        if any(built.definition.count_feeds((name, key)) > 1 for key in built.greedy(name)):
            return f"`{name}` passes on each of the values that reach it, one after the other"
    return _asked_unevenly(built, reader) or _overtaken(built, reader, source)


def _asked_unevenly(built: "BuiltPipeline", reader: Component) -> str | None:
    count, sockets = built.definition.count_feeds, built.inputs(reader.name)
    needed = [name for name, socket in sockets.items() if socket.is_mandatory]
    for name in needed:
        if count((reader.name, name)) > 1:
            return f"several components send to `{reader.name}.{name}`"
    others = [name for name in sockets if name not in _FILTERS and count((reader.name, name))]
    return f"`{reader.name}.{others[0]}` alone is enough to make it run" if others and not needed else None


def _overtaken(built: "BuiltPipeline", reader: Component, source: str) -> str | None:
    """Return why the reader may run before its filters are there, or the next round begin before the reader ran."""
    always = built.role(built.definition.components[source]) == "filters"  # only the caller sends to it
    if not always and reader.name not in _waiting_for(built, source, set(built.graph)):
        return f"`{reader.name}` does not wait for `{source}`"
    loop = next((loop for loop in built.loops if source in loop), None)
    if built.role(reader) == "retries":
        return None  # it runs at most once a round, and reads nothing without filters
    if loop and source not in _waiting_for(built, reader.name, loop):
        return f"`{source}` may begin the next round before `{reader.name}` has run"
    return None


def _waiting_for(built: "BuiltPipeline", first: str, within: set[str]) -> set[str]:
    """Find what cannot run before a component has: it needs an input that comes only from it, or from what waits."""
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
        # A joiner of lists runs when all values on their way have arrived.
        there = senders & done if socket.is_lazy_variadic else senders <= done
        if socket.is_mandatory and senders and there and not built.definition.input_names((name, key)):
            return True
    return False


def _unfiltered(built: "BuiltPipeline", sender: Socket, wanted: str, after: frozenset[str] = frozenset()) -> str | None:
    """Return why an output does not hold the tenant's filters, worded to follow "filtered by"; None if it does."""
    name, output = sender
    component = built.definition.components.get(name)
    if component is None:
        return f"`{written(sender)}`, which does not exist"
    role = built.role(component)
    if role not in ("filters", "loops") or output != wanted:
        return f"`{written(sender)}`, which is not `{wanted}` of a `TenantFilter`"
    if role == "filters":
        return None
    if name in after:
        return f"`{written(sender)}`, which gets its own from there"
    # A loop keeps the filters of the first round for all rounds, and refuses to begin without.
    receiver = (name, "filters")
    if built.definition.input_names(receiver):
        return f"what a caller may pass to `{written(receiver)}`"
    edges = built.definition.senders(receiver)
    if not edges:
        return f"what nothing sends to `{written(receiver)}`"
    return next(filter(None, (_unfiltered(built, edge.sender, "filters", after | {name}) for edge in edges)), None)


def _inner(built: "BuiltPipeline", reader: Component, parts: list[Component]) -> Iterator[Finding]:
    """Check that readers inside a component get its filters."""
    around = {one.place: one for one in (reader, *reader.inner)}
    for part in parts:
        outer = [around[place] for depth in range(len(part.place)) if (place := part.place[:depth]) in around]
        if not all(part.place[len(one.place) + 1] in built.readers_inside(one) for one in outer):
            problem = f"`{reader.name}` is not known to pass its filters on to `{part.name}`: its class names no such"
            yield Finding(part.place, f"{problem} parameter in `tenant_readers`.")
        elif not built.takes(part, "filters"):
            yield Finding(part.place, f"`{part.name}` reads a store and takes no `filters`: {_EVERYTHING}.")


def check_tenant_writes(built: "BuiltPipeline") -> Iterator[Finding]:
    """Find ways in which documents could be stored without a tenant, or under another tenant's name."""
    for component in built.definition.components.values():
        if built.role(component) == "stamps":
            yield from _tenant(built, component, "tenant_id")
        if any(built.role(part) == "writes" for part in _holders(built, component)):
            for name, socket in built.inputs(component.name).items():
                if may_be(socket.type, "Document"):
                    yield from _unstamped(built, (component.name, name))


def _unstamped(built: "BuiltPipeline", start: Socket) -> Iterator[Finding]:
    """Walk back from a writer to all sources of its documents, and stop at stampers."""

    def past(origin: str, reason: str) -> Finding:
        return Finding(built.definition.components[origin].place, f"`{start[0]}` writes {reason}.")

    frontier, seen = [start], {start}
    while frontier:
        receiver = frontier.pop()
        for given in list(built.definition.input_names(receiver))[:1]:
            yield past(receiver[0], f"what a caller passes to `{written(receiver)}` as `{given}`")
        edges = built.definition.senders(receiver)
        if receiver == start and not edges:
            yield past(receiver[0], f"from nowhere: nothing is connected to `{written(receiver)}`")
        for edge in edges:
            sender = built.definition.components.get(edge.sender[0])
            if sender is None or built.role(sender) == "stamps":
                continue
            before = {(sender.name, name) for name, socket in built.inputs(sender.name).items()
                      if may_be(socket.type, "Document")}  # fmt: skip
            if not any(built.definition.count_feeds(socket) for socket in before):
                yield past(sender.name, f"what comes from `{sender.name}`, unstamped")
            frontier += sorted(before - seen)
            seen |= before
