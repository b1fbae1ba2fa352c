"""A pipeline file as components, connections and declared inputs, the way the rules look at it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from shiguan.checking.reading import PipelineFile, Place

Socket = tuple[str, ...]
"""A component's name and the name of one of its sockets; of a declared input its name alone."""


@dataclass(frozen=True, eq=False)
class Component:
    """One component of a pipeline, or one that stands inside another."""

    name: str
    type: str
    parameters: Mapping[str, Any]
    place: Place

    @cached_property
    def inner(self) -> "list[Component]":
        """What it is built with: everything among its parameters that has a class for a type."""
        found = []
        for place, value in self.values():
            # Haystack takes a `type` with a dot for a class and imports it.
            if isinstance(value, dict) and isinstance(value.get("type"), str) and "." in value["type"]:
                name = ".".join(str(step) for step in place[1:] if step != "init_parameters")
                parameters = value.get("init_parameters")
                found.append(Component(name, value["type"], parameters if isinstance(parameters, dict) else {}, place))
        return found

    def values(self) -> "Iterator[tuple[Place, Any]]":
        """Walk through all values of its parameters; what stands behind an anchor is met at each place that uses it."""
        stack: list[tuple[Place, Any]] = [((*self.place, "init_parameters"), dict(self.parameters))]
        while stack:
            place, value = stack.pop()
            yield place, value
            below = value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ())
            stack += reversed([((*place, key), inner) for key, inner in below])


class Feed(NamedTuple):
    """What goes into a component: from an output of another, or from a declared input, which is a name alone."""

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
    def parts(self) -> list[Component]:
        """The components and all that stands inside of them."""
        return [part for component in self.components.values() for part in (component, *component.inner)]

    @cached_property
    def connections(self) -> list[Feed]:
        """All connections, in the order of the file."""
        edges = enumerate(self.file.content.get("connections") or [])
        return [Feed(as_socket(edge["sender"]), as_socket(edge["receiver"]), ("connections", i)) for i, edge in edges]

    @cached_property
    def declared(self) -> list[Feed]:
        """What a caller may pass, and where it goes."""
        return [
            Feed((name,), as_socket(target), (section, name, position))
            for section in ("inputs", "options")
            for name, targets in (self.file.content.get(section) or {}).items()
            for position, target in enumerate(targets)
        ]

    @cached_property
    def shown(self) -> list[tuple[Socket, Place]]:
        """What a caller gets, and where the file says so."""
        return [
            (as_socket(target), ("outputs", name)) for name, target in (self.file.content.get("outputs") or {}).items()
        ]

    @cached_property
    def answers(self) -> bool:
        """Whether it answers questions: it takes one, or gives answers."""
        taken, shown = {feed.sender[0] for feed in self.declared}, {place[1] for _, place in self.shown}
        return "query" in taken or "answers" in shown

    @cached_property
    def _feeds(self) -> dict[Socket, list[Feed]]:
        found: dict[Socket, list[Feed]] = {}
        for feed in [*self.connections, *self.declared]:
            found.setdefault(feed.receiver, []).append(feed)
        return found

    def senders(self, receiver: Socket) -> list[Feed]:
        """Give the connections that end at an input."""
        return [feed for feed in self._feeds.get(receiver, []) if len(feed.sender) > 1]

    def input_names(self, receiver: Socket) -> dict[str, Place]:
        """Give the declared inputs of the pipeline that go to an input of a component, and where they say so."""
        return {feed.sender[0]: feed.place for feed in self._feeds.get(receiver, []) if len(feed.sender) == 1}

    def count_feeds(self, receiver: Socket) -> int:
        """Count how many connections and declared inputs feed an input."""
        return len(self.senders(receiver)) + len(self.input_names(receiver))


def as_socket(text: str) -> Socket:
    """Read `component.socket`; a socket's own name may have dots, as a file type has."""
    component, _, socket = text.partition(".")
    return component, socket


def written(socket: Socket) -> str:
    """Write a socket as it stands in a file."""
    return ".".join(socket)


def listed(names: set[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def words_of(type_: Any) -> set[str]:
    """Give the names in a type, such as `list`, `Document` and `None`."""
    return set(re.findall(r"\w+", str(type_))) - {"class", "typing"}


def may_be(type_: Any, *names: str) -> bool:
    """Tell whether a type may stand for one of some classes: it names one, or is `Any`."""
    words = words_of(type_)
    return words == {"Any"} or bool(words & set(names))


def names_store(key: str | int) -> bool:
    """Tell whether a parameter is called as one that takes a document store."""
    return str(key) == "store" or str(key).endswith("_store")
