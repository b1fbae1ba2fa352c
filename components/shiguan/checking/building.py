"""Builds a pipeline whose file has passed the rules for text, without a network and without writing, to look at it."""

import inspect
import logging
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from functools import cache, cached_property
from importlib import import_module
from typing import Any

import networkx as nx
from haystack import Pipeline, component
from haystack.core.component.types import InputSocket, OutputSocket
from haystack.core.errors import PipelineConnectError
from haystack.core.serialization import component_from_dict

from shiguan.checking.definition import Component, Definition, Feed, Socket, listed, names_store, written
from shiguan.checking.parameters import names_code, takes_only_code
from shiguan.checking.reading import Finding, Place, flaw, shortened
from shiguan.errors import ConfigurationError

HAYSTACK_ROLES = {
    "haystack.components.writers.document_writer.DocumentWriter": "writes",
    "haystack.components.joiners.branch.BranchJoiner": "joins",
    "haystack.components.routers.file_type_router.FileTypeRouter": "sorts",
}
"""What Haystack's own components do with documents, states and files, which cannot say it themselves."""

HAYSTACK_READERS_INSIDE = {
    "haystack.components.retrievers.text_embedding_retriever.TextEmbeddingRetriever": ("retriever",),
    "haystack.components.retrievers.multi_retriever.MultiRetriever": ("retrievers",),
}
"""Those that hand their `filters` on, and the parameters of those to whom; ours say it in `tenant_readers`."""


class BuiltPipeline:
    """
    The pipeline that Haystack made of a file: its sockets, their types, and the graph of its components.

    What cannot be built here, for want of a package or a key, is stood for by what its class says of itself.
    """

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self.findings: list[Finding] = []
        self.notes: list[str] = []
        self.classes: dict[str, type | None] = {}
        self.absent: dict[str, str] = {}
        self.stand_ins: set[str] = set()
        instances = {one.name: self._built(one) for one in definition.components.values()}
        # What stands in for a component gives anything, which Haystack lets fit nothing.
        self.pipeline = Pipeline(connection_type_validation=not self.stand_ins)
        for name, instance in instances.items():
            try:
                self.pipeline.add_component(name, instance)
            except ValueError as error:
                place = ("components", name)
                self.findings.append(flaw(place, f"{error}.", "Expected a name of its own.", "Give it another name."))
        self.unfit = {edge.place: why for edge in definition.connections if (why := self._connect(edge)) is not None}
        self.graph: nx.DiGraph[str] = nx.DiGraph(self.pipeline.graph)

    def inputs(self, name: str) -> dict[str, InputSocket]:
        """Give the inputs of a component; none if there is no such component."""
        found: dict[str, InputSocket] = self.pipeline.graph.nodes.get(name, {}).get("input_sockets", {})
        return found

    def outputs(self, name: str) -> dict[str, OutputSocket]:
        """Give the outputs of a component; none if there is no such component."""
        found: dict[str, OutputSocket] = self.pipeline.graph.nodes.get(name, {}).get("output_sockets", {})
        return found

    def greedy(self, name: str) -> list[str]:
        """Name the inputs that make a component run with each value that comes, as a `BranchJoiner` does."""
        return [key for key, socket in self.inputs(name).items() if socket.is_greedy]

    def role(self, part: Component) -> str:
        """Tell what a component does about the tenant: nothing, if its class says nothing."""
        return getattr(self.classes[part.type], "tenant_role", "") or HAYSTACK_ROLES.get(part.type, "")

    def readers_inside(self, part: Component) -> tuple[str, ...]:
        """Name the parameters of a component whose components get its filters."""
        known = HAYSTACK_READERS_INSIDE.get(part.type, ())
        return getattr(self.classes[part.type], "tenant_readers", known)

    def may_hold_a_store(self, part: Component) -> bool:
        """Tell whether a class takes a store, or is a retriever by its package: some open a database of their own."""
        return ".retrievers." in part.type or any(map(names_store, self._arguments(part, "__init__")))

    def takes_filters(self, part: Component) -> bool:
        """Tell whether a component's `run` takes `filters`; what is not installed is believed to."""
        return self.classes[part.type] is None or "filters" in self._arguments(part, "run")

    @cached_property
    def loops(self) -> list[set[str]]:
        """Find the names of components that can reach one another."""
        return sorted((loop for loop in nx.strongly_connected_components(self.graph) if len(loop) > 1), key=min)

    def _built(self, whole: Component) -> Any:
        parts = [whole, *whole.inner]
        for part in parts:
            if part.type not in self.classes:
                self.classes[part.type] = self._class_of(part)
        code = [finding for part in parts for finding in _code(part, self._arguments(part, "__init__"))]
        problem = next((self.absent[part.type] for part in parts if part.type in self.absent), "")
        if not code and all(self.classes[part.type] for part in parts):
            try:
                if whole.type not in component.registry:
                    raise ConfigurationError(f"`{whole.type}` is no component")
                with _harmless():
                    spec = {"type": whole.type, "init_parameters": deepcopy(dict(whole.parameters))}
                    return component_from_dict(component.registry[whole.type], spec, whole.name)
            except Exception as error:  # whatever an __init__ raises is about this file, or about this machine
                problem = shortened(str(error).partition("\n")[0].rstrip(". "), 300)
                here = isinstance(error, ImportError | OSError) or "environment variable" in problem
                if not (here or "shiguan[" in problem):
                    text = f"`{whole.name}` cannot be built: {problem}."
                    known = ", ".join(list(self._arguments(whole, "__init__"))[1:]) or "no parameters at all"
                    code = [flaw(whole.place, text, f"Expected {shortened(known, 300)}.", "Correct it.")]
        self.findings += code
        if problem and not code:
            self.notes.append(f"`{whole.name}` was not built, so its parameters and types were not checked: {problem}.")
        self.stand_ins.add(whole.name)
        return _StandIn(self._arguments(whole, "run"), self.definition, whole.name)

    def _class_of(self, part: Component) -> type | None:
        """Import a class that is on the list; None where it does not exist, or is not installed here."""
        path, _, name = part.type.rpartition(".")
        missing = ""
        if all(step.isidentifier() and not step.startswith("__") for step in part.type.split(".")):
            try:
                found = getattr(import_module(path), name, None)
            except (ImportError, ConfigurationError) as error:
                missing, why = getattr(error, "name", None) or "?", shortened(str(error).rstrip("."), 200)
                self.absent[part.type] = f"`{shortened(name)}` is not installed here ({why})"
            else:
                if isinstance(found, type) and found.__module__ == path:
                    return found
        ours = path.partition(".")[0] in ("haystack", "shiguan")
        if not missing or (ours and f"{path}.".startswith(f"{missing}.")):
            self.absent.pop(part.type, None)
            problem = f"There is no class `{shortened(part.type, 160)}`."
            expected = "Expected the module in which the class is written, and its name."
            self.findings.append(Finding((*part.place, "type"), problem, expected, "Correct the path."))
        return None

    def _arguments(self, part: Component, method: str) -> dict[str, inspect.Parameter]:
        known = getattr(self.classes[part.type], method, None)
        return dict(inspect.signature(known).parameters) if known is not None and self.classes[part.type] else {}

    def _connect(self, edge: Feed) -> str | None:
        try:
            self.pipeline.connect(written(edge.sender), written(edge.receiver))
        except (PipelineConnectError, ValueError) as error:
            return str(error).partition("\n")[0].replace("'", "`")
        return None


