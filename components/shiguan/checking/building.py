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
from importlib import import_module
from typing import Any

import networkx as nx
from haystack import Pipeline, component
from haystack.core.component.types import InputSocket, OutputSocket
from haystack.core.errors import PipelineConnectError
from haystack.core.serialization import component_from_dict

from shiguan.checking.definition import Component, Connection, Definition, Socket, written
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
        self.stand_ins: set[str] = set()
        instances = {one.name: self._built(one) for one in definition.components.values()}
        # What stands in for a component gives anything, which Haystack lets fit nothing.
        self.pipeline = Pipeline(connection_type_validation=not self.stand_ins)
        for name, instance in instances.items():
            self.pipeline.add_component(name, instance)
        self.unfit = [(edge, why) for edge in definition.connections if (why := self._connect(edge)) is not None]
        self.graph: nx.DiGraph[str] = nx.DiGraph(self.pipeline.graph)

    def inputs(self, name: str) -> dict[str, InputSocket]:
        """Give the inputs of a component; none if there is no such component."""
        found: dict[str, InputSocket] = self.pipeline.graph.nodes.get(name, {}).get("input_sockets", {})
        return found

    def outputs(self, name: str) -> dict[str, OutputSocket]:
        """Give the outputs of a component; none if there is no such component."""
        found: dict[str, OutputSocket] = self.pipeline.graph.nodes.get(name, {}).get("output_sockets", {})
        return found

    def role(self, part: Component) -> str:
        """Tell what a component does about the tenant: nothing, if its class says nothing."""
        return getattr(self.classes[part.type], "tenant_role", "") or HAYSTACK_ROLES.get(part.type, "")

    def readers_inside(self, part: Component) -> tuple[str, ...]:
        """Name the parameters of a component whose components get its filters."""
        known = HAYSTACK_READERS_INSIDE.get(part.type, ())
        return getattr(self.classes[part.type], "tenant_readers", known)

    def parameters(self, part: Component) -> dict[str, inspect.Parameter]:
        """Give what a component is built with, `self` first; nothing where its class is not there."""
        return _arguments(self.classes[part.type], "__init__")

    def takes_filters(self, part: Component) -> bool:
        """Tell whether a component's `run` takes `filters`; what is not installed is believed to."""
        cls = self.classes[part.type]
        return cls is None or "filters" in _arguments(cls, "run")

    def loops(self) -> list[set[str]]:
        """Find the names of components that can reach one another."""
        return sorted((loop for loop in nx.strongly_connected_components(self.graph) if len(loop) > 1), key=min)

    def _built(self, whole: Component) -> Any:
        parts = [whole, *whole.inner]
        before = len(self.findings)
        absent = [part for part in parts if self._find(part) is None]
        for part in parts:
            self.findings += _wrong_parameters(part, self.classes[part.type])
        why = f"`{absent[0].type}` is not installed here" if absent and len(self.findings) == before else ""
        if len(self.findings) == before and not absent:
            spec = {"type": whole.type, "init_parameters": deepcopy(dict(whole.parameters))}
            try:
                with _harmless():
                    return component_from_dict(self.classes[whole.type], spec, whole.name)
            except Exception as error:  # whatever an __init__ raises is about this file, or about this machine
                why = shortened(str(error).partition("\n")[0].rstrip(". "), 300)
                if not (isinstance(error, ImportError | OSError) or "environment variable" in why or "shiguan[" in why):
                    self.findings.append(_cannot_be_built(whole, error))
                    why = ""
        if why:
            self.notes.append(f"`{whole.name}` was not built, so that parameters and types were not checked: {why}.")
        self.stand_ins.add(whole.name)
        return _StandIn(self.classes[whole.type], self.definition, whole.name)

    def _find(self, part: Component) -> type | None:
        if part.type not in self.classes:
            self.classes[part.type], known = _find_class(part.type)
            if not known:
                self.findings.append(
                    Finding(
                        (*part.place, "type"),
                        f"There is no class `{shortened(part.type, 160)}`.",
                        "Expected the module in which the class is written, and its name.",
                        "Correct the path.",
                    )
                )
        return self.classes[part.type]

    def _connect(self, edge: Connection) -> str | None:
        try:
            self.pipeline.connect(written(edge.sender), written(edge.receiver))
        except (PipelineConnectError, ValueError) as error:
            return str(error).partition("\n")[0].replace("'", "`")
        return None


@component
class _StandIn:
    """Has the sockets that a class says of itself, or those that the file connects where there is no class."""

    def __init__(self, cls: type | None, definition: Definition, name: str) -> None:
        said = _arguments(cls, "run")
        for key, parameter in list(said.items())[1:]:
            if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                default = {} if parameter.default is parameter.empty else {"default": parameter.default}
                type_ = Any if isinstance(parameter.annotation, str) else parameter.annotation
                component.set_input_type(self, key, type_, **default)
        if not said or any(parameter.kind is parameter.VAR_KEYWORD for parameter in said.values()):
            for _, receiver, _ in definition.feeds:
                if receiver[0] == name and receiver[1] not in said:
                    component.set_input_type(self, receiver[1], Any)
        sent = [edge.sender[1] for edge in definition.connections if edge.sender[0] == name]
        for section in ("outputs", "explain"):
            targets = (definition.file.content.get(section) or {}).values()
            sent += [target.partition(".")[2] for target in targets if target.partition(".")[0] == name]
        component.set_output_types(self, **dict.fromkeys(sent, Any))

    def run(self, **kwargs: Any) -> dict[str, Any]:
        raise NotImplementedError


