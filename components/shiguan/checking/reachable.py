"""Checks that no question can set a parameter or open a file."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from shiguan.checking.definition import Component, Socket, words_of, written
from shiguan.checking.reading import Finding

if TYPE_CHECKING:
    from shiguan.checking.building import BuiltPipeline

_FILES = re.compile(r"sources|(file_?)?paths?|.*_paths?")
_PARAMETERS = re.compile(
    r"(.*_)?(urls?|hosts?|headers|template)|(user|system)_prompt|(?!retriever_kwargs).*_kwargs|api_key|model|tools|toolset"
    r"|streaming_callback|index|policy"
)
"""Inputs that no run may set; `retriever_kwargs` holds filters, which are checked elsewhere."""


def check_reachable_parameters(built: "BuiltPipeline") -> Iterator[Finding]:
    """Find inputs that open files or set parameters, and that anything but the ingest can reach."""
    components = built.definition.components
    # Only a file that searches or answers has callers; one that ingests has files.
    asked = built.definition.answers or any(built.role(component) == "filters" for component in components.values())
    for component in components.values():
        if asked and any(_takes_files(built, component, name) for name in built.inputs(component.name)):
            problem = (
                f"`{component.name}` opens files in a pipeline that answers questions: a text that reaches it would"
            )
            yield Finding(component.place, f"{problem} be taken for a path.")
    for origin, receiver, place in [*built.definition.connections, *built.definition.declared]:
        target = components.get(receiver[0])
        if target is None:
            continue
        if _PARAMETERS.fullmatch(receiver[1]):
            yield Finding(place, f"`{written(origin)}` sets `{written(receiver)}` while the pipeline runs.")
        elif _takes_files(built, target, receiver[1]) and not _is_source(built, origin):
            yield Finding(place, f"`{written(origin)}` decides which files `{target.name}` opens.")


def _takes_files(built: "BuiltPipeline", component: Component, name: str) -> bool:
    known = built.inputs(component.name).get(name)
    words = words_of(known.type) if known is not None else set()
    if words == {"Any"} and component.name in built.stand_ins:  # its type is unknown
        return bool(_FILES.fullmatch(name))
    return bool(words & {"Path", "PathLike"}) or (bool(_FILES.fullmatch(name)) and "str" in words)


def _is_source(built: "BuiltPipeline", origin: Socket) -> bool:
    """Return whether it is the input `sources`, or the output of a component whose input is checked the same way."""
    if len(origin) == 1:
        return origin == ("sources",)
    sender = built.definition.components.get(origin[0])
    role = built.role(sender) if sender else ""
    return role == "sorts" or (role == "inspects" and origin[1] == "sources")
