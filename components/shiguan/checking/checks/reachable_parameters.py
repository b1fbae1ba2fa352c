"""What a question or a model's reply can reach is text, and never becomes a path, an address or a parameter."""

import re
from collections.abc import Iterator

from shiguan.checking.definition import Component, Definition, Socket
from shiguan.checking.finding import Finding, Place
from shiguan.checking.sockets import sockets_of

_FILES = re.compile(r"sources|(file_?)?paths?|.*_paths?")
_PARAMETERS = re.compile(
    r"(.*_)?(urls?|hosts?|headers)|.*_kwargs|api_key|model|tools|toolset|streaming_callback|index|policy"
)
_PATH = re.compile(r"\b(Path|PathLike)\b")
_FILE_ROUTER = "haystack.components.routers.file_type_router.FileTypeRouter"
_ADAPTER = "haystack.components.converters.output_adapter.OutputAdapter"


def check_reachable_parameters(definition: Definition) -> Iterator[Finding]:
    """Find inputs that open files or change what a component is, and that anybody but the ingest can reach."""
    # Nothing else can read a library, so a file without one answers from nothing.
    answers = any(component.role == "filters" for component in definition.components.values())
    for component in definition.components.values():
        if answers and _opens_files(component):
            yield Finding(
                component.place,
                f"`{component.name}` opens files in a pipeline that answers questions: a text that reaches it would be "
                "taken for a path.",
                "Expected converters and file routers only where files are put into a library, as in `index.yml`.",
                "Convert the files with `shiguan ingest`, and take it out here.",
            )
    for receiver, place, origin in _feeds(definition):
        target = definition.components.get(receiver[0])
        if target is None:
            continue
        if _PARAMETERS.fullmatch(receiver[1]):
            yield Finding(
                place,
                f"`{'.'.join(origin)}` sets `{'.'.join(receiver)}` while the pipeline runs.",
                "Expected addresses and parameters in the file alone, where nothing asked or answered can reach them.",
                "Write the value below `init_parameters`, and remove this.",
            )
        elif _takes_files(target, receiver[1]) and not _is_source(definition, origin):
            yield Finding(
                place,
                f"`{'.'.join(origin)}` says which files `{target.name}` opens.",
                "Expected the declared input `sources`, directly or through `SourceInspector` and `FileTypeRouter`.",
                "Connect it so.",
            )


def _feeds(definition: Definition) -> Iterator[tuple[Socket, Place, tuple[str, ...]]]:
    for edge in definition.connections:
        yield edge.receiver, edge.place, edge.sender
    for name, targets in definition.inputs.items():
        for position, target in enumerate(targets):
            yield target, ("inputs", name, position), (name,)


def _opens_files(component: Component) -> bool:
    return any(_takes_files(component, name) for name in ("sources", *sockets_of(component).inputs))


def _takes_files(component: Component, name: str) -> bool:
    if component.type == _ADAPTER:
        return False
    sockets = sockets_of(component)
    known = sockets.inputs.get(name)
    if known is None:
        # A class that cannot be read, or one that is made of others.
        return ".converters." in component.type and sockets.open_inputs and bool(_FILES.fullmatch(name))
    return bool(_PATH.search(known.annotation)) or (bool(_FILES.fullmatch(name)) and "str" in known.annotation)


def _is_source(definition: Definition, origin: tuple[str, ...]) -> bool:
    """Whether it is the input `sources`, or what a component makes of it, whose own input is asked the same."""
    if len(origin) == 1:
        return origin == ("sources",)
    sender = definition.components.get(origin[0])
    if sender is None:
        return False
    return sender.type == _FILE_ROUTER or (sender.type.startswith("shiguan.ingest.") and origin[1] == "sources")
