"""Every document leaves a store under the asking tenant's filter, and enters it as the tenant's who sent it."""

from collections.abc import Iterator
from typing import Final

from shiguan.checking.definition import Component, Definition, Socket, inner_components
from shiguan.checking.loops import loops, runs_without
from shiguan.checking.reading import Finding
from shiguan.checking.signatures import mentions
from shiguan.checking.sockets import BRANCH_JOINER, sockets_of

_CARRIERS = ("Document", "ProducedIds")
_STORE_PACKAGES = ("haystack.document_stores.", "haystack_integrations.document_stores.")


def is_store(component: Component) -> bool:
    """Tell whether something that stands inside a component is a document store."""
    named = _names_store(component.place[-1])
    return named or component.type.startswith(_STORE_PACKAGES) or component.type.endswith("Store")


def reading_parts(component: Component) -> list[Component]:
    """Find the parts of a component out of which any document of a store may come."""
    return [one for one in _holders(component) if one.role != "writes"]


def readers(definition: Definition) -> Iterator[Component]:
    """Find the components of a pipeline out of which any document of a store may come."""
    return (component for component in definition.components.values() if reading_parts(component))


def writes(definition: Definition) -> Iterator[Socket]:
    """Find where documents go into a store."""
    for component in definition.components.values():
        for writer in _holders(component):
            if writer.role == "writes":
                inputs = writer.signature.inputs.items()
                yield from (
                    (component.name, name) for name, socket in inputs if mentions(socket.annotation, *_CARRIERS)
                )


def _holders(component: Component) -> list[Component]:
    """
    Find what reaches a store, a component or one inside it.

    It holds one among its parameters, its class takes one, or it is a retriever by its package: some open a database
    of their own.
    """
    inner = list(inner_components(component))
    parts = [component, *(one for one in inner if not is_store(one))]
    places = {one.place: one for one in parts}
    holders = {
        one.place for one in parts if ".retrievers." in one.type or any(map(_names_store, one.signature.parameters))
    }
    for store in filter(is_store, inner):
        place = store.place[:-1]
        while place not in places:
            place = place[:-1]
        holders.add(place)
    return [one for place, one in places.items() if place in holders]


def _names_store(key: str | int) -> bool:
    return str(key) == "store" or str(key).endswith("_store")


def unfiltered(definition: Definition, sender: Socket) -> str | None:
    """
    Tell why an output does not hold the tenant's filters, to stand after "filtered by"; None if on every way it does.

    Values are asked for as they are, or as what a loop's state carries under a name.
    """
    frontier: list[tuple[Socket, str | None]] = [(sender, None)]
    seen = set(frontier)
    while frontier:
        output, carried = frontier.pop()
        before = _before(definition, output, carried)
        if isinstance(before, str):
            return before
        if before is None:
            continue
        receiver, name = before
        what = f"`{name}` of a state that" if name else "what"
        if definition.input_names(receiver):
            return f"{what} a caller may pass to `{'.'.join(receiver)}`"
        edges = definition.senders(receiver)
        if not edges:
            return f"{what} nothing sends to `{'.'.join(receiver)}`"
        for edge in edges:
            if (edge.sender, name) not in seen:
                seen.add((edge.sender, name))
                frontier.append((edge.sender, name))
    return None


def _before(definition: Definition, sender: Socket, carried: str | None) -> tuple[Socket, str | None] | str | None:
    """Give the input that an output comes from, and as what; None where it is the tenant's; else what is wrong."""
    component = definition.components.get(sender[0])
    role = component.role if component else ""
    if carried is None:
        if role == "filters" and sender[1] == "filters":
            return None
        if role == "carries":
            return (sender[0], "state"), sender[1]
        return f"`{'.'.join(sender)}`, which {'is no `TenantFilter`' if component else 'does not exist'}"
    if role == "starts" and component is not None:
        carry = component.parameters.get("carry")
        if not isinstance(carry, dict) or carried not in carry:
            return f"`{carried}`, which `{sender[0]}` does not carry"
        return (sender[0], carried), None
    if component is not None and component.type == BRANCH_JOINER:
        return (sender[0], "value"), carried
    if (role, sender[1]) in (("carries", "state"), ("retries", "retry")):
        return (sender[0], "state"), carried
    return f"`{carried}` of a state from `{'.'.join(sender)}`, which may change it"


_INNER_READERS: Final = {
    "shiguan.retrieval.multi_query_hybrid_retriever.MultiQueryHybridRetriever": (
        "bm25_retriever",
        "embedding_retriever",
    ),
    "haystack.components.retrievers.text_embedding_retriever.TextEmbeddingRetriever": ("retriever",),
    "haystack.components.retrievers.multi_retriever.MultiRetriever": ("retrievers",),
}
"""Components that hand their `filters` on, and the parameters of those that they hand them to."""

_NEXT = (
    "Connect `filters` of a `TenantFilter` to it; in a loop carry them through `AttemptStarter` and `AttemptReader`."
)


