"""A pipeline file as components and connections, the way the checks look at it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import networkx as nx

from shiguan.checking.reading import PipelineFile, Place
from shiguan.checking.signatures import Signature, read_signature

Socket = tuple[str, str]
"""A component's name and the name of one of its sockets."""


_HAYSTACK_ROLES = {"haystack.components.writers.document_writer.DocumentWriter": "writes"}


@dataclass(frozen=True)
class Component:
    """One component of a pipeline, or one that stands inside another."""

    name: str
    type: str
    parameters: Mapping[str, Any]
    place: Place

    @property
    def signature(self) -> Signature:
        """What its class takes and gives, as far as its source tells."""
        return read_signature(self.type)

    @property
    def role(self) -> str:
        """What its class says of itself about the tenant; Haystack's own say nothing."""
        return self.signature.role or _HAYSTACK_ROLES.get(self.type, "")


@dataclass(frozen=True)
class Connection:
    """One connection."""

    sender: Socket
    receiver: Socket
    place: Place


@dataclass(frozen=True)
class Definition:
    """A file whose shape is sound."""

    file: PipelineFile
    allowed_types: tuple[str, ...] = ()

    @cached_property
    def components(self) -> dict[str, Component]:
        """The components by name."""
        return {
            name: Component(name, spec["type"], spec.get("init_parameters") or {}, ("components", name))
            for name, spec in self.file.content["components"].items()
        }

    @cached_property
    def connections(self) -> list[Connection]:
        """All connections, in the order of the file."""
        return [
            Connection(as_socket(edge["sender"]), as_socket(edge["receiver"]), ("connections", position))
            for position, edge in enumerate(self.file.content.get("connections") or [])
        ]

    @cached_property
    def inputs(self) -> dict[str, list[Socket]]:
        """What a caller may pass, and where it goes."""
        declared = self.file.content.get("inputs") or {}
        return {name: [as_socket(target) for target in targets] for name, targets in declared.items()}

    @cached_property
    def graph(self) -> "nx.DiGraph[str]":
        """The components, and which of them hand something to which."""
        graph = nx.DiGraph()
        graph.add_nodes_from(self.components)
        edges = ((edge.sender[0], edge.receiver[0]) for edge in self.connections)
        graph.add_edges_from(edge for edge in edges if set(edge) <= self.components.keys())
        return graph

    @cached_property
    def _edges(self) -> dict[Socket, list[Connection]]:
        found: dict[Socket, list[Connection]] = {}
        for edge in self.connections:
            found.setdefault(edge.receiver, []).append(edge)
        return found

    @cached_property
    def _names(self) -> dict[Socket, list[str]]:
        found: dict[Socket, list[str]] = {}
        for name, targets in self.inputs.items():
            for target in dict.fromkeys(targets):
                found.setdefault(target, []).append(name)
        return found

    def senders(self, receiver: Socket) -> list[Connection]:
        """Give the connections that end at an input."""
        return self._edges.get(receiver, [])

    def input_names(self, receiver: Socket) -> list[str]:
        """Give the names of the declared inputs of the pipeline that go to an input of a component."""
        return self._names.get(receiver, [])

    def feeds(self, receiver: Socket) -> int:
        """Count how many connections and declared inputs feed an input."""
        return len(self.senders(receiver)) + len(self.input_names(receiver))

    def input_place(self, name: str, receiver: Socket) -> Place:
        """Tell where a declared input names a component's input."""
        return ("inputs", name, self.inputs[name].index(receiver))


def as_socket(text: str) -> Socket:
    """Read `component.socket`; a socket's own name may have dots, as a file type has."""
    component, _, socket = text.partition(".")
    return component, socket


def nodes(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Walk through all values below a value; what stands behind an anchor is met at each place that uses it."""
    yield place, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from nodes(inner, (*place, key))
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from nodes(inner, (*place, position))


def inner_components(component: Component) -> Iterator[Component]:
    """Find what a component is built with: everything among its parameters that has a class for a type."""
    for place, value in nodes(dict(component.parameters), (*component.place, "init_parameters")):
        if isinstance(value, dict) and is_class_path(value.get("type")):
            name = ".".join(str(step) for step in place[1:] if step != "init_parameters")
            parameters = value.get("init_parameters")
            yield Component(name, value["type"], parameters if isinstance(parameters, dict) else {}, place)


def is_class_path(value: Any) -> bool:
    """Tell whether Haystack would take a `type` for a class and import it."""
    return isinstance(value, str) and "." in value
