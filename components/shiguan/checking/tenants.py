"""Checks that every store guards its tenants, and that the tenant is the one who asks."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from shiguan.checking.definition import Component, Socket, may_be, names_store, written
from shiguan.checking.reading import Finding, Place
from shiguan.tenants import TenantGuarded

if TYPE_CHECKING:
    from shiguan.checking.building import BuiltPipeline

_FILTERS = ("filters", "retriever_kwargs")
"""The inputs that carry a tenant's filters: directly, or as arguments for the retrievers inside a component."""

_STORE_PACKAGES = ("haystack.document_stores.", "haystack_integrations.document_stores.")


def check_tenants(built: "BuiltPipeline") -> Iterator[Finding]:
    """Find unguarded stores, readers without filters, unstamped writes and forged tenants: see docs/decisions/0039."""
    for component in built.definition.components.values():
        yield from _unguarded(built, component)
        role = built.role(component)
        if role in ("filters", "stamps"):
            yield from _tenant(built, component, "filters" if role == "filters" else "tenant_id")
        if any(built.role(part) == "writes" for part in (component, *component.inner)):
            for name, socket in built.inputs(component.name).items():
                if may_be(socket.type, "Document"):
                    yield from _unstamped(built, (component.name, name))
        elif role == "loops" or any(map(_is_store, component.inner)):
            yield from _filters(built, component)


def _is_store(part: Component) -> bool:
    named = names_store(part.place[-1])
    return named or part.type.startswith(_STORE_PACKAGES) or part.type.endswith("Store")


def _unguarded(built: "BuiltPipeline", component: Component) -> Iterator[Finding]:
    """Find stores that would show every tenant's documents; some retrievers open a database of their own."""
    parts = {part.place: part for part in (component, *component.inner)}
    stores = {part.place for part in component.inner if _is_store(part)}
    around = {place[:depth] for place in stores for depth in range(len(place))}
    readers = {_owner(place, parts) for place in stores}.difference(stores)
    for place, part in parts.items():
        if place in stores and not _is_guarded(built.classes[part.type], part.type):
            short = part.type.rpartition(".")[2]
            yield Finding(place, f"`{short}` is not guarded: it would show every tenant's documents.")
        elif ".retrievers." in part.type and place not in around:
            problem = f"`{part.name}` reads no store of this file, so it would find every tenant's documents."
            yield Finding(place, problem)
        elif part is not component and place in readers and not built.takes(part, "filters"):
            yield Finding(place, f"`{part.name}` reads a store and takes no `filters`.")


def _is_guarded(class_: type | None, type_: str) -> bool:
    if class_ is None:  # not installed here
        return not type_.startswith(_STORE_PACKAGES)
    from shiguan.conversations import ConversationStore  # noqa: PLC0415 - a file refused for its text needs no Haystack

    return issubclass(class_, TenantGuarded | ConversationStore)


def _owner(place: Place, parts: Mapping[Place, Component]) -> Place:
    """Return the place of the component that a store is a parameter of."""
    place = place[:-1]
    while place not in parts:
        place = place[:-1]
    return place


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
    """Check that a reader gets its filters from a `TenantFilter`, in a loop from what opens its rounds."""
    known = built.inputs(reader.name)
    taken = [(reader.name, name) for name in _FILTERS if name in known]
    if not any(map(built.definition.is_fed, taken)):
        wanted = f"nothing is connected to `{written(taken[0])}`" if taken else "it has no input `filters`"
        yield Finding(reader.place, f"`{reader.name}` reads a store, and {wanted}.")
    sources = ("filters",) if built.role(reader) == "loops" else ("filters", "loops")
    for socket in taken:
        for given, place in built.definition.input_names(socket).items():
            yield Finding(place, f"The input `{given}` goes to `{written(socket)}` and bypasses the `TenantFilter`.")
        for edge in built.definition.senders(socket):
            sender = built.definition.components.get(edge.sender[0])
            if sender is None or built.role(sender) not in sources or edge.sender[1] != socket[1]:
                problem = f"`{reader.name}` is filtered by `{written(edge.sender)}`, which is not `{socket[1]}` of a"
                yield Finding(edge.place, f"{problem} `TenantFilter`.")


def _unstamped(built: "BuiltPipeline", start: Socket) -> Iterator[Finding]:
    """Walk back from a writer to what its documents come from, up to stampers: a store cannot tell whose an id is."""

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
            if not any(map(built.definition.is_fed, before)):
                yield past(sender.name, f"what comes from `{sender.name}`, unstamped")
            frontier += sorted(before - seen)
            seen |= before
