"""The sections of a file: their names and shapes, the models, budget and cache, and what a mode says to people."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from pydantic import BaseModel, ValidationError

from shiguan.checking.definition import Definition
from shiguan.checking.reading import Finding, PipelineFile, flaw, shortened
from shiguan.llm.model_settings import Budget, CachePlan, model_faults
from shiguan.resources import read_table

_MAY_HIDE = {"additionalProperties", "propertyNames", "pattern"}
"""Where something may hide; any other shape that is wrong is an accident."""


@cache
def _schema() -> Draft202012Validator:
    return Draft202012Validator(read_table(Path(__file__).with_name("pipeline_file.yaml")))


def check_structure(content: dict[str, Any]) -> Iterator[Finding]:
    """Find what keeps a file from being understood as a pipeline at all."""
    for error in _schema().iter_errors(content):
        place, schema = tuple(error.absolute_path), error.schema
        what = f"`{shortened(place[-1])}`" if place else "The file"
        problem = f"{what} is {_shown(error.instance)}"
        if error.validator == "additionalProperties":
            odd = [key for key in error.instance if key not in schema["properties"] and not key.startswith("x-")]
            place, problem = (*place, odd[0]), f"{what} has {', '.join(f'`{shortened(key)}`' for key in odd[:5])}"
        elif error.validator == "required":
            missing = [f"`{key}`" for key in schema["required"] if key not in error.instance]
            problem = f"{what} has no {', '.join(missing)}"
        elif error.validator == "pattern" and place == ("components",):
            place, schema = (*place, error.instance), _schema().schema["properties"]["components"]
            problem = f"`{shortened(error.instance)}` is no name for a component"
        kind = Finding if error.validator in _MAY_HIDE else flaw
        expected = f"Expected {schema['description']}."
        yield kind(place, f"{problem}.", expected, "Correct it; pipelines/embedded/simple.yml shows how it looks.")


def _shown(value: Any) -> str:
    kinds = {dict: "a mapping", list: "a list", str: "a text", bool: "a truth value", type(None): "nothing"}
    return f"{kinds.get(type(value), 'a value')}, `{shortened(value)}`" if value not in ({}, []) else "empty"


def check_promise(file: PipelineFile) -> Iterator[Finding]:
    """Find a mode that does not say what a question costs, which its readers pay for."""
    told = f"{file.comment}\n{(file.content.get('metadata') or {}).get('comment', '')}"
    taken = {**(file.content.get("inputs") or {}), **(file.content.get("options") or {})}
    if "query" in taken and not re.search(r"LLM calls per question: *\S", told):
        yield flaw(
            (),
            "The file answers questions and does not say what one costs.",
            "Expected a line in the comment that opens it.",
            "Add `# LLM calls per question: 0.`, with the number that is true and what it depends on.",
        )


_DOCS = "docs/models.md shows how it looks."


def check_models(definition: Definition) -> Iterator[Finding]:
    """Find `models` sections that name nobody, give a role to a stranger, or would send a secret somewhere."""
    for part in definition.parts:
        section = part.parameters.get("models")
        if not part.type.startswith("shiguan.") or section is None:
            continue
        for place, problem in model_faults(section):
            where = (*part.place, "init_parameters", "models", *place)
            what = shortened(place[-1]) if place else "models"
            kind = Finding if what in ("key_variable", "base_url") else flaw
            yield kind(
                where, f"`{what}`: {shortened(problem, 200)}.", f"Expected a `models` section: {_DOCS}", "Correct it."
            )


def _faults(definition: Definition, name: str, plan: type[BaseModel], expected: str) -> Iterator[Finding]:
    try:
        plan.model_validate(definition.file.content.get(name) or {})
    except ValidationError as error:
        for fault in error.errors(include_url=False):
            what = shortened(fault["loc"][-1] if fault["loc"] else name)
            problem = f"`{what}`: {shortened(fault['msg'], 200)}."
            yield flaw((name, *fault["loc"]), problem, f"Expected {expected}: {_DOCS}", "Correct it.")


def check_cache(definition: Definition) -> Iterator[Finding]:
    """Find times for which nothing can be kept."""
    yield from _faults(definition, "cache", CachePlan, "seconds for `calls`")


def check_budget(definition: Definition) -> Iterator[Finding]:
    """Find limits that are none."""
    yield from _faults(definition, "budget", Budget, "limits of `calls` and `seconds`")
