"""Templates in a file may show variables, and nothing that lies behind them."""

from collections.abc import Iterator

from jinja2 import TemplateError

from shiguan.checking.checks.template_rules import violations
from shiguan.checking.definition import Component, Definition, nodes
from shiguan.checking.finding import Finding, Place, shortened
from shiguan.checking.template_environment import parse_template

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
        yield from _check(component)
        for socket in _SOCKETS:
            named = [
                definition.input_place(name, (component.name, socket))
                for name in definition.input_names((component.name, socket))
            ]
            for place in [*named, *(edge.place for edge in definition.senders((component.name, socket)))]:
                yield Finding(
                    place,
                    f"`{component.name}.{socket}` takes a template while the pipeline runs, which nobody has checked.",
                    "Expected templates in the file alone.",
                    "Write the template into the file, and pass its variables.",
                )


def _check(component: Component) -> Iterator[Finding]:
    seen: set[str] = set()
    for place, value in nodes(dict(component.parameters), (*component.place, "init_parameters")):
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
        yield Finding(
            place,
            f"The template cannot be parsed: {shortened(error, 160)}.",
            "Expected Jinja, with Haystack's `message` blocks where they are wanted.",
            "Correct the template.",
            unsafe=False,
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
