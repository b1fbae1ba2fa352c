"""Parses templates the way Haystack's builders do, without importing Haystack and without rendering anything."""

from jinja2 import Environment, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser


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
