"""Every document that goes into a store belongs to the tenant who sent it."""

from collections.abc import Iterator

from shiguan.checking.annotations import mentions
from shiguan.checking.definition import Component, Definition, Socket
from shiguan.checking.finding import Finding
from shiguan.checking.sockets import sockets_of
from shiguan.checking.stores import writes

_CARRIERS = ("Document", "ProducedIds")
_EXPECTED = "Expected documents that a `SourceStamper` has marked with the caller's tenant."
_NEXT = "Send them through the `SourceStamper` first."


def check_tenant_writes(definition: Definition) -> Iterator[Finding]:
    """Find ways on which documents could be stored without a tenant, or under another one's name."""
    for component in definition.components.values():
        if component.role == "stamps":
            yield from _stamper(definition, component)
    for start in writes(definition):
        for origin, reason in _unstamped(definition, start):
            yield Finding(definition.components[origin].place, f"`{start[0]}` writes {reason}.", _EXPECTED, _NEXT)


def _stamper(definition: Definition, component: Component) -> Iterator[Finding]:
    tenant: Socket = (component.name, "tenant_id")
    if definition.input_names(tenant) != ["tenant_id"]:
        given = ", ".join(f"`{name}`" for name in definition.input_names(tenant)) or "nothing"
        yield Finding(
            component.place,
            f"The tenant of `{component.name}` comes from {given}.",
            f"Expected `tenant_id: [{component.name}.tenant_id]` below `inputs`, and no other way in.",
            "Declare it so.",
        )
    for edge in definition.senders(tenant):
        yield Finding(
            edge.place,
            f"`{'.'.join(edge.sender)}` says whose documents these are.",
            "Expected the input `tenant_id`, which a server fills from the caller's key.",
            "Remove the connection.",
        )


def _unstamped(definition: Definition, start: Socket) -> Iterator[tuple[str, str]]:
    """Walk back from a writer to all that its documents come from, and stop at stampers."""
    frontier, seen = [start], {start}
    while frontier:
        receiver = frontier.pop()
        name = ".".join(receiver)
        if inputs := definition.input_names(receiver):
            yield receiver[0], f"what a caller passes to `{name}` as `{inputs[0]}`"
        edges = definition.senders(receiver)
        if receiver == start and not edges:
            yield receiver[0], f"from nowhere: nothing is connected to `{name}`"
        for edge in edges:
            sender = definition.components.get(edge.sender[0])
            if sender is None or sender.role == "stamps":
                continue
            before = [
                (sender.name, socket)
                for socket in {*sockets_of(sender).inputs, *_fed(definition, sender)}
                if _may_carry(sender, socket)
            ]
            if not any(definition.senders(socket) or definition.input_names(socket) for socket in before):
                yield sender.name, f"what comes from `{sender.name}`, past the stamp"
            for socket in before:
                if socket not in seen:
                    seen.add(socket)
                    frontier.append(socket)


def _fed(definition: Definition, component: Component) -> set[str]:
    names = {edge.receiver[1] for edge in definition.connections if edge.receiver[0] == component.name}
    inputs = {target[1] for targets in definition.inputs.values() for target in targets if target[0] == component.name}
    return names | inputs


def _may_carry(component: Component, socket: str) -> bool:
    known = sockets_of(component).inputs.get(socket)
    return known is None or mentions(known.annotation, *_CARRIERS)