@component
class _StandIn:
    """Has the sockets that a class says of itself, or those that the file connects where there is no class."""

    def __init__(self, said: dict[str, inspect.Parameter], definition: Definition, name: str) -> None:
        for key, parameter in list(said.items())[1:]:
            if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                default = {} if parameter.default is parameter.empty else {"default": parameter.default}
                type_ = Any if isinstance(parameter.annotation, str) else parameter.annotation
                component.set_input_type(self, key, type_, **default)
        if not said or any(parameter.kind is parameter.VAR_KEYWORD for parameter in said.values()):
            for _, receiver, _ in [*definition.connections, *definition.declared]:
                if receiver[0] == name and receiver[1] not in said:
                    component.set_input_type(self, receiver[1], Any)
        sent = [edge.sender[1] for edge in definition.connections if edge.sender[0] == name]
        sent += [socket for (owner, socket), _ in definition.shown if owner == name]
        component.set_output_types(self, **dict.fromkeys(sent, Any))

    def run(self, **kwargs: Any) -> dict[str, Any]:
        raise NotImplementedError


def _code(part: Component, known: dict[str, inspect.Parameter]) -> list[Finding]:
    return [
        names_code((*part.place, "init_parameters", name), name, value)
        for name, value in part.parameters.items()
        if name in known and isinstance(value, str) and takes_only_code(name, known[name].annotation)
    ]


_building: ContextVar[bool] = ContextVar("building", default=False)
_REFUSED_EVENTS = ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "socket.bind",
                   "subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.mkdir", "os.remove",
                   "os.rename", "os.rmdir", "os.truncate", "sqlite3.connect")  # fmt: skip
_WRITES = 0o1103  # O_WRONLY, O_RDWR, O_CREAT and O_TRUNC


def _refuse_work(event: str, arguments: tuple[Any, ...]) -> None:
    if not _building.get():
        return
    opens = event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITES
    if event.startswith(_REFUSED_EVENTS) or (opens and "__pycache__" not in str(arguments[0])):
        raise OSError(f"it asks for more than its parameters while it is built (`{event}`)")


@cache
def _watch() -> None:
    sys.addaudithook(_refuse_work)  # it stays, and looks at nothing while nothing is built


