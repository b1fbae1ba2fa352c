"""Reads a pipeline file as data, with limits, without tags, and with the line of every value; defines findings."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import yaml
from jsonschema import Draft4Validator, Draft202012Validator
from jsonschema.validators import extend
from yaml.constructor import ConstructorError, SafeConstructor

from shiguan.resources import read_table
from shiguan.tenants import odd_value

Place = tuple[str | int, ...]
"""The keys and list positions that lead to a value in a file."""

Pair = tuple[yaml.Node, yaml.Node]
"""A key and its value."""


@dataclass(frozen=True)
class Finding:
    """A problem in a file; where it names no `expected` and `next_step`, those of its check count."""

    place: Place
    problem: str
    expected: str = ""
    next_step: str = ""
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


def flaw(place: Place, problem: str, expected: str = "") -> Finding:
    """Make the finding of a problem that is not a danger."""
    return Finding(place, problem, expected, unsafe=False)


def shortened(value: object, most: int = 80) -> str:
    """Shorten a value for a message, and replace unprintable characters, so that a file cannot flood or colour it."""
    text = "".join(letter if letter.isprintable() else "�" for letter in str(value)[: most + 1])
    return text if len(text) <= most else f"{text[: most - 1]}…"


MAX_BYTES = 256 * 1024
"""The size limit of a pipeline file; the shipped ones are under 20 KiB."""

MAX_VALUES = 20_000
"""The limit of values and keys in a file with all anchors expanded; libyaml itself limits how deep they are."""

_TAG = "tag:yaml.org,2002:"
# To the drafts after the fourth, and to no library here, 2.0 is a whole number.
_Validator = extend(Draft202012Validator, type_checker=Draft4Validator.TYPE_CHECKER)


def _number(loader: SafeConstructor, node: yaml.Node) -> int | float:
    value: int | float = SafeConstructor.yaml_constructors[node.tag](loader, node)
    if odd := odd_value(value):
        expected, line = "Expected finite numbers of at most 64 bits.", node.start_mark.line + 1
        raise UnreadableFile(Finding((), f"The file has {odd}.", expected, line=line, unsafe=False))
    return value


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # in C, where PyYAML was built with it
    """Makes plain values only; the tuples that Haystack dumps become lists."""

    yaml_constructors: ClassVar[dict[str | None, Any]] = {
        **{
            f"{_TAG}{name}": SafeConstructor.yaml_constructors[f"{_TAG}{name}"]
            for name in ("str", "bool", "null", "map", "seq", "timestamp")
        },
        f"{_TAG}int": _number,
        f"{_TAG}float": _number,
        f"{_TAG}python/tuple": SafeConstructor.construct_yaml_seq,
        None: SafeConstructor.construct_undefined,
    }


class UnreadableFile(Exception):  # noqa: N818 - it never leaves this package as an error
    """The file cannot be read; carries the findings."""

    def __init__(self, *findings: Finding) -> None:
        self.findings = list(findings)
        super().__init__("; ".join(map(str, findings)))


@dataclass(frozen=True)
class PipelineFile:
    """A file that could be read."""

    content: dict[str, Any]
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
        loader = _Loader(text)
        root = loader.get_single_node()
        if not isinstance(root, yaml.MappingNode):
            raise UnreadableFile(flaw((), "The file is not a mapping of names."))
        if _expanded_size(root, {}) > MAX_VALUES:
            raise _flooded(f"more than {MAX_VALUES:,} values when its anchors are expanded")
        wrong: list[Finding] = []
        keys = _keys_below(root, wrong)
        if wrong:
            raise UnreadableFile(*wrong)
        return PipelineFile(loader.construct_document(root), keys, root)
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = f"The file is not valid YAML: {shortened(getattr(error, 'problem', None) or error, 200)}."
        unsafe = isinstance(error, ConstructorError)  # a tag, which turns text into an object
        raise UnreadableFile(Finding((), problem, line=mark and mark.line + 1, unsafe=unsafe)) from error


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise _flooded(f"more than {MAX_BYTES:,} bytes")
        return data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableFile(flaw((), f"The file cannot be read: {getattr(error, 'strerror', error)}.")) from error


def _flooded(what: str) -> UnreadableFile:
    return UnreadableFile(Finding((), f"The file has {what}."))


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else []


def _expanded_size(node: yaml.Node, sizes: dict[int, int]) -> int:
    """Count nodes with all anchors expanded, as in Haystack's copy of a file; each node is visited once."""
    if id(node) not in sizes:
        sizes[id(node)] = MAX_VALUES  # an anchor that contains itself has no end
        sizes[id(node)] = 1 + sum(_expanded_size(child, sizes) for child in _children(node))
    return sizes[id(node)]


def _keys_below(root: yaml.Node, wrong: list[Finding]) -> dict[int, dict[str | int, Pair]]:
    """Index every mapping and list by its keys, and collect keys that are not text, or are repeated."""
    stack, found = [root], dict[int, dict[str | int, Pair]]()
    while stack:
        node = stack.pop()
        if id(node) in found:
            continue
        below = found[id(node)] = dict[str | int, Pair]()
        if isinstance(node, yaml.SequenceNode):
            below.update(enumerate((value, value) for value in node.value))
        for key, value in node.value if isinstance(node, yaml.MappingNode) else []:
            line, shown = key.start_mark.line + 1, shortened(key.value)
            if not isinstance(key, yaml.ScalarNode) or key.tag not in (f"{_TAG}str", f"{_TAG}merge"):
                problem = f"The key `{shown}` is not text to YAML, which reads `on` as true. Put it in quotes."
                wrong.append(Finding((), problem, line=line, unsafe=False))
                continue
            if key.value in below:
                first = below[key.value][0].start_mark.line + 1
                problem = f"The key `{shown}` is repeated, on the lines {first} and {line}: the later one would win."
                wrong.append(Finding((), problem, line=line))
            below[key.value] = (key, value)
        stack += _children(node)
    return found


def check_structure(content: dict[str, Any]) -> Iterator[Finding]:
    """Find violations of the schema of a pipeline file."""
    rules = read_table(Path(__file__).with_name("pipeline_file.yaml"))
    for error in _Validator(rules).iter_errors(content):
        place, schema = tuple(error.absolute_path), error.schema
        if error.validator == "additionalProperties":
            known = schema["properties"]
            place += tuple(key for key in error.instance if key not in known and not key.startswith("x-"))[:1]
        elif "propertyNames" in error.absolute_schema_path:
            place += (error.instance,)
        # What has a wrong name could hide something; other violations are accidents.
        unsafe = error.validator in ("additionalProperties", "pattern")
        yield Finding(place, f"{shortened(error.message, 200)}.", f"Expected {schema['description']}.", unsafe=unsafe)
