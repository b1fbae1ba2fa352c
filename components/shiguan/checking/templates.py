"""Templates in a file may show variables and nothing behind them, and the prompts that it names must exist."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from jinja2 import Environment, TemplateError, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser

from shiguan.checking.definition import Component, Definition
from shiguan.checking.definition import nodes as values_below
from shiguan.checking.reading import Finding, Place, flaw, shortened
from shiguan.errors import ConfigurationError
from shiguan.llm.prompts import (
    KINDS,
    check_layer,
    layer_source,
    load_prompt,
    not_found_sentence,
    read_examples,
    read_profile,
)


class _MessageTag(Extension):
    """`{% message role="user" %}…{% endmessage %}`, as `ChatPromptBuilder` reads it."""

    tags = {"message"}  # noqa: RUF012 - Jinja's own interface

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        values: list[nodes.Expr] = []
        while parser.stream.current.type != "block_end":
            parser.stream.expect("name")
            parser.stream.expect("assign")
            values.append(parser.parse_expression())
        body = parser.parse_statements(("name:endmessage",), drop_needle=True)
        shown: list[nodes.Node] = [nodes.Output(values)] if values else []
        return nodes.Scope([*shown, *body], lineno=line)


class _NowTag(Extension):
    """`{% now 'UTC' %}`, as Haystack's builders read it."""

    tags = {"now"}  # noqa: RUF012 - Jinja's own interface

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        values = [parser.parse_expression()]
        while parser.stream.skip_if("comma"):
            values.append(parser.parse_expression())
        return nodes.Output(values, lineno=line)


def template_environment() -> Environment:
    """Make what parses templates."""
    return Environment(extensions=[_MessageTag, _NowTag])  # noqa: S701 - nothing is rendered


def parse_template(text: str) -> nodes.Template:
    """
    Parse a template that may be hostile.

    `Environment.parse` would turn an error into a traceback by running a line of code; the parser alone just raises.
    """
    return Parser(template_environment(), text).parse()


FILTERS: Final = frozenset(
    "abs batch capitalize count d default dictsort e escape first float groupby int items join last length list lower "
    "map max min reject rejectattr replace reverse round select selectattr slice sort string striptags sum "
    "templatize_part title tojson trim truncate unique upper wordcount".split()
)
METHODS: Final = frozenset(
    "capitalize count endswith get isdigit items keys lower lstrip replace rstrip split splitlines startswith strip "
    "title upper values".split()
)
_ATTRIBUTE_FILTERS = frozenset("groupby join map max min reject rejectattr select selectattr sort sum unique".split())
_HIDDEN_NAMES = frozenset({"self", "cycler", "joiner", "lipsum", "namespace", "caller", "varargs", "kwargs", "super"})
_STATEMENTS = {
    nodes.Import: "import",
    nodes.FromImport: "from … import",
    nodes.Extends: "extends",
    nodes.Block: "block",
    nodes.Macro: "macro",
    nodes.CallBlock: "call",
    nodes.ScopedEvalContextModifier: "autoescape",
    nodes.EvalContextModifier: "autoescape",
}
_MOST_NUMBER = 10_000


def violations(template: nodes.Template, *, layers: bool) -> Iterator[tuple[str, int]]:
    """
    Find what a template must not contain.

    Haystack renders in a sandbox. This is the fence before it: a sandbox has been left before, and here nothing that
    people ever left one with may be written down at all.
    """
    # Without recursion, which a hostile template would exhaust, and in the order of the text.
    stack = [*template.iter_child_nodes()][::-1]
    while stack:
        node = stack.pop()
        problem = _problem(node, layers=layers)
        if problem is not None:
            yield problem, node.lineno
        stack += [*node.iter_child_nodes()][::-1]


def _problem(node: nodes.Node, *, layers: bool) -> str | None:
    for kind, name in _STATEMENTS.items():
        if isinstance(node, kind):
            return f"it uses `{name}`"
    if isinstance(node, nodes.Include):
        return None if layers and _is_layer(node.template) else "it includes something that is no layer of the prompts"
    if isinstance(node, nodes.For) and node.recursive:
        return "it has a recursive loop"
    if isinstance(node, nodes.Name) and (node.name in _HIDDEN_NAMES or node.name.startswith("_")):
        return f"it uses `{node.name}`"
    if isinstance(node, nodes.NSRef):
        return "it uses a namespace"
    if isinstance(node, nodes.Getattr) and node.attr.startswith("_"):
        return f"it reaches for the attribute `{node.attr}`"
    if isinstance(node, nodes.Getitem):
        return _item_problem(node.arg)
    if isinstance(node, nodes.Const):
        return _constant_problem(node.value)
    if isinstance(node, nodes.Filter):
        return _filter_problem(node)
    if isinstance(node, nodes.Call):
        return _call_problem(node)
    return _arithmetic_problem(node)


def _item_problem(index: nodes.Expr) -> str | None:
    if isinstance(index, nodes.Slice) or (isinstance(index, nodes.Const) and not _underscored(index.value)):
        return None
    if isinstance(index, nodes.Neg) and isinstance(index.node, nodes.Const):
        return None
    if isinstance(index, nodes.Getattr) and isinstance(index.node, nodes.Name) and index.node.name == "loop":
        return None
    return "it looks something up by a name that only running it shows"


