"""Whether a connection's types can fit, judged from how they are written."""

import ast
from functools import cache
from typing import Final

from shiguan.checking.source_trees import parse_annotation

# Only types whose meaning is plain from their name take part; of all others anything is believed.
_KNOWN: Final = frozenset(
    "str int float bool bytes dict list set tuple None Document ChatMessage GeneratedAnswer ByteStream Path".split()
)
_VARIADIC: Final = frozenset({"Variadic", "GreedyVariadic"})
_ANYTHING: Final = ("*", ())

Kind = tuple[str, tuple[frozenset["Kind"], ...]]


def can_fit(sender: str, receiver: str) -> bool:
    """
    Tell whether a value of one type may go where another is expected.

    Haystack decides when it builds the pipeline. This says no only where no reading of the types could fit, and knows
    Haystack's conversions: a message and its text, and one value and a list of it.
    """
    given, wanted = _kinds(sender), _kinds(receiver)
    return any(_fits(one, other) for one in given for other in wanted if one[0] != "None" or len(given) == 1)


def mentions(annotation: str, *names: str) -> bool:
    """Tell whether an annotation may stand for one of some types: it names one, is `Any`, or says nothing."""
    words = _words(annotation)
    return not words or words == {"Any"} or bool(words & set(names))


@cache
def _words(annotation: str) -> frozenset[str]:
    try:
        tree = parse_annotation(annotation)
    except SyntaxError:
        return frozenset()
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return frozenset(names | {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)})


@cache
def _kinds(annotation: str) -> frozenset[Kind]:
    try:
        return _read(parse_annotation(annotation))
    except SyntaxError:
        return frozenset({_ANYTHING})


def _read(node: ast.expr) -> frozenset[Kind]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _read(node.left) | _read(node.right)
    if isinstance(node, ast.Constant) and node.value is None:
        return frozenset({("None", ())})
    if isinstance(node, ast.Subscript):
        inner = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        name = _name(node.value)
        if name in {"Optional", "Union"}:
            found = frozenset[Kind]().union(*map(_read, inner))
            return found | {("None", ())} if name == "Optional" else found
        if name in _VARIADIC:
            return _read(inner[0])
        return frozenset({(name, tuple(map(_read, inner)))}) if name in _KNOWN else frozenset({_ANYTHING})
    name = _name(node)
    return frozenset({(name, ())}) if name in _KNOWN else frozenset({_ANYTHING})


def _name(node: ast.expr) -> str:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name.lower() if name in {"List", "Dict", "Set", "Tuple"} else name


def _fits(given: Kind, wanted: Kind) -> bool:
    if "*" in (given[0], wanted[0]) or _same(given, wanted):
        return True
    if wanted[0] == "list" and wanted[1] and any(_same(given, item) for item in wanted[1][0]):
        return True
    return given[0] == "list" and bool(given[1]) and any(_same(item, wanted) for item in given[1][0])


def _same(given: Kind, wanted: Kind) -> bool:
    if "*" in (given[0], wanted[0]):
        return True
    if {given[0], wanted[0]} == {"str", "ChatMessage"} or (given[0], wanted[0]) == ("bool", "int"):
        return True
    if given[0] != wanted[0]:
        return False
    pairs = zip(given[1], wanted[1], strict=False)
    return all(any(_fits(one, other) for one in ones for other in others) for ones, others in pairs)
