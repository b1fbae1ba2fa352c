"""Templates in a file place values into text; Haystack's sandbox is behind this when they are rendered."""

from collections.abc import Iterator
from typing import Final

from jinja2 import Environment, TemplateError, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser

from shiguan.checking.definition import Definition
from shiguan.checking.parameters import ALLOWED
from shiguan.checking.reading import Finding, Place, flaw, shortened

FILTERS: Final = frozenset(ALLOWED["filters"].split())
METHODS: Final = frozenset(ALLOWED["methods"].split())
_COMPUTES = (nodes.BinExpr, nodes.Filter, nodes.Test)
_MARKS = ("{{", "{%", "{#")
_ENDS = ("}}", "%}", "#}")
_STOPS = frozenset({"stop", "stop_words", "stop_sequences"})
"""Where a generator is told at which text to stop, which is no template as long as it is half of one."""

_SOCKETS = ("template", "prompt_template", "user_prompt", "system_prompt")
_MAX_TEMPLATE = 20_000


def check_templates(definition: Definition) -> Iterator[Finding]:
    """Find templates that do more than place values into text; every text with Jinja's marks is taken for one."""
    for component in definition.components.values():
        seen: set[str] = set()
        for place, value in component.values():
            if not isinstance(value, str) or value in seen or not any(mark in value for mark in _MARKS):
                continue
            if not _STOPS.intersection(map(str, place)) or any(mark in value for mark in _ENDS):
                seen.add(value)
                yield from _template(place, value)
    for _, receiver, place in [*definition.declared, *definition.connections]:
        if receiver[1] in _SOCKETS:
            problem = f"`{'.'.join(receiver)}` takes a template while the pipeline runs, which nobody has checked."
            step = "Write the template into the file, and pass its variables."
            yield Finding(place, problem, "Expected templates in the file alone.", step)


def _template(place: Place, text: str) -> Iterator[Finding]:
    if len(text) > _MAX_TEMPLATE:
        expected = f"Expected at most {_MAX_TEMPLATE:,}: a longer prompt leaves no room for sources."
        yield Finding(place, f"The template has {len(text):,} characters.", expected, "Shorten it.")
        return
    try:
        tree = parse_template(text)
    except (TemplateError, RecursionError) as error:
        problem = f"The template cannot be parsed: {shortened(error, 160)}."
        expected = "Expected Jinja, with Haystack's `message` blocks where they are wanted."
        yield flaw(place, problem, expected, "Correct the template.")
        return
    problems = dict.fromkeys(f"{problem} (its line {line})" for problem, line in violations(tree))
    if problems:
        problem = f"The template is not allowed: {shortened('; '.join(problems), 400)}."
        expected = "Expected values in text, with the filters and methods that docs/security.md lists."
        yield Finding(place, problem, expected, "Take it out; what needs code is a component's work.")


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
        if tag.value == "now":
            return shown
        return [*shown, *parser.parse_statements(("name:endmessage",), drop_needle=True)]


def parse_template(text: str) -> nodes.Template:
    """
    Parse a template that may be hostile.

    `Environment.parse` would turn an error into a traceback by running a line of code; the parser alone just raises.
    """
    return Parser(Environment(extensions=[_HaystackTags]), text).parse()  # noqa: S701 - nothing is rendered


def violations(template: nodes.Template) -> Iterator[tuple[str, int]]:
    """Find what a template must not contain, in the order of the text and without recursion."""
    stack = [*template.iter_child_nodes()][::-1]
    while stack:
        node = stack.pop()
        problem = _problem(node)
        if problem is not None:
            yield problem, node.lineno
        else:
            stack += [*node.iter_child_nodes()][::-1]


def _problem(node: nodes.Node) -> str | None:
    match node:
        case nodes.Name(name=name) | nodes.Getattr(attr=name) if name.startswith("_"):
            return f"it uses `{name}`"
        case nodes.Filter(name=name) if name not in FILTERS:
            return f"it uses the filter `{name}`"
        case nodes.Filter(name="map", args=[name, *_]) if getattr(name, "value", None) not in FILTERS:
            return "it maps a filter that is not on the list"
        case nodes.Call(node=nodes.Name(name="range" | "dict")):
            return None
        case nodes.Call(node=called) if not isinstance(called, nodes.Getattr) or called.attr not in METHODS:
            return f"it calls `{getattr(called, 'attr', getattr(called, 'name', '…'))}`"
        # Jinja computes this while a template is compiled, however much it becomes.
        case _ if isinstance(node, _COMPUTES) and not any(node.find_all(nodes.Name)):
            return "it computes something from constants alone"
    return None