def _find_class(type_: str) -> tuple[type | None, bool]:
    """Import a class that is on the list; None where it is not installed, and whether there may be such a class."""
    path, _, name = type_.rpartition(".")
    if not all(part.isidentifier() and not part.startswith("__") for part in type_.split(".")):
        return None, False
    try:
        found = getattr(import_module(path), name, None)
    except (ImportError, ConfigurationError) as error:
        missing = getattr(error, "name", None) or ""
        ours = path.partition(".")[0] in ("haystack", "shiguan") and f"{path}.".startswith(f"{missing}.")
        return None, not (ours and missing)
    written_there = isinstance(found, type) and found.__module__ == path
    return (found, True) if written_there else (None, False)


def _wrong_parameters(part: Component, cls: type | None) -> Iterator[Finding]:
    known = _arguments(cls, "__init__")
    is_open = any(one.kind is one.VAR_KEYWORD for one in known.values())
    for name, value in part.parameters.items():
        place = (*part.place, "init_parameters", name)
        if name not in known and known and not is_open:
            yield flaw(
                place,
                f"`{part.type.rpartition('.')[2]}` has no parameter `{shortened(name)}`.",
                f"Expected {', '.join(list(known)[1:]) or 'no parameters at all'}.",
                "Correct the name, or remove it.",
            )
        elif name in known and isinstance(value, str) and takes_only_code(name, known[name].annotation):
            yield names_code(place, name, value)


def _arguments(cls: type | None, method: str) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(getattr(cls, method)).parameters) if hasattr(cls, method) and cls else {}


def _cannot_be_built(whole: Component, error: Exception) -> Finding:
    text = shortened(str(error).partition("\n")[0].rstrip(". "), 400)
    return flaw(
        whole.place,
        f"`{whole.name}` cannot be built: {text}.",
        f"Expected parameters with which `{whole.type.rpartition('.')[2]}` can be made.",
        "Correct them.",
    )


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


@contextmanager
def _harmless() -> Iterator[None]:
    """Let nothing reach the network, start a process or write a file meanwhile; Python's own audit events tell."""
    if _refuse_work not in _hooks:
        sys.addaudithook(_refuse_work)  # it stays, and looks at nothing while nothing is built
        _hooks.append(_refuse_work)
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


_hooks: list[Any] = []


def check_building(built: BuiltPipeline) -> Iterator[Finding]:
    """Find classes that do not exist, and components that cannot be made with their parameters."""
    yield from built.findings


def check_connections(built: BuiltPipeline) -> Iterator[Finding]:
    """Find connections that cannot be made, and declared inputs and outputs that lead nowhere."""
    unfit = {id(edge): why for edge, why in built.unfit}
    seen: set[tuple[Socket, Socket]] = set()
    for edge in built.definition.connections:
        missing = [
            *_missing(built, edge.sender, (*edge.place, "sender"), "output"),
            *_missing(built, edge.receiver, (*edge.place, "receiver"), "input"),
        ]
        yield from missing
        if not missing and id(edge) in unfit:
            yield _unfit(built, edge, unfit[id(edge)])
        if (edge.sender, edge.receiver) in seen:
            yield flaw(
                edge.place,
                f"The connection to `{written(edge.receiver)}` stands twice.",
                "Expected each connection once.",
                "Remove one of them.",
            )
        seen.add((edge.sender, edge.receiver))
    for origin, target, place in built.definition.feeds:
        if len(origin) == 1:
            yield from _missing(built, target, place, "input")
    for section in ("outputs", "explain"):
        for name, text in (built.definition.file.content.get(section) or {}).items():
            component_, _, socket = text.partition(".")
            yield from _missing(built, (component_, socket), (section, name), "output")


def _unfit(built: BuiltPipeline, edge: Connection, why: str) -> Finding:
    given = built.outputs(edge.sender[0])[edge.sender[1]].type
    wanted = built.inputs(edge.receiver[0])[edge.receiver[1]].type
    if "do not match" in why:
        why = (
            f"`{written(edge.sender)}` gives `{_shown(given)}` and `{written(edge.receiver)}` takes `{_shown(wanted)}`"
        )
    return flaw(
        edge.place,
        f"{shortened(why.rstrip('.'), 300)}.",
        "Expected two components whose sockets fit; several values meet in a joiner, and a loop in a `BranchJoiner`.",
        "Connect another socket, or put a component between them.",
    )


def _shown(type_: Any) -> str:
    return shortened(re.sub(r"<class '(.*)'>", r"\1", str(type_)).replace("typing.", ""))


def _missing(built: BuiltPipeline, socket: Socket, place: Place, kind: str) -> Iterator[Finding]:
    if socket[0] not in built.definition.components:
        yield flaw(
            place,
            f"There is no component `{shortened(socket[0])}`.",
            f"Expected one of {shortened(', '.join(built.definition.components), 300)}.",
            "Correct the name, or remove this line.",
        )
        return
    known = built.inputs(socket[0]) if kind == "input" else built.outputs(socket[0])
    if socket[1] not in known:
        yield flaw(
            place,
            f"`{socket[0]}` has no {kind} `{shortened(socket[1])}`.",
            f"Expected one of its {kind}s: {shortened(', '.join(known), 300) or 'it has none'}.",
            "Correct the name.",
        )
