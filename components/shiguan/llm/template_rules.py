"""What a template may do: show values, choose and repeat, and nothing with which a few characters become many."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from jinja2 import Environment, nodes
from jinja2.exceptions import TemplateError
from jinja2.ext import Extension

_DEEPEST, _LONGEST_SEPARATOR = 2, 100
_FILTERS = frozenset(
    "abs capitalize count d default dictsort e escape first float forceescape groupby int items join last length "
    "list lower map max min reject rejectattr reverse round safe select selectattr sort string striptags sum "
    "templatize_part title tojson trim truncate unique upper urlencode wordcount".split()
)
_METHODS = frozenset(
    "changed cycle endswith get items keys lower lstrip rstrip split startswith strip title upper values".split()
)
WHAT_TEMPLATES_DO = "Expected a template that shows values, chooses with `if` and repeats with `for`, twice at most."
_REFUSED: dict[type[nodes.Node], str] = {
    nodes.Mul: "multiplies",
    nodes.Pow: "multiplies",
    nodes.Mod: "formats with `%`",
    nodes.Macro: "has a macro",
    nodes.AssignBlock: "sets a variable to a block",
    nodes.Block: "has a block",
    nodes.Extends: "extends another template",
    nodes.Import: "imports another template",
    nodes.FromImport: "imports another template",
}


def faults_of_template(source: str) -> list[str]:
    """Return, as clauses, what a template does that it may not; text that is no template has no faults."""
    if not re.search(r"\{[{%]", source):
        return []
    try:
        parsed = Environment(autoescape=True, extensions=[_Tags]).parse(source)
        targets = [one.target for one in parsed.find_all(nodes.Assign)]
        targets += [target for one in parsed.find_all(nodes.With) for target in one.targets]
        return list(_faults(parsed, _names(targets), 0))
    except (TemplateError, ValueError, RecursionError):
        return []  # whoever compiles it says what is wrong with it


class _Tags(Extension):
    """Reads the tags of Haystack's templates: `message` with its text, and `now`."""

    tags = {"message", "now"}  # noqa: RUF012  # as Jinja declares it

    def parse(self, parser: Any) -> nodes.Node | list[nodes.Node]:
        tag = next(parser.stream)
        while parser.stream.current.type != "block_end":
            if parser.stream.current.type in ("name", "assign", "comma", "add", "sub"):
                next(parser.stream)
            else:
                parser.parse_primary()
        body: list[nodes.Node] = []
        if tag.value == "message":
            body = parser.parse_statements(("name:endmessage",), drop_needle=True)
        return body


def _names(found: Iterable[nodes.Node]) -> set[str]:
    return {name.name for one in found for name in [one, *one.find_all(nodes.Name)] if isinstance(name, nodes.Name)}


def _faults(node: nodes.Node, own: set[str], depth: int) -> Iterator[str]:
    if isinstance(node, nodes.For):
        depth += 1
        if depth > _DEEPEST or node.recursive:
            yield f"has loops in one another, more than {_DEEPEST}"
            return
    if type(node) in _REFUSED:
        yield _REFUSED[type(node)]
    elif isinstance(node, nodes.Include) and depth:
        yield "includes something in a loop"
    elif isinstance(node, nodes.Filter):
        yield from _faults_of_filter(node)
    elif isinstance(node, nodes.Call) and not isinstance(node.node, nodes.ExtensionAttribute):
        called = node.node.attr if isinstance(node.node, nodes.Getattr) else getattr(node.node, "name", "something")
        if not isinstance(node.node, nodes.Getattr) or called not in _METHODS:
            yield f"calls `{called}`"
    elif isinstance(node, nodes.Assign | nodes.With):
        values = [node.node] if isinstance(node, nodes.Assign) else node.values
        if again := _names(values) & own:
            yield f"sets a variable from `{min(again)}`, which it has set itself"
    for inner in node.iter_child_nodes():
        yield from _faults(inner, own, depth)


def _faults_of_filter(node: nodes.Filter) -> Iterator[str]:
    arguments = [*node.args, *(pair.value for pair in node.kwargs), *filter(None, (node.dyn_args, node.dyn_kwargs))]
    if node.name not in _FILTERS:
        yield f"uses the filter `{node.name}`"
    elif node.name in ("map", "select", "reject", "selectattr", "rejectattr"):
        named = node.args[:1] if node.name == "map" else []
        if any(not isinstance(one, nodes.Const) or one.value not in _FILTERS for one in named):
            yield f"uses a filter in `{node.name}`"
    elif node.name == "tojson" and arguments:
        yield "uses arguments of `tojson`"
    elif node.name == "join":
        separators = [one.value if isinstance(one, nodes.Const) else None for one in node.args[:1]]
        separators += [getattr(pair.value, "value", None) for pair in node.kwargs if pair.key == "d"]
        if any(not isinstance(one, str) or len(one) > _LONGEST_SEPARATOR for one in separators) or node.dyn_args:
            yield "joins with something that is not a short text"
