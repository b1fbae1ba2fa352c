"""Templates in a file may show variables and nothing behind them."""

from collections.abc import Iterator
from typing import Final

from jinja2 import Environment, TemplateError, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser

from shiguan.checking.definition import Definition
from shiguan.checking.parameters import ALLOWED
from shiguan.checking.reading import Finding, Place, flaw, shortened
from shiguan.llm.prompts import KINDS, layer_source

FILTERS: Final = frozenset(ALLOWED["filters"].split())
METHODS: Final = frozenset(ALLOWED["methods"].split())
_ATTRIBUTE_FILTERS = frozenset("groupby join map max min reject rejectattr select selectattr sort sum unique".split())
_HIDDEN_NAMES = frozenset({"self", "cycler", "joiner", "lipsum", "namespace", "caller", "varargs", "kwargs", "super"})
_STATEMENTS = {
    nodes.Import: "import", nodes.FromImport: "from … import", nodes.Extends: "extends", nodes.Block: "block",
    nodes.Macro: "macro", nodes.CallBlock: "call", nodes.ScopedEvalContextModifier: "autoescape",
    nodes.EvalContextModifier: "autoescape", nodes.NSRef: "namespace",
}  # fmt: skip
_MOST_NUMBER = 10_000

_MARKS = ("{{", "{%", "{#")
_ENDS = ("}}", "%}", "#}")
_STOPS = frozenset({"stop", "stop_words", "stop_sequences"})
"""Where a generator is told at which text to stop, which is no template as long as it is half of one."""

_SOCKETS = ("template", "prompt_template", "user_prompt", "system_prompt")
_MAX_TEMPLATE = 20_000


def check_templates(definition: Definition) -> Iterator[Finding]:
    """
    Find templates that do more than to place values into text.

    Every text with Jinja's marks is taken for a template, whatever its parameter is called.
    """
    for component in definition.components.values():
        seen: set[str] = set()
        for place, value in component.values():
            if not isinstance(value, str) or value in seen or not any(mark in value for mark in _MARKS):
                continue
            if not _STOPS.intersection(map(str, place)) or any(mark in value for mark in _ENDS):
                seen.add(value)
                yield from _template(place, value, layers=component.type.startswith("shiguan."))
    for _, receiver, place in [*definition.declared, *definition.connections]:
        if receiver[1] in _SOCKETS:
            yield Finding(
                place,
                f"`{'.'.join(receiver)}` takes a template while the pipeline runs, which nobody has checked.",
                "Expected templates in the file alone.",
                "Write the template into the file, and pass its variables.",
            )


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
        problem = f"The template cannot be parsed: {shortened(error, 160)}."
        expected = "Expected Jinja, with Haystack's `message` blocks where they are wanted."
        yield flaw(place, problem, expected, "Correct the template.")
        return
    problems = dict.fromkeys(f"{problem} (its line {line})" for problem, line in violations(tree, layers=layers))
    if problems:
        yield Finding(
            place,
            f"The template is not allowed: {shortened('; '.join(problems), 400)}.",
            "Expected text, variables and their attributes, `if`, `for`, `set`, and the filters and methods that "
            "docs/security.md lists.",
            "Take it out; what needs code is a component's work.",
        )


class _HaystackTags(Extension):
    """`{% message role="user" %}…{% endmessage %}` and `{% now 'UTC' %}`, as Haystack's builders read them."""

    tags = {"message", "now"}  # noqa: RUF012 - Jinja's own interface

    def parse(self, parser: Parser) -> list[nodes.Node]:
        tag, values = next(parser.stream), list[nodes.Expr]()
        while parser.stream.current.type != "block_end":
            if tag.value == "message":
                parser.stream.expect("name")
                parser.stream.expect("assign")
            values.append(parser.parse_expression())
            parser.stream.skip_if("comma")
        shown: list[nodes.Node] = [nodes.Output(values, lineno=tag.lineno)] if values else []
        return (
            [*shown, *parser.parse_statements(("name:endmessage",), drop_needle=True)]
            if tag.value == "message"
            else shown
        )


def parse_template(text: str) -> nodes.Template:
    """
    Parse a template that may be hostile.

    `Environment.parse` would turn an error into a traceback by running a line of code; the parser alone just raises.
    """
    return Parser(Environment(extensions=[_HaystackTags]), text).parse()  # noqa: S701 - nothing is rendered


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


def _problem(node: nodes.Node, *, layers: bool) -> str | None:  # noqa: C901, PLR0912 - the rules, one by one
    match node:
        case _ if type(node) in _STATEMENTS:
            return f"it uses `{_STATEMENTS[type(node)]}`"
        case nodes.Include() if not (layers and _is_layer(node.template)):
            return "it includes something that is no layer of the prompts"
        case nodes.For(recursive=True):
            return "it has a recursive loop"
        case nodes.Name(name=name) if name in _HIDDEN_NAMES or name.startswith("_"):
            return f"it uses `{name}`"
        case nodes.Getattr(attr=name) if name.startswith("_"):
            return f"it reaches for the attribute `{name}`"
        case nodes.Getitem(arg=index) if not _is_plain(index):
            return "it looks something up by a name that only running it shows"
        case nodes.Const(value=str() as text) if _underscored(text):
            return f"it holds the text `{text[:40]}`, a name that begins with an underscore"
        case nodes.Const(value=int() | float() as number) if abs(number) > _MOST_NUMBER:
            return f"it holds the number {str(number)[:40]}, more than {_MOST_NUMBER:,}"
        case nodes.Filter():
            return _filter_problem(node)
        case nodes.Call(node=nodes.Name(name=name)) if name not in {"range", "dict"}:
            return f"it calls `{name}`"
        case nodes.Call(node=nodes.Getattr(attr=name)) if name not in METHODS:
            return f"it calls `{name}`"
        case nodes.Call(node=called) if not isinstance(called, nodes.Name | nodes.Getattr):
            return "it calls `…`"
        case nodes.Pow():
            return "it raises to a power, whose result may have no end"
        case nodes.Mul() | nodes.Mod() if _is_text(node.left) or _is_text(node.right):
            return "it repeats or formats a text by arithmetic"
    return None


def _is_plain(index: nodes.Expr) -> bool:
    match index:
        case nodes.Slice() | nodes.Neg(node=nodes.Const()) | nodes.Getattr(node=nodes.Name(name="loop")):
            return True
        case nodes.Const(value=value):
            return not (isinstance(value, str) and _underscored(value))
    return False


def _is_text(side: nodes.Node) -> bool:
    texts = (nodes.TemplateData, nodes.List, nodes.Tuple, nodes.Concat)
    return isinstance(side, texts) or (isinstance(side, nodes.Const) and isinstance(side.value, str))


def _underscored(text: str) -> bool:
    """Whether a text is, or could become a part of, the name of something hidden."""
    parts = [part for part in text.split(".") if text != "."] if "_" in text else []
    return "__" in text or any(part.startswith("_") or part == "" for part in parts)


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


def _is_layer(template: nodes.Expr) -> bool:
    if isinstance(template, nodes.Name):
        return template.name in KINDS
    return isinstance(template, nodes.Const) and layer_source(str(template.value)) is not None
