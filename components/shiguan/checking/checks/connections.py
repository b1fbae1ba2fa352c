"""Connections join sockets that exist and whose types can fit."""

from collections.abc import Iterator

from shiguan.checking.annotations import can_fit
from shiguan.checking.definition import Connection, Definition, Socket
from shiguan.checking.finding import Finding, Place, shortened
from shiguan.checking.signatures import Socket as Typed
from shiguan.checking.sockets import sockets_of


def check_connections(definition: Definition) -> Iterator[Finding]:
    """Find connections that cannot be made, and declared inputs and outputs that lead nowhere."""
    seen: set[tuple[Socket, Socket]] = set()
    for edge in definition.connections:
        yield from _edge(definition, edge)
        if (edge.sender, edge.receiver) in seen:
            yield Finding(
                edge.place,
                f"The connection to `{_written(edge.receiver)}` stands twice.",
                "Expected each connection once.",
                "Remove one of them.",
                unsafe=False,
            )
        seen.add((edge.sender, edge.receiver))
    for name, targets in definition.inputs.items():
        for position, target in enumerate(targets):
            yield from _missing(definition, target, ("inputs", name, position), "input")
    for section in ("outputs", "explain"):
        for name, text in (definition.file.content.get(section) or {}).items():
            component, _, socket = text.partition(".")
            yield from _missing(definition, (component, socket), (section, name), "output")


def _edge(definition: Definition, edge: Connection) -> Iterator[Finding]:
    problems = [
        *_missing(definition, edge.sender, (*edge.place, "sender"), "output"),
        *_missing(definition, edge.receiver, (*edge.place, "receiver"), "input"),
    ]
    yield from problems
    if problems:
        return
    if edge.sender[0] == edge.receiver[0]:
        yield Finding(
            edge.place,
            f"`{edge.sender[0]}` is connected to itself.",
            "Expected two components; a loop goes through a `BranchJoiner`.",
            "Remove the connection.",
            unsafe=False,
        )
        return
    given = sockets_of(definition.components[edge.sender[0]]).outputs.get(edge.sender[1], Typed()).annotation
    wanted = sockets_of(definition.components[edge.receiver[0]]).inputs.get(edge.receiver[1], Typed()).annotation
    if given and wanted and not can_fit(given, wanted):
        yield Finding(
            edge.place,
            f"`{_written(edge.sender)}` gives `{given}` and `{_written(edge.receiver)}` takes `{wanted}`.",
            "Expected types that fit.",
            "Connect another socket, or put a component between them that makes one of the other.",
            unsafe=False,
        )


def _missing(definition: Definition, socket: Socket, place: Place, kind: str) -> Iterator[Finding]:
    component = definition.components.get(socket[0])
    if component is None:
        yield Finding(
            place,
            f"There is no component `{shortened(socket[0])}`.",
            f"Expected one of {', '.join(definition.components)}.",
            "Correct the name, or remove this line.",
            unsafe=False,
        )
        return
    sockets = sockets_of(component)
    known = sockets.inputs if kind == "input" else sockets.outputs
    is_open = sockets.open_inputs if kind == "input" else sockets.open_outputs
    if socket[1] not in known and not is_open:
        yield Finding(
            place,
            f"`{component.name}` has no {kind} `{shortened(socket[1])}`.",
            f"Expected one of its {kind}s: {', '.join(known) or 'it has none'}.",
            "Correct the name.",
            unsafe=False,
        )


def _written(socket: Socket) -> str:
    return shortened(".".join(socket))
