"""Reads a pipeline file as data, with limits, without tags, and with the line of every value; defines findings."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import yaml

Place = tuple[str | int, ...]
"""The keys and list positions that lead to a value in a file."""

Pair = tuple[yaml.Node, yaml.Node]
"""A key and its value."""


@dataclass(frozen=True)
class Finding:
    """A problem in a file: its place, what was expected, and what to do."""

    place: Place
    problem: str
    expected: str
    next_step: str
    check: str = ""
    line: int | None = None
    unsafe: bool = True

    @property
    def where(self) -> str:
        """The place as text, such as `components.retriever.type`; empty for the whole file."""
        steps = (f"[{step}]" if isinstance(step, int) else f".{shortened(step)}" for step in self.place)
        return "".join(steps).removeprefix(".")

    def __str__(self) -> str:
        line = f"line {self.line}" if self.line is not None else ""
        where = ", ".join(part for part in (line, self.where) if part)
        return " ".join(part for part in (where and f"{where}:", self.problem, self.expected, self.next_step) if part)

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as plain data."""
        plain = asdict(self)
        del plain["place"]
        return {"check": plain.pop("check"), "line": plain.pop("line"), "where": self.where, **plain}


def flaw(place: Place, problem: str, expected: str, next_step: str, line: int | None = None) -> Finding:
    """Make the finding of a problem that is not a danger."""
    return Finding(place, problem, expected, next_step, line=line, unsafe=False)


def shortened(value: object, most: int = 80) -> str:
    """Shorten a value for a message, and replace unprintable characters, so that a file cannot flood or colour it."""
    text = "".join(letter if letter.isprintable() else "�" for letter in str(value)[: most + 1])
    return text if len(text) <= most else f"{text[: most - 1]}…"


MAX_BYTES = 256 * 1024
"""The size limit of a pipeline file; the shipped ones are under 20 KiB."""

MAX_EVENTS = 20_000
"""The limit of values, keys and brackets in a file, also after its anchors are expanded."""

MAX_DEPTH = 40

# The loader in C, where PyYAML was built with it.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_PLAIN_TAGS = frozenset(f"{_TAG}{name}" for name in ("str", "int", "float", "bool", "null", "map", "seq"))
_TUPLE = f"{_TAG}python/tuple"
"""The tag with which Haystack dumps tuples; they are read as lists."""


class UnreadableFile(Exception):  # noqa: N818 - it never leaves this package as an error
    """The file cannot be read; carries the findings."""

    def __init__(self, *findings: Finding) -> None:
        self.findings = list(findings)
        super().__init__("; ".join(map(str, findings)))


@dataclass(frozen=True)
class PipelineFile:
    """A file that could be read."""

    content: dict[str, Any]
    comment: str
    keys: dict[int, dict[str | int, Pair]]
    root: yaml.Node

    def line(self, place: Place) -> int | None:
        """Find the line of a value."""
        node, found = self.root, None
        for step in place:
            below = self.keys.get(id(node), {})
            if step not in below:
                break
            # An aliased value is elsewhere; its key shows where it is used.
            key, node = below[step]
            found = key.start_mark.line + 1
        return found


def read_pipeline_file(path: Path) -> PipelineFile:
    text = _text(path)
    try:
        _check_events(text)
        loader = _Loader(text)
        root = loader.get_single_node()
        if not isinstance(root, yaml.MappingNode):
            problem = "It is empty." if root is None else "It is not a mapping of names."
            raise _flawed(f"The file is not a pipeline. {problem}", "Expected `components` and `connections`.")
        if _expanded_size(root, {}) > MAX_EVENTS:
            raise _flooded(f"more than {MAX_EVENTS:,} values when its anchors are expanded")
        wrong: list[Finding] = []
        keys = _keys_below(root, wrong)
        if wrong:
            raise UnreadableFile(*wrong)
        content = loader.construct_document(root)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _invalid(error.problem or error.context or "", mark.line + 1 if mark else None) from error
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        raise _invalid(str(error)) from error
    return PipelineFile(content, opening_comment(text), keys, root)


