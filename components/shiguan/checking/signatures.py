"""What a class takes and gives, read from its source: importing it would run code, and load torch besides."""

import ast
import importlib.util
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final, Literal


def parse_source(source: str) -> ast.Module:
    """Parse a module's source."""
    try:
        return ast.parse(source)
    except SystemError:
        # Up to Python 3.11.8 the parser miscounts if a garbage collection in its midst reports a lost task, whose
        # traceback is parsed for its carets (github.com/python/cpython/issues/106905). The second time it is alone.
        return ast.parse(source)


def parse_annotation(annotation: str) -> ast.expr:
    """Parse an annotation."""
    statements = parse_source(annotation.strip()).body
    if len(statements) != 1 or not isinstance(statements[0], ast.Expr):
        raise SyntaxError(f"`{annotation}` is no annotation")
    return statements[0].value


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


_OPEN_INPUTS = frozenset({"set_input_type", "set_input_types"})
_OPEN_OUTPUTS = frozenset({"set_output_types"})


@dataclass(frozen=True)
class Socket:
    """One input or output, or one parameter."""

    annotation: str = ""
    mandatory: bool = False


@dataclass(frozen=True)
class Signature:
    """What the source of a class says."""

    state: Literal["read", "absent", "unknown"]
    parameters: dict[str, Socket] = field(default_factory=dict)
    inputs: dict[str, Socket] = field(default_factory=dict)
    outputs: dict[str, Socket] = field(default_factory=dict)
    role: str = ""
    open_parameters: bool = True
    open_inputs: bool = True
    open_outputs: bool = True


@cache
def read_signature(type_: str) -> Signature:
    """Read a class's source."""
    *module, name = type_.split(".")
    source, state = _source(module) if all(part.isidentifier() for part in (*module, name)) else (None, "unknown")
    if source is None:
        return Signature("absent" if state == "absent" else "unknown")
    tree = parse_source(source)
    found = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    return _signature(found[-1]) if found else Signature("unknown")


def _source(module: list[str]) -> tuple[str | None, str]:
    top = importlib.util.find_spec(module[0])  # of a top-level name, which imports nothing
    if top is None:
        return None, "absent"
    if len(module) == 1:
        paths = [Path(top.origin)] if top.origin else []
    else:
        folders = [Path(folder) for folder in top.submodule_search_locations or []]
        inner = [folder.joinpath(*module[1:]) for folder in folders]
        paths = [path for folder in inner for path in (folder.with_name(f"{folder.name}.py"), folder / "__init__.py")]
    for path in paths:
        if path.suffix == ".py" and path.is_file():
            return path.read_text(encoding="utf-8"), "read"
    # An integration shares its outer package with all the others, so that package being there says nothing.
    return None, "absent" if top.origin is None else "unknown"


def _signature(node: ast.ClassDef) -> Signature:
    methods = {item.name: item for item in node.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)}
    bases = [
        base for base in node.bases if ast.unparse(base).split("[")[0].split(".")[-1] not in ("object", "Protocol")
    ]
    calls = {
        call.func.attr for call in ast.walk(node) if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
    }
    decorators = {ast.unparse(item).split("(")[0].split(".")[-1] for item in node.decorator_list}
    made = "super_component" in decorators
    parameters, open_parameters = _arguments(methods.get("__init__"))
    inputs, open_inputs = _arguments(methods.get("run"))
    outputs = _outputs(methods.get("run"))
    return Signature(
        "read",
        parameters,
        inputs,
        outputs or {},
        _role(node),
        open_parameters if "__init__" in methods else bool(bases),
        made or open_inputs or "run" not in methods or bool(calls & _OPEN_INPUTS),
        made or outputs is None or bool(calls & _OPEN_OUTPUTS),
    )


def _role(node: ast.ClassDef) -> str:
    for item in node.body:
        if isinstance(item, ast.Assign) and [ast.unparse(target) for target in item.targets] == ["tenant_role"]:
            return str(item.value.value) if isinstance(item.value, ast.Constant) else ""
    return ""


def _arguments(method: ast.FunctionDef | ast.AsyncFunctionDef | None) -> tuple[dict[str, Socket], bool]:
    if method is None:
        return {}, False
    arguments = method.args
    positional = [*arguments.posonlyargs, *arguments.args][1:]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    pairs = [*zip(positional, defaults, strict=True), *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    found = {
        argument.arg: Socket(ast.unparse(argument.annotation) if argument.annotation else "", default is None)
        for argument, default in pairs
    }
    return found, arguments.kwarg is not None


def _outputs(method: ast.FunctionDef | ast.AsyncFunctionDef | None) -> dict[str, Socket] | None:
    for decorator in method.decorator_list if method else []:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "component.output_types":
            return {word.arg: Socket(ast.unparse(word.value)) for word in decorator.keywords if word.arg}
    return None