def _constant_problem(value: object) -> str | None:
    if isinstance(value, str) and _underscored(value):
        return f"it holds the text `{value[:40]}`, a name that begins with an underscore"
    if isinstance(value, int | float) and abs(value) > _MOST_NUMBER:
        return f"it holds the number {str(value)[:40]}, more than {_MOST_NUMBER:,}"
    return None


def _underscored(value: object) -> bool:
    """Whether a text is, or could become a part of, the name of something hidden."""
    if not isinstance(value, str):
        return False
    return "__" in value or any(
        part.startswith("_") or part == "" for part in value.split(".") if value != "." and "_" in value
    )


def _filter_problem(node: nodes.Filter) -> str | None:
    if node.name not in FILTERS:
        return f"it uses the filter `{node.name}`"
    if node.name not in _ATTRIBUTE_FILTERS:
        return None
    given = [*node.args, *(word.value for word in node.kwargs)]
    if node.dyn_args is not None or node.dyn_kwargs is not None:
        return f"it unpacks values into the filter `{node.name}`"
    if node.name == "map" and any(isinstance(value, nodes.Const) and value.value not in FILTERS for value in node.args):
        return "it maps a filter that is not on the list"
    if not all(isinstance(value, nodes.Const | nodes.List | nodes.Tuple) for value in given) and node.name != "join":
        return f"it gives the filter `{node.name}` a name that only running it shows"
    return None


def _call_problem(node: nodes.Call) -> str | None:
    called = node.node
    if isinstance(called, nodes.Name) and called.name in {"range", "dict"}:
        return None
    if isinstance(called, nodes.Getattr) and called.attr in METHODS:
        return None
    name = called.name if isinstance(called, nodes.Name) else called.attr if isinstance(called, nodes.Getattr) else "…"
    return f"it calls `{name}`"


def _arithmetic_problem(node: nodes.Node) -> str | None:
    if isinstance(node, nodes.Pow):
        return "it raises to a power, whose result may have no end"
    if isinstance(node, nodes.Mul | nodes.Mod):
        texts = (nodes.TemplateData, nodes.List, nodes.Tuple, nodes.Concat)
        for side in (node.left, node.right):
            if isinstance(side, texts) or (isinstance(side, nodes.Const) and isinstance(side.value, str)):
                return "it repeats or formats a text by arithmetic"
    return None


def _is_layer(template: nodes.Expr) -> bool:
    if isinstance(template, nodes.Name):
        return template.name in KINDS
    return isinstance(template, nodes.Const) and layer_source(str(template.value)) is not None


_MARKS = ("{{", "{%", "{#")
_ENDS = ("}}", "%}", "#}")
_STOPS = frozenset({"stop", "stop_words", "stop_sequences"})
"""Where a generator is told at which text to stop, which is no template as long as it is half of one."""

_SOCKETS = ("template", "prompt_template", "user_prompt", "system_prompt")
_MAX_TEMPLATE = 20_000
_BUILDER = "shiguan.answer.prompt_file_builder.PromptFileBuilder"
_EXPECTED = (
    "Expected text, variables and their attributes, `if`, `for`, `set`, and the filters and methods that "
    "docs/security.md lists."
)


def check_templates(definition: Definition) -> Iterator[Finding]:
    """
    Find templates that do more than to place values into text.

    Every text with Jinja's marks is taken for a template, whatever its parameter is called.
    """
    for component in definition.components.values():
        yield from _template_findings(component)
        for socket in _SOCKETS:
            named = definition.input_names((component.name, socket)).values()
            for place in [*named, *(edge.place for edge in definition.senders((component.name, socket)))]:
                yield Finding(
                    place,
                    f"`{component.name}.{socket}` takes a template while the pipeline runs, which nobody has checked.",
                    "Expected templates in the file alone.",
                    "Write the template into the file, and pass its variables.",
                )


def _template_findings(component: Component) -> Iterator[Finding]:
    seen: set[str] = set()
    for place, value in values_below(dict(component.parameters), (*component.place, "init_parameters")):
        if isinstance(value, str) and value not in seen and any(mark in value for mark in _MARKS):
            if _STOPS.intersection(map(str, place)) and not any(mark in value for mark in _ENDS):
                continue
            seen.add(value)
            yield from _template(place, value, layers=component.type == _BUILDER)


def _template(place: Place, text: str, *, layers: bool) -> Iterator[Finding]:
    if len(text) > _MAX_TEMPLATE:
        yield Finding(
            place,
            f"The template has {len(text):,} characters.",
            f"Expected at most {_MAX_TEMPLATE:,}.",
            "Shorten it: a prompt that long leaves no room for sources.",
        )
        return
    try:
        tree = parse_template(text)
    except (TemplateError, RecursionError) as error:
        yield flaw(
            place,
            f"The template cannot be parsed: {shortened(error, 160)}.",
            "Expected Jinja, with Haystack's `message` blocks where they are wanted.",
            "Correct the template.",
        )
        return
    problems = dict.fromkeys(f"{problem} (its line {line})" for problem, line in violations(tree, layers=layers))
    if problems:
        yield Finding(
            place,
            f"The template is not allowed: {shortened('; '.join(problems), 400)}.",
            _EXPECTED,
            "Take it out; what needs code is a component's work.",
        )
