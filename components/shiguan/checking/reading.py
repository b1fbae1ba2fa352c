"""Reads a pipeline file as data: bounded, without tags, with the line of every value; and what a finding is."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

Place = tuple[str | int, ...]
"""The keys and list positions that lead to a value in a file."""


@dataclass(frozen=True)
class Finding:
    """Says where something is wrong, what it is, what was expected and what to do."""

    place: Place
    problem: str
    expected: str
    next_step: str
    check: str = ""
    line: int | None = None
    unsafe: bool = True

    @property
    def where(self) -> str:
        """The place as a person reads it, such as `components.retriever.type`; empty for the file as a whole."""
        return place_text(self.place)

    def __str__(self) -> str:
        line = f"line {self.line}" if self.line is not None else ""
        where = ", ".join(part for part in (line, self.where) if part)
        return " ".join(part for part in (where and f"{where}:", self.problem, self.expected, self.next_step) if part)

    def as_dict(self) -> dict[str, Any]:
        """Give the finding as plain data, for programs."""
        plain = asdict(self)
        del plain["place"]
        return {"check": plain.pop("check"), "line": plain.pop("line"), "where": self.where, **plain}


def flaw(place: Place, problem: str, expected: str, next_step: str, line: int | None = None) -> Finding:
    """Find something that is wrong and harms nobody."""
    return Finding(place, problem, expected, next_step, line=line, unsafe=False)


def place_text(place: Place) -> str:
    """Write a place as a person reads it."""
    text = ""
    for step in place:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += ("." if text else "") + shortened(step)
    return text


def shortened(value: object, most: int = 80) -> str:
    """Write a value from a file into a message, which a hostile file must not flood or colour."""
    text = "".join(letter if letter.isprintable() else "�" for letter in str(value)[: most + 1])
    return text if len(text) <= most else f"{text[: most - 1]}…"


MAX_BYTES = 256 * 1024
"""The longest pipeline file that is read; those that ship with Shiguan have under 10 KiB."""

MAX_EVENTS = 20_000
"""So many values, keys and brackets a file may have. Reading YAML is slow, and a hostile file is all brackets."""

MAX_DEPTH = 40
MAX_NODES = 20_000
"""So large a file may grow when its anchors are written out, as Haystack does when it copies a definition."""

# The same loader in C where PyYAML was built with it, which is everywhere but on odd machines.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PLAIN_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "map", "seq"))
_TUPLE = "tag:yaml.org,2002:python/tuple"
"""Haystack writes tuples so when it dumps a pipeline; they are read as lists."""

_TEXT_TAGS = frozenset({"tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"})


class UnreadableFile(Exception):  # noqa: N818 - it never leaves this package as an error
    """Carries the findings that end the reading of a file."""

    def __init__(self, *findings: Finding) -> None:
        self.findings = list(findings)
        super().__init__("; ".join(map(str, findings)))


@dataclass(frozen=True)
class PipelineFile:
    """A file that could be read."""

    name: str
    content: dict[str, Any]
    root: yaml.Node

    def line(self, place: Place) -> int | None:
        """Find the line on which a value stands."""
        node, found = self.root, None
        for step in place:
            inner = _below(node, step)
            if inner is None:
                break
            node = inner[1]
            # An aliased value stands elsewhere; its key tells where it is used.
            found = inner[0].start_mark.line + 1
        return found


def read_pipeline_file(path: Path, name: str) -> PipelineFile:
    """Read a file."""
    text = _text(path)
    try:
        _check_events(text)
        loader = _Loader(text)
        root = loader.get_single_node()
        if not isinstance(root, yaml.MappingNode):
            raise _no_pipeline("It is empty." if root is None else "It is no mapping of names.")
        if _expanded_size(root, {}) > MAX_NODES:
            raise _refused_file(
                f"The file grows beyond {MAX_NODES:,} nodes when its anchors are written out.",
                "Expected anchors that stand for one store or one model each.",
                "Remove anchors that contain other anchors over and over.",
            )
        wrong_keys = list(_wrong_keys(root))
        if wrong_keys:
            raise UnreadableFile(*wrong_keys)
        content = loader.construct_document(root)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _invalid(error.problem or error.context or "", mark.line + 1 if mark else None) from error
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        raise _invalid(str(error)) from error
    return PipelineFile(name, content, root)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise _refused_file(
            f"The file cannot be read: {error.strerror or error}.",
            "Expected the path of a YAML file.",
            "Check the path and its permissions.",
            unsafe=False,
        ) from error
    if len(data) > MAX_BYTES:
        raise _refused_file(
            f"The file has more than {MAX_BYTES:,} bytes.",
            "A pipeline file has a few thousand.",
            "Check that this is the file you mean.",
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refused_file(
            f"The file is not valid YAML: byte {error.start} is no UTF-8.",
            "Expected text in UTF-8.",
            "Save the file as UTF-8.",
            unsafe=False,
        ) from error


def _check_events(text: str) -> None:
    """Refuse tags and floods before any of it becomes an object; the parser itself works without recursion."""
    depth = documents = 0
    for count, event in enumerate(yaml.parse(text, Loader=_Loader), start=1):
        line = event.start_mark.line + 1 if event.start_mark else 0
        if count > MAX_EVENTS:
            raise _flood(f"more than {MAX_EVENTS:,} values and keys", line)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.DocumentStartEvent):
            documents += 1
        if depth > MAX_DEPTH:
            raise _flood(f"more than {MAX_DEPTH} levels", line)
        if documents > 1:
            raise _invalid("it holds several documents", line)
        tag = getattr(event, "tag", None)
        is_tuple = tag == _TUPLE and isinstance(event, yaml.SequenceStartEvent)
        if tag is not None and tag != "!" and tag not in _PLAIN_TAGS and not is_tuple:
            raise _refused_file(
                f"The file is not valid YAML for a pipeline: it has the tag `{shortened(tag)}`.",
                "Expected plain values: tags make objects out of text.",
                "Remove the tag.",
                line=line,
            )


def _refused_file(
    problem: str, expected: str, next_step: str, *, line: int | None = None, unsafe: bool = True
) -> UnreadableFile:
    return UnreadableFile(Finding((), problem, expected, next_step, line=line, unsafe=unsafe))


def _flood(what: str, line: int) -> UnreadableFile:
    expected = "A pipeline file has a few hundred values, a few levels deep."
    return _refused_file(f"The file has {what}.", expected, "Check that this is the file you mean.", line=line)


def _invalid(problem: str, line: int | None = None) -> UnreadableFile:
    text = f"The file is not valid YAML: {shortened(problem, 200)}."
    step = "Correct the file at this place." if line else "Correct the file."
    return _refused_file(text, "Expected one YAML document.", step, line=line, unsafe=False)


def _no_pipeline(problem: str) -> UnreadableFile:
    expected = "Expected `components`, `connections`, `inputs` and `outputs`."
    return _refused_file(
        f"The file is no pipeline. {problem}", expected, "Start from a file of pipelines/.", unsafe=False
    )


def _children(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield key
            yield value
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value


def _expanded_size(node: yaml.Node, sizes: dict[int, int]) -> int:
    """Count nodes as if every anchor were written out; each anchor is visited once."""
    if id(node) not in sizes:
        sizes[id(node)] = MAX_NODES  # an anchor that contains itself has no end
        sizes[id(node)] = 1 + sum(_expanded_size(child, sizes) for child in _children(node))
    return sizes[id(node)]


def _wrong_keys(root: yaml.Node) -> Iterator[Finding]:
    stack, seen = [root], set()
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            yield from _wrong_keys_of(node)
        elif node.tag == _TUPLE:
            node.tag = "tag:yaml.org,2002:seq"
        stack.extend(_children(node))


def _wrong_keys_of(node: yaml.MappingNode) -> Iterator[Finding]:
    lines: dict[str, int] = {}
    for key, _ in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode) or key.tag not in _TEXT_TAGS:
            shown = shortened(key.value) if isinstance(key, yaml.ScalarNode) else "a list or mapping"
            yield flaw(
                (),
                f"The key `{shown}` is no text to YAML.",
                "Expected text: YAML reads words such as `on` and `1` as something else.",
                "Put the key in quotes, or give it another name.",
                line=line,
            )
        elif key.value in lines:
            yield Finding(
                (),
                f"The key `{shortened(key.value)}` stands twice, on the lines {lines[key.value]} and {line}.",
                "Expected each key once: the later one would silently win.",
                "Remove one of them.",
                line=line,
            )
        else:
            lines[key.value] = line


def _below(node: yaml.Node, step: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == step:
                return key, value
    elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step]
    return None