def opening_comment(text: str) -> str:
    """Return the comment at the beginning of a file: what a mode is for, what it costs, what it needs."""
    lines = takewhile(lambda line: line.startswith("#"), text.splitlines())
    return "\n".join(line.lstrip("# ").rstrip() for line in lines)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        expected = "Expected the path of a YAML file that may be read."
        raise _flawed(f"The file cannot be read: {error.strerror or error}.", expected) from error
    if len(data) > MAX_BYTES:
        raise _flooded(f"more than {MAX_BYTES:,} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _invalid(f"byte {error.start} is not UTF-8") from error


def _check_events(text: str) -> None:
    """Refuse tags and floods before any objects are made; the parser itself does not recurse."""
    depth = documents = 0
    for count, event in enumerate(yaml.parse(text, Loader=_Loader), start=1):
        line = event.start_mark.line + 1 if event.start_mark else 0
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        documents += isinstance(event, yaml.DocumentStartEvent)
        if count > MAX_EVENTS:
            raise _flooded(f"more than {MAX_EVENTS:,} values and keys", line)
        if depth > MAX_DEPTH:
            raise _flooded(f"more than {MAX_DEPTH} levels", line)
        if documents > 1:
            raise _invalid("it holds several documents", line)
        tag = getattr(event, "tag", None)
        is_tuple = tag == _TUPLE and isinstance(event, yaml.SequenceStartEvent)
        if tag is not None and tag != "!" and tag not in _PLAIN_TAGS and not is_tuple:
            problem = f"The file is not valid YAML for a pipeline: it has the tag `{shortened(tag)}`."
            expected = "Expected plain values: tags turn text into objects."
            raise UnreadableFile(Finding((), problem, expected, "Remove the tag.", line=line))


def _flawed(problem: str, expected: str, line: int | None = None) -> UnreadableFile:
    return UnreadableFile(flaw((), problem, expected, "Correct the file, or its path.", line))


def _flooded(what: str, line: int | None = None) -> UnreadableFile:
    expected = "Expected a few hundred values, a few levels deep."
    return UnreadableFile(Finding((), f"The file has {what}.", expected, "Check that it is the right one.", line=line))


def _invalid(problem: str, line: int | None = None) -> UnreadableFile:
    return _flawed(f"The file is not valid YAML: {shortened(problem, 200)}.", "Expected one YAML document.", line)


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []


def _expanded_size(node: yaml.Node, sizes: dict[int, int]) -> int:
    """Count nodes with all anchors expanded, as in Haystack's copy of a file; each node is visited once."""
    if id(node) not in sizes:
        sizes[id(node)] = MAX_EVENTS  # an anchor that contains itself has no end
        sizes[id(node)] = 1 + sum(_expanded_size(child, sizes) for child in _children(node))
    return sizes[id(node)]


def _keys_below(root: yaml.Node, wrong: list[Finding]) -> dict[int, dict[str | int, Pair]]:
    """Index every mapping and list by its keys, and collect keys that are not allowed."""
    stack, found = [root], dict[int, dict[str | int, Pair]]()
    while stack:
        node = stack.pop()
        if id(node) in found:
            continue
        below = found[id(node)] = dict[str | int, Pair]()
        if isinstance(node, yaml.SequenceNode):
            node.tag = f"{_TAG}seq"
            below.update(enumerate((value, value) for value in node.value))
        for key, value in node.value if isinstance(node, yaml.MappingNode) else []:
            wrong += _wrong_key(key, below)
            if isinstance(key, yaml.ScalarNode):
                below[key.value] = (key, value)
        stack += _children(node)
    return found


def _wrong_key(key: yaml.Node, before: dict[str | int, Pair]) -> Iterator[Finding]:
    line, shown = key.start_mark.line + 1, shortened(key.value)
    if not isinstance(key, yaml.ScalarNode) or key.tag not in (f"{_TAG}str", f"{_TAG}merge"):
        problem, expected = f"The key `{shown}` is not text to YAML.", "Expected text: YAML reads `on` as true."
        yield flaw((), problem, expected, "Put the key in quotes, or give it another name.", line=line)
    elif key.value in before:
        problem = f"The key `{shown}` is repeated, on the lines {before[key.value][0].start_mark.line + 1} and {line}."
        expected = "Expected each key once: the later one would silently win."
        yield Finding((), problem, expected, "Remove one of them.", line=line)
