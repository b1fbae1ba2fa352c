"""What a class takes and gives, read from its source: importing it would run code, and load torch besides."""

import ast
import importlib.util
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

from shiguan.checking.source_trees import parse_source

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
