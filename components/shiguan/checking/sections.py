"""The sections of a file: their names and shapes, budget and cache, and what a mode says to people."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from pydantic import BaseModel, ValidationError

from shiguan.checking.definition import Definition
from shiguan.checking.reading import Finding, PipelineFile, flaw, shortened
from shiguan.llm.model_settings import Budget, CachePlan
from shiguan.resources import read_table

_MAY_HIDE = {"additionalProperties", "propertyNames", "pattern"}
"""Where something may hide; any other shape that is wrong is an accident."""

_KINDS = {dict: "a mapping", list: "a list", str: "a text", bool: "a truth value", type(None): "nothing"}


@cache
def _schema() -> Draft202012Validator:
    return Draft202012Validator(read_table(Path(__file__).with_name("pipeline_file.yaml")))


def check_structure(content: dict[str, Any]) -> Iterator[Finding]:
    """Find what keeps a file from being understood as a pipeline at all."""
    for error in _schema().iter_errors(content):
        place, schema, value = tuple(error.absolute_path), error.schema, error.instance
        what = f"`{shortened(place[-1])}`" if place else "The file"
        problem = f"{what} is {_KINDS.get(type(value), 'a value')}, `{shortened(value)}`"
        if value in ({}, []):
            problem = f"{what} is empty"
        elif error.validator == "additionalProperties":
            odd = [key for key in value if key not in schema["properties"] and not key.startswith("x-")]
            place, problem = (*place, odd[0]), f"{what} has {', '.join(f'`{shortened(key)}`' for key in odd[:5])}"
        elif error.validator == "required":
            missing = [f"`{key}`" for key in schema["required"] if key not in value]
            problem = f"{what} has no {', '.join(missing)}"
        elif error.validator == "pattern" and place == ("components",):
            place, schema = (*place, value), _schema().schema["properties"]["components"]
            problem = f"`{shortened(value)}` is not a name for a component"
        kind = Finding if error.validator in _MAY_HIDE else flaw
        expected = f"Expected {schema['description']}."
        yield kind(place, f"{problem}.", expected, "Correct it; pipelines/embedded/simple.yml shows how it looks.")


def check_promise(file: PipelineFile) -> Iterator[Finding]:
    """Find a mode that does not say what a question costs, which its readers pay for."""
    comment = f"{file.comment}\n{(file.content.get('metadata') or {}).get('comment', '')}"
    taken = {**(file.content.get("inputs") or {}), **(file.content.get("options") or {})}
    if "query" in taken and not re.search(r"LLM calls per question: *\S", comment):
        problem, expected = "The file answers questions and does not say what one costs.", "Expected it in its comment."
        step = "Add `# LLM calls per question: 0.`, with the number that is true and what it depends on."
        yield flaw((), problem, expected, step)


def check_plans(definition: Definition) -> Iterator[Finding]:
    """Find limits of a budget, and times of a cache, that cannot be used."""
    plans: dict[str, type[BaseModel]] = {"budget": Budget, "cache": CachePlan}
    for name, plan in plans.items():
        try:
            plan.model_validate(definition.file.content.get(name) or {})
        except ValidationError as error:
            for fault in error.errors(include_url=False):
                what = shortened(fault["loc"][-1] if fault["loc"] else name)
                expected = f"Expected a `{name}`: docs/models.md shows how it looks."
                yield flaw((name, *fault["loc"]), f"`{what}`: {shortened(fault['msg'], 200)}.", expected, "Correct it.")