def check_tenant_reads(definition: Definition) -> Iterator[Finding]:
    """
    Find ways on which a document of another tenant could reach a prompt or an output.

    It does not ask where the documents of a reader go: a reader without the tenant's filter is refused wherever it
    stands, and `filters` in its `init_parameters` do not count, since a run's own take their place.
    """
    for component in definition.components.values():
        if component.role == "filters":
            yield from _tenant_filter(definition, component)
    for reader in readers(definition):
        yield from _inner(reader)
        if "filters" not in sockets_of(reader).inputs and reader.signature.state == "read":
            yield Finding(
                reader.place,
                f"`{reader.name}` reads a store and has no input `filters`: it would find every tenant's documents.",
                "Expected a retriever that takes `filters`.",
                "Use another class, or take it out.",
            )
            continue
        yield from _filters(definition, reader)


def _tenant_filter(definition: Definition, component: Component) -> Iterator[Finding]:
    tenant: Socket = (component.name, "tenant_id")
    names = definition.input_names(tenant)
    for name in names:
        if name != "tenant_id":
            yield Finding(
                definition.input_place(name, tenant),
                f"The tenant of `{component.name}` comes from the input `{name}`.",
                "Expected it from the input `tenant_id`, which a server fills from the caller's key.",
                f"Declare `tenant_id: [{component.name}.tenant_id]` and remove this one.",
            )
    if "tenant_id" not in names:
        yield Finding(
            component.place,
            f"`{component.name}` does not get the input `tenant_id`.",
            f"Expected `tenant_id: [{component.name}.tenant_id]` below `inputs`.",
            "Declare it.",
        )
    for edge in definition.connections:
        if edge.receiver[0] == component.name:
            yield Finding(
                edge.place,
                f"`{'.'.join(edge.sender)}` feeds `{'.'.join(edge.receiver)}`.",
                "Expected a `TenantFilter` that takes everything from the caller: what a component makes up, or may "
                "never send, cannot say whose documents are seen.",
                "Remove the connection; conditions of your own go into the input `filters`.",
            )


def _filters(definition: Definition, reader: Component) -> Iterator[Finding]:
    socket: Socket = (reader.name, "filters")
    for name in definition.input_names(socket):
        yield Finding(
            definition.input_place(name, socket),
            f"The input `{name}` goes to `{reader.name}.filters` past the `TenantFilter`.",
            "Expected `filters` that hold the tenant.",
            f"Send `{name}` to the `TenantFilter`'s `filters`. {_NEXT}",
        )
    edges = definition.senders(socket)
    if not edges:
        yield Finding(
            reader.place,
            f"Nothing is connected to `{reader.name}.filters`: it would find every tenant's documents.",
            "Expected the filters of a `TenantFilter`.",
            _NEXT,
        )
    loop = next((loop for loop in loops(definition) if reader.name in loop), set[str]())
    for edge in edges:
        reason = unfiltered(definition, edge.sender)
        if reason is not None:
            yield Finding(
                edge.place,
                f"`{reader.name}` is filtered by {reason}.",
                "Expected the filters of a `TenantFilter`.",
                _NEXT,
            )
        elif loop and edge.sender[0] not in loop:
            yield Finding(
                edge.place,
                f"`{reader.name}` stands in a loop and gets its filters from outside: in the second round it would "
                "find every tenant's documents.",
                "Expected the filters from inside the loop.",
                _NEXT,
            )
        elif again := runs_without(definition, reader, edge.sender[0]):
            yield Finding(
                edge.place,
                f"`{reader.name}` may run more often than `{edge.sender[0]}` sends it filters: {again}. A run without "
                "them would find every tenant's documents.",
                "Expected whatever makes a reader run to come the same way as its filters, once each time.",
                "Take the `BranchJoiner` or the loop out of its way, or carry the filters along in the loop, from "
                "`AttemptStarter` to `AttemptReader`.",
            )


def _inner(reader: Component) -> Iterator[Finding]:
    around = {one.place: one for one in (reader, *inner_components(reader))}
    for part in reading_parts(reader):
        if part is reader:
            continue
        outer = [around[place] for depth in range(len(part.place)) if (place := part.place[:depth]) in around]
        if not all(_hands_on(one, part) for one in outer):
            yield Finding(
                part.place,
                f"`{reader.name}` is not known to hand its filters on to `{part.name}`.",
                "Expected a store as a parameter of the component itself, or a retriever inside one of "
                f"{', '.join(type_.rpartition('.')[2] for type_ in _INNER_READERS)}.",
                "Make it a component of its own.",
            )
        elif "filters" not in part.signature.inputs and part.signature.state == "read":
            yield Finding(
                part.place,
                f"`{part.name}` reads a store and takes no `filters`: it would find every tenant's documents.",
                "Expected a retriever that takes `filters`.",
                "Use another class.",
            )


def _hands_on(outer: Component, part: Component) -> bool:
    """Whether a component gives its filters to what stands in that one of its parameters."""
    return part.place[len(outer.place) + 1] in _INNER_READERS.get(outer.type, ())


_STAMPED = "Expected documents that a `SourceStamper` has marked with the caller's tenant."
_STAMP = "Send them through the `SourceStamper` first."


def check_tenant_writes(definition: Definition) -> Iterator[Finding]:
    """Find ways on which documents could be stored without a tenant, or under another one's name."""
    for component in definition.components.values():
        if component.role == "stamps":
            yield from _stamper(definition, component)
    for start in writes(definition):
        for origin, reason in _unstamped(definition, start):
            yield Finding(definition.components[origin].place, f"`{start[0]}` writes {reason}.", _STAMPED, _STAMP)


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
