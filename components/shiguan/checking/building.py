"""Builds a pipeline whose text has passed, without network or writing, and checks its graph."""

import inspect
import logging
import re
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar, Token
from copy import deepcopy
from importlib import import_module
from typing import Any

import networkx as nx
from haystack import Pipeline, component
from haystack.core.component.types import InputSocket, OutputSocket
from haystack.core.errors import PipelineConnectError
from haystack.core.serialization import component_from_dict

from shiguan.checking.definition import (
    CONVERSATION,
    GRADER,
    WRITERS,
    Component,
    Definition,
    Feed,
    Socket,
    listed,
    words_of,
    written,
)
from shiguan.checking.parameters import IS_CODE, takes_only_code
from shiguan.checking.reading import Finding, Place, flaw, shortened
from shiguan.errors import ConfigurationError
from shiguan.haystack_compat import allow_types
from shiguan.limited_process import without_limits

HAYSTACK_ROLES = {
    "haystack.components.writers.document_writer.DocumentWriter": "writes",
    "haystack.components.routers.file_type_router.FileTypeRouter": "sorts",
}
"""The roles of Haystack's own components, which do not have the attribute `tenant_role`."""

# What comes with every question.
_ALWAYS = frozenset({"query", "tenant_id"})
Arguments = dict[str, inspect.Parameter]


class BuiltPipeline:
    """What Haystack builds of a file; what cannot be built here, for lack of a package or a key, has a stand-in."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self.findings: list[Finding] = []
        self.notes: list[str] = []
        self.classes: dict[str, type | None] = {}
        self.absent: dict[str, str] = {}
        self.stand_ins: set[str] = set()
        instances = {one.name: self._built(one) for one in definition.components.values()}
        # Outputs of stand-ins have the type `Any`, which Haystack connects to nothing.
        self.pipeline = Pipeline(connection_type_validation=not self.stand_ins)
        for name, instance in instances.items():
            try:
                self.pipeline.add_component(name, instance)
            except ValueError as error:  # a name that Haystack uses itself
                self.findings.append(flaw(("components", name), f"{error}."))
        self.unfit = {edge.place: why for edge in definition.connections if (why := self._connect(edge)) is not None}
        self.graph: nx.DiGraph[str] = nx.DiGraph(self.pipeline.graph)

    def inputs(self, name: str) -> dict[str, InputSocket]:
        """Return the inputs of a component; none if it does not exist."""
        found: dict[str, InputSocket] = self.pipeline.graph.nodes.get(name, {}).get("input_sockets", {})
        return found

    def outputs(self, name: str) -> dict[str, OutputSocket]:
        """Return the outputs of a component; none if it does not exist."""
        found: dict[str, OutputSocket] = self.pipeline.graph.nodes.get(name, {}).get("output_sockets", {})
        return found

    def greedy(self, name: str) -> list[str]:
        """List the inputs that make a component run with every value, as a `BranchJoiner` does."""
        return [key for key, socket in self.inputs(name).items() if socket.is_greedy]

    def role(self, part: Component) -> str:
        """Return what a component does about the tenant, such as `filters` or `writes`; empty for nothing."""
        return getattr(self.classes[part.type], "tenant_role", "") or HAYSTACK_ROLES.get(part.type, "")

    def takes_from_outside(self, name: str, socket: str) -> bool:
        """Return whether an input of a component in a loop may come from outside, which delivers only once."""
        part = self.definition.components[name]
        once = getattr(self.classes[part.type], "counts_once", ())
        return socket in self.greedy(name) or socket in once or self.role(part) == "loops"

    def takes(self, part: Component, name: str) -> bool:
        """Return whether a component's `run` takes an input; true if its class is not installed."""
        return self.classes[part.type] is None or name in self._arguments(part, "run")

    def _built(self, whole: Component) -> Any:
        parts = [whole, *whole.inner]
        for part in parts:
            if part.type not in self.classes:
                self.classes[part.type] = self._class_of(part)
        wrong = [
            Finding((*part.place, "init_parameters", name), f"`{shortened(name)}: {shortened(value)}` {IS_CODE}.")
            for part in parts
            for name, value in part.parameters.items()
            if isinstance(value, str) and takes_only_code(name, self._arguments(part, "__init__").get(name))
        ]
        problem = next((self.absent[part.type] for part in parts if part.type in self.absent), "")
        if not wrong and all(self.classes[part.type] for part in parts):
            try:
                if whole.type not in component.registry:
                    raise ConfigurationError(f"`{whole.type}` is not a component")
                spec = {"type": whole.type, "init_parameters": deepcopy(dict(whole.parameters))}
                allow_types(spec)
                with _harmless():
                    return component_from_dict(component.registry[whole.type], spec, whole.name)
            except MemoryError:
                raise
            except Exception as error:  # due to this file, or to this machine
                problem = shortened(str(error).partition("\n")[0].rstrip(". "), 300)
                here = isinstance(error, ImportError | OSError) or "environment variable" in problem
                if not (here or "needs the package" in problem):
                    taken = [
                        name for name in self._arguments(whole, "__init__") if name not in ("self", "args", "kwargs")
                    ]
                    known = f"Expected {shortened(', '.join(taken), 300) or 'no parameters at all'}."
                    wrong = [flaw(whole.place, f"`{whole.name}` cannot be built: {problem}.", known)]
        self.findings += wrong
        if problem and not wrong:
            self.notes.append(f"`{whole.name}` was not built, so its parameters and types were not checked: {problem}.")
        self.stand_ins.add(whole.name)
        return _StandIn(self._arguments(whole, "run"), self.definition, whole.name)

    def _class_of(self, part: Component) -> type | None:
        """Import an allowed class; None if it does not exist, or is not installed here."""
        path, _, name = part.type.rpartition(".")
        missing = ""
        if all(step.isidentifier() and not step.startswith("__") for step in part.type.split(".")):
            try:
                with without_limits():
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
            self.findings.append(Finding((*part.place, "type"), f"There is no class `{shortened(part.type, 160)}`."))
        return None

    def _arguments(self, part: Component, method: str) -> Arguments:
        known = getattr(self.classes[part.type], method, None)
        return dict(inspect.signature(known).parameters) if known is not None and self.classes[part.type] else {}

    def _connect(self, edge: Feed) -> str | None:
        try:
            self.pipeline.connect(written(edge.sender), written(edge.receiver))
        except (PipelineConnectError, ValueError) as error:
            return str(error).partition("\n")[0].replace("'", "`").rstrip(".")
        return None


