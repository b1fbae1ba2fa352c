"""Every document that comes out of a store comes out under the asking tenant's filter."""

from collections.abc import Iterator
from typing import Final

from shiguan.checking.definition import Component, Definition, Socket, inner_components
from shiguan.checking.finding import Finding
from shiguan.checking.repeats import loops, runs_without
from shiguan.checking.sockets import sockets_of
from shiguan.checking.stores import readers, reading_parts
from shiguan.checking.tenant_flow import unfiltered

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