@contextmanager
def _harmless() -> Iterator[None]:
    """Let nothing reach the network, start a process or write a file meanwhile; Python's own audit events tell."""
    _watch()
    # What Haystack has to say it says when the pipeline is built to be run.
    logger = logging.getLogger("haystack")
    token, level = _building.set(True), logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        _building.reset(token)
        logger.setLevel(level)


def check_building(built: BuiltPipeline) -> Iterator[Finding]:
    """Find classes that do not exist, and components that cannot be made with their parameters."""
    yield from built.findings


def check_connections(built: BuiltPipeline) -> Iterator[Finding]:
    """Find connections that cannot be made, and declared inputs and outputs that lead nowhere."""
    seen: set[tuple[Socket, Socket]] = set()
    for edge in built.definition.connections:
        missing = [
            *_missing(built, edge.sender, (*edge.place, "sender"), "output"),
            *_missing(built, edge.receiver, (*edge.place, "receiver"), "input"),
        ]
        yield from missing
        if not missing and edge.place in built.unfit:
            yield _unfit(built, edge, built.unfit[edge.place])
        if (edge.sender, edge.receiver) in seen:
            problem = f"The connection to `{written(edge.receiver)}` stands twice."
            yield flaw(edge.place, problem, "Expected each connection once.", "Remove one of them.")
        seen.add((edge.sender, edge.receiver))
    for _, target, place in built.definition.declared:
        yield from _missing(built, target, place, "input")
    for target, place in built.definition.shown:
        yield from _missing(built, target, place, "output")


def _unfit(built: BuiltPipeline, edge: Feed, why: str) -> Finding:
    types = (built.outputs(edge.sender[0])[edge.sender[1]].type, built.inputs(edge.receiver[0])[edge.receiver[1]].type)
    if "do not match" in why:
        given, wanted = (re.sub(r"<class '(.*)'>", r"\1", str(type_)).replace("typing.", "") for type_ in types)
        why = f"`{written(edge.sender)}` gives `{given}` and `{written(edge.receiver)}` takes `{wanted}`"
    expected = "Expected sockets that fit; several values meet in a joiner, and a loop in a `BranchJoiner`."
    next_step = "Connect another socket, or put a component between them."
    return flaw(edge.place, f"{shortened(why.rstrip('.'), 400)}.", expected, next_step)


def _missing(built: BuiltPipeline, socket: Socket, place: Place, kind: str) -> Iterator[Finding]:
    name, known = socket[0], built.inputs(socket[0]) if kind == "input" else built.outputs(socket[0])
    if name not in built.definition.components:
        expected = f"Expected one of {shortened(', '.join(built.definition.components), 300)}."
        yield flaw(place, f"There is no component `{name}`.", expected, "Correct the name, or remove this line.")
    elif socket[1] not in known:
        expected = f"Expected one of its {kind}s: {shortened(', '.join(known), 300) or 'it has none'}."
        yield flaw(place, f"`{name}` has no {kind} `{shortened(socket[1])}`.", expected, "Correct the name.")


def _may_be_missing(definition: Definition, socket: Socket) -> bool:
    always = {"query", "tenant_id"} & definition.input_names(socket).keys()
    return definition.answers and not always and not definition.senders(socket)


def check_starvation(built: BuiltPipeline) -> Iterator[Finding]:
    """Find inputs that nothing feeds, and loops that are fed from outside past their entrance."""
    for part in built.definition.components.values():
        for name, socket in built.inputs(part.name).items():
            if socket.is_mandatory and not built.definition.count_feeds((part.name, name)):
                yield flaw(
                    part.place,
                    f"Nothing feeds `{part.name}.{name}`, so `{part.name}` never runs.",
                    "Expected a connection or a declared input.",
                    "Connect it, or remove the component.",
                )
            elif socket.is_mandatory and _may_be_missing(built.definition, (part.name, name)):
                given = ", ".join(f"`{one}`" for one in built.definition.input_names((part.name, name)))
                yield flaw(
                    part.place,
                    f"`{part.name}.{name}` must be given, and {given} may be left out of a question.",
                    "Expected a connection, `query` or `tenant_id`: nothing else comes with every question.",
                    "Feed it from one of these, or use a component for which it is optional.",
                )
    for loop in built.loops:
        if not any(built.greedy(name) for name in loop):
            yield flaw(
                ("connections",),
                f"The components {listed(loop)} wait for one another.",
                "Expected a loop that is entered through a `BranchJoiner`.",
                "Remove a connection, or add the joiner.",
            )
        for edge in built.definition.connections:
            into, key = edge.receiver
            if edge.sender[0] not in loop and into in loop and key not in built.greedy(into):
                yield Finding(
                    edge.place,
                    f"`{written(edge.sender)}` stands outside the loop and feeds `{written(edge.receiver)}` inside it: "
                    "it delivers once, and from the second round on the receiver does not run, or runs without it.",
                    "Expected everything inside a loop to come from inside.",
                    "Carry the value through the loop: name it in `carry` of `AttemptStarter` and `AttemptReader`.",
                )
