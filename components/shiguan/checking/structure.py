"""The sections of a file, their names and shapes, and what a mode says of itself to people."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from shiguan.checking.reading import Finding, PipelineFile, flaw, shortened
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
