"""Checks the sections of a file: their names and shapes, budget and cache, and the comment of a mode."""

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
"""Violations that could hide something; others are accidents."""

_KINDS = {dict: "a mapping", list: "a list", str: "a text", bool: "a truth value", type(None): "nothing"}


@cache
def _schema() -> Draft202012Validator:
    return Draft202012Validator(read_table(Path(__file__).with_name("pipeline_file.yaml")))


def check_structure(content: dict[str, Any]) -> Iterator[Finding]:
    """Find violations of the schema of a pipeline file."""
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
        yield kind(place, f"{problem}.", expected, "Correct it; pipelines/embedded/simple.yml is an example.")


def check_promise(file: PipelineFile) -> Iterator[Finding]:
    """Find a mode whose comment does not say how many LLM calls a question costs."""
    comment = f"{file.comment}\n{(file.content.get('metadata') or {}).get('comment', '')}"
    taken = {**(file.content.get("inputs") or {}), **(file.content.get("options") or {})}
    if "query" in taken and not re.search(r"LLM calls per question: *\S", comment):
        problem, expected = "The file answers questions and does not say what one costs.", "Expected it in its comment."
        step = "Add `# LLM calls per question: 0.`, with the right number and what it depends on."
        yield flaw((), problem, expected, step)


def check_plans(definition: Definition) -> Iterator[Finding]:
    """Find invalid limits of a budget, and invalid times of a cache."""
    plans: dict[str, type[BaseModel]] = {"budget": Budget, "cache": CachePlan}
    for name, plan in plans.items():
        try:
            plan.model_validate(definition.file.content.get(name) or {})
        except ValidationError as error:
            for fault in error.errors(include_url=False):
                what = shortened(fault["loc"][-1] if fault["loc"] else name)
                expected = f"Expected a `{name}` as in docs/models.md."
                yield flaw((name, *fault["loc"]), f"`{what}`: {shortened(fault['msg'], 200)}.", expected, "Correct it.")
