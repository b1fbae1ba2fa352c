"""A pipeline file as components, connections and declared inputs, for the rules."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from shiguan.checking.reading import PipelineFile, Place

WRITERS, GRADER, CONVERSATION = ("generator", "agent"), "hallucination_grader", "conversation"
PASSAGE_WRITER, VECTOR_WRITER = "passage_writer", "vector_writer"
"""
The names of the components that the engine looks for: what writes the answer (one of two), what may reject a draft of
it, what has the store of conversations, and in `index.yml` what has the stores of passages and makes their vectors.
"""

Socket = tuple[str, ...]
"""A component's name and the name of one of its sockets; of a declared input its name alone."""


@dataclass(frozen=True, eq=False)
class Component:
    """One component of a pipeline, or one inside another."""

    name: str
    type: str
    parameters: Mapping[str, Any]
    place: Place

    @property
    def inner(self) -> "list[Component]":
        """The components among its parameters: everything whose `type` is a class."""
        found = []
        for place, value in self.values():
            # Haystack imports any `type` with a dot as a class.
            if isinstance(value, dict) and isinstance(value.get("type"), str) and "." in value["type"]:
                name = ".".join(str(step) for step in place[1:] if step != "init_parameters")
                parameters = value.get("init_parameters")
                found.append(Component(name, value["type"], parameters if isinstance(parameters, dict) else {}, place))
        return found

    def values(self) -> "Iterator[tuple[Place, Any]]":
        """Walk through all values of its parameters; an anchored value comes up at each place that uses it."""
        stack: list[tuple[Place, Any]] = [((*self.place, "init_parameters"), dict(self.parameters))]
        while stack:
            place, value = stack.pop()
            yield place, value
            below = value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ())
            stack += reversed([((*place, key), inner) for key, inner in below])


class Feed(NamedTuple):
    """What an input receives: from an output of a component, or from a declared input, which is only a name."""

    sender: Socket
    receiver: Socket
    place: Place


class Definition:
    """A file of valid structure: its components (in `parts` with those inside), connections, inputs and outputs."""

    def __init__(self, file: PipelineFile, allowed_types: tuple[str, ...] = ()) -> None:
        self.file = file
        self.allowed_types = allowed_types
        content = file.content
        self.components = {
            name: Component(name, spec["type"], spec.get("init_parameters") or {}, ("components", name))
            for name, spec in content["components"].items()
        }
        self.parts = [part for whole in self.components.values() for part in (whole, *whole.inner)]
        self.connections = [
            Feed(as_socket(edge["sender"]), as_socket(edge["receiver"]), ("connections", at))
            for at, edge in enumerate(content.get("connections") or [])
        ]
        self.declared = [
            Feed((name,), as_socket(target), (section, name, position))
            for section in ("inputs", "options")
            for name, targets in (content.get(section) or {}).items()
            for position, target in enumerate(targets)
        ]
        outputs = content.get("outputs") or {}
        self.shown: list[tuple[Socket, Place]] = [(as_socket(outputs[name]), ("outputs", name)) for name in outputs]
        self.answers = "answers" in outputs or any(feed.sender == ("query",) for feed in self.declared)
        self._feeds: dict[Socket, list[Feed]] = {}
        for feed in [*self.connections, *self.declared]:
            self._feeds.setdefault(feed.receiver, []).append(feed)

    def senders(self, receiver: Socket) -> list[Feed]:
        """Return the connections that end at an input."""
        return [feed for feed in self._feeds.get(receiver, []) if len(feed.sender) > 1]

    def input_names(self, receiver: Socket) -> dict[str, Place]:
        """Return the declared inputs that go to an input of a component, and their places in the file."""
        return {feed.sender[0]: feed.place for feed in self._feeds.get(receiver, []) if len(feed.sender) == 1}

    def is_fed(self, receiver: Socket) -> bool:
        """Return whether a connection or a declared input goes to an input."""
        return receiver in self._feeds


def as_socket(text: str) -> Socket:
    """Split `component.socket`; the name of a socket may contain dots, as that of a file type does."""
    component, _, socket = text.partition(".")
    return component, socket


def written(socket: Socket) -> str:
    """Write a socket as in a file."""
    return ".".join(socket)


def listed(names: set[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def words_of(type_: Any) -> set[str]:
    """Return the names in a type, such as `list`, `Document` and `None`."""
    return set(re.findall(r"\w+", str(type_))) - {"class", "typing"}


def may_be(type_: Any, *names: str) -> bool:
    """Return whether a type may hold one of some classes: it names one, or is `Any`."""
    words = words_of(type_)
    return words == {"Any"} or bool(words & set(names))


def names_store(key: str | int) -> bool:
    """Return whether a parameter has the name of a document store."""
    return str(key) == "store" or str(key).endswith("_store")