@component
class _StandIn:
    """Has the sockets of a class or, without a class, those that the file connects."""

    def __init__(self, known: Arguments, definition: Definition, name: str) -> None:
        for key, parameter in list(known.items())[1:]:
            if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                default = {} if parameter.default is parameter.empty else {"default": parameter.default}
                type_ = Any if isinstance(parameter.annotation, str) else parameter.annotation
                component.set_input_type(self, key, type_, **default)
        if not known or any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values()):
            for _, receiver, _ in [*definition.connections, *definition.declared]:
                if receiver[0] == name and receiver[1] not in known:
                    component.set_input_type(self, receiver[1], Any)
        sent = [edge.sender[1] for edge in definition.connections if edge.sender[0] == name]
        sent += [socket for (owner, socket), _ in definition.shown if owner == name]
        component.set_output_types(self, **dict.fromkeys(sent, Any))

    def run(self, **kwargs: Any) -> dict[str, Any]:
        raise NotImplementedError


_building: ContextVar[bool] = ContextVar("building", default=False)
_REFUSED_EVENTS = ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "socket.bind",
                   "subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.mkdir", "os.remove",
                   "os.rename", "os.rmdir", "os.truncate", "sqlite3.connect")  # fmt: skip
_WRITES = 0o1103  # O_WRONLY, O_RDWR, O_CREAT and O_TRUNC


def _refuse_work(event: str, arguments: tuple[Any, ...], building: ContextVar[bool] = _building) -> None:
    if not building.get():  # an argument, since a module has lost its names when Python ends
        return
    opens = event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITES
    if event.startswith(_REFUSED_EVENTS) or (opens and "__pycache__" not in str(arguments[0])):
        raise OSError(f"it asks for more than its parameters while it is built (`{event}`)")


sys.addaudithook(_refuse_work)  # cannot be removed; does nothing while nothing is built


@contextmanager
def _harmless() -> Iterator[None]:
    """Refuse network, processes and writing files in the block, by Python's audit events."""
    token = _building.set(True)
    with _counting:
        if not _inside:
            _muting.enter_context(_muted())
        _inside.append(token)
    try:
        yield
    finally:
        _building.reset(token)
        with _counting:
            _inside.remove(token)
            if not _inside:
                _muting.close()


# Log and warnings are the process's: of checks in several threads the last one lets Haystack speak again.
_counting, _muting, _inside = threading.Lock(), ExitStack(), list[Token[bool]]()


@contextmanager
def _muted() -> Iterator[None]:
    """Keep Haystack quiet, which says the same when the pipeline is built to be run."""
    logger = logging.getLogger("haystack")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def check_building(built: BuiltPipeline) -> Iterator[Finding]:
    """Find classes that do not exist, and components that cannot be built with their parameters."""
    yield from built.findings


def check_connections(built: BuiltPipeline) -> Iterator[Finding]:
    """Find connections that cannot be made, and declared inputs and outputs that lead nowhere."""
    for edge in built.definition.connections:
        missing = [
            *_missing(built, edge.sender, edge.place, "output"),
            *_missing(built, edge.receiver, edge.place, "input"),
        ]
        yield from missing
        if not missing and edge.place in built.unfit:
            yield flaw(edge.place, f"{shortened(built.unfit[edge.place], 400)}.")
    for _, target, place in built.definition.declared:
        yield from _missing(built, target, place, "input")
    for target, place in built.definition.shown:
        yield from _missing(built, target, place, "output")


def _missing(built: BuiltPipeline, socket: Socket, place: Place, kind: str) -> Iterator[Finding]:
    name, known = socket[0], built.inputs(socket[0]) if kind == "input" else built.outputs(socket[0])
    if name not in built.definition.components:
        expected = f"Expected one of {shortened(', '.join(built.definition.components), 300)}."
        yield flaw(place, f"There is no component `{name}`.", expected)
    elif socket[1] not in known:
        expected = f"Expected one of its {kind}s: {shortened(', '.join(known), 300) or 'it has none'}."
        yield flaw(place, f"`{name}` has no {kind} `{shortened(socket[1])}`.", expected)


def check_names(built: BuiltPipeline) -> Iterator[Finding]:
    """Find parts of a mode that the engine would overlook, since it finds them by their names."""
    if "answers" not in (place[1] for _, place in built.definition.shown):
        return
    for part in built.definition.components.values():
        taken, given = built.inputs(part.name).keys(), built.outputs(part.name).keys()
        for wanted, fits, does in (
            (WRITERS, {"streaming_callback"} <= taken and "replies" in given, "writes the answer"),
            ((GRADER,), "replies" in taken & given, "may reject an answer"),
            ((CONVERSATION,), "conversation_store" in part.parameters, "reads conversations"),
        ):
            if fits and built.definition.components.keys().isdisjoint(wanted):
                step = f"Write `{wanted[0]}` for it, here and in the sections below."
                yield Finding(part.place, f"`{part.name}` {does} under another name.", "", step, unsafe=False)


def check_starvation(built: BuiltPipeline) -> Iterator[Finding]:
    """Find inputs that get no value, and loops that nothing enters or that are fed from outside past their entrance."""
    definition = built.definition
    for part in definition.components.values():
        for name, socket in built.inputs(part.name).items():
            if not socket.is_mandatory:
                continue
            given = definition.input_names((part.name, name))
            if not definition.is_fed((part.name, name)):
                yield flaw(part.place, f"Nothing is connected to `{part.name}.{name}`, so `{part.name}` never runs.")
            elif definition.answers and not definition.senders((part.name, name)) and not _ALWAYS & given.keys():
                left_out = ", ".join(f"`{option}`" for option in given)
                yield flaw(part.place, f"`{part.name}.{name}` is required, and a question may come without {left_out}.")
    # Components that can reach one another.
    loops = (loop for loop in nx.strongly_connected_components(built.graph) if len(loop) > 1)
    for loop in sorted(loops, key=min):
        if not any(built.greedy(name) for name in loop):
            yield flaw(("connections",), f"The components {listed(loop)} form a cycle that never starts.")
        for edge in definition.connections:
            into, key = edge.receiver
            if edge.sender[0] not in loop and into in loop and not built.takes_from_outside(into, key):
                sent = f"`{written(edge.sender)}` sends to `{written(edge.receiver)}` inside a loop"
                yield Finding(
                    edge.place, f"{sent}, once: in the second round `{into}` does not run, or runs without it."
                )


_FILES = re.compile(r"sources|(file_?)?paths?|.*_paths?")
_PARAMETERS = re.compile(
    r"(.*_)?(urls?|hosts?|headers|template)|(user|system)_prompt|(?!retriever_kwargs).*_kwargs|api_key|model|tools|toolset"
    r"|streaming_callback|index|policy"
)
"""Inputs that no run may set; `retriever_kwargs` holds filters, which are checked elsewhere."""


def check_reachable_parameters(built: BuiltPipeline) -> Iterator[Finding]:
    """Find inputs that open files or set parameters, and that anything but the ingest can reach."""
    components = built.definition.components
    # Only a file that searches or answers has callers; one that ingests has files.
    asked = built.definition.answers or any(built.role(part) == "filters" for part in components.values())
    for part in components.values():
        if asked and any(_takes_files(built, part, name) for name in built.inputs(part.name)):
            problem = f"`{part.name}` opens files in a pipeline that answers questions: a text that reaches it would"
            yield Finding(part.place, f"{problem} be taken for a path.")
    for origin, receiver, place in [*built.definition.connections, *built.definition.declared]:
        target = components.get(receiver[0])
        if target is None:
            continue
        if _PARAMETERS.fullmatch(receiver[1]):
            yield Finding(place, f"`{written(origin)}` sets `{written(receiver)}` while the pipeline runs.")
        elif _takes_files(built, target, receiver[1]) and not _is_source(built, origin):
            yield Finding(place, f"`{written(origin)}` decides which files `{target.name}` opens.")


def _takes_files(built: BuiltPipeline, part: Component, name: str) -> bool:
    known = built.inputs(part.name).get(name)
    words = words_of(known.type) if known is not None else set()
    if words == {"Any"} and part.name in built.stand_ins:  # its type is unknown
        return bool(_FILES.fullmatch(name))
    return bool(words & {"Path", "PathLike"}) or (bool(_FILES.fullmatch(name)) and "str" in words)


def _is_source(built: BuiltPipeline, origin: Socket) -> bool:
    """Return whether it is the input `sources`, or the output of a component whose input is checked the same way."""
    if len(origin) == 1:
        return origin == ("sources",)
    sender = built.definition.components.get(origin[0])
    role = built.role(sender) if sender else ""
    return role == "sorts" or (role == "inspects" and origin[1] == "sources")
