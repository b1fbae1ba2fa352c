"""The sections of a file, their names and shapes, and what a mode says of itself to people."""

import re
from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator

from shiguan.checking.reading import Finding, PipelineFile, flaw, shortened

_SOCKET = {
    "type": "string",
    "pattern": r"^[A-Za-z_][\w-]{0,79}\.\S(.{0,198}\S)?\Z",
    "description": "`component.socket`, such as `retriever.documents`: one that is guessed may be another tomorrow",
}
_OUTPUTS = {"type": ["object", "null"], "additionalProperties": _SOCKET, "description": "a mapping of names to sockets"}
_SCHEMA: dict[str, Any] = {
    "required": ["components"],
    "patternProperties": {"^x-": {}},
    "additionalProperties": False,
    "description": "metadata, max_runs_per_component, connection_type_validation, components, connections, inputs, "
    "outputs, explain, or a name that begins with `x-`: what stands below another would be ignored",
    "properties": {
        "metadata": {"type": "object", "description": "a mapping"},
        "max_runs_per_component": {"type": "integer", "minimum": 1, "maximum": 1000, "description": "1 to 1000"},
        "connection_type_validation": {"enum": [True], "description": "true, or leave it out"},
        "components": {
            "type": "object",
            "minProperties": 1,
            "maxProperties": 200,
            "propertyNames": {"pattern": r"^[A-Za-z_][\w-]{0,79}\Z"},
            "description": "1 to 200 components, named with letters, digits, `_` and `-`, a letter first, 80 at most",
            "additionalProperties": {
                "type": "object",
                "required": ["type"],
                "properties": {
                    "type": {"type": "string", "description": "the full module path of its class"},
                    "init_parameters": {"type": ["object", "null"], "description": "a mapping of names to values"},
                },
                "additionalProperties": False,
                "description": "a `type` and `init_parameters`: what stands below another key would be ignored",
            },
        },
        "connections": {
            "type": ["array", "null"],
            "maxItems": 1000,
            "description": "a list of at most 1000 connections",
            "items": {
                "type": "object",
                "required": ["sender", "receiver"],
                "properties": {"sender": _SOCKET, "receiver": _SOCKET},
                "additionalProperties": False,
                "description": "exactly `sender` and `receiver`",
            },
        },
        "inputs": {
            "type": ["object", "null"],
            "additionalProperties": {
                "type": "array",
                "minItems": 1,
                "items": _SOCKET,
                "description": "a list of sockets",
            },
            "description": "a mapping of names to lists of sockets",
        },
        "outputs": _OUTPUTS,
        "explain": _OUTPUTS,
    },
}
_NAMES = {"additionalProperties", "propertyNames", "pattern"}
"""What may hide something; any other shape that is wrong is an accident."""


def check_structure(content: dict[str, Any]) -> Iterator[Finding]:
    """Find what keeps a file from being understood as a pipeline at all."""
    for error in Draft202012Validator(_SCHEMA).iter_errors(content):
        place, schema = tuple(error.absolute_path), error.schema
        what = f"`{shortened(place[-1])}`" if place else "The file"
        problem = f"{what} is {_shown(error.instance)}"
        if error.validator == "additionalProperties":
            odd = [key for key in error.instance if key not in schema["properties"] and not key.startswith("x-")]
            place, problem = (*place, odd[0]), f"{what} has {', '.join(f'`{shortened(key)}`' for key in odd[:5])}"
        elif error.validator == "required":
            problem = (
                f"{what} has no {', '.join(f'`{key}`' for key in schema['required'] if key not in error.instance)}"
            )
        elif error.validator == "pattern" and error.parent is None and len(place) == 1:
            place, schema = (*place, error.instance), _SCHEMA["properties"]["components"]
            problem = f"`{shortened(error.instance)}` is no name for a component"
        kind = Finding if error.validator in _NAMES else flaw
        expected = f"Expected {schema['description']}."
        yield kind(place, f"{problem}.", expected, "Correct it; pipelines/embedded/simple.yml shows how it looks.")


def _shown(value: Any) -> str:
    kinds = {dict: "a mapping", list: "a list", str: "a text", bool: "a truth value", type(None): "nothing"}
    return f"{kinds.get(type(value), 'a value')}, `{shortened(value)}`" if value not in ({}, []) else "empty"


def check_promise(file: PipelineFile) -> Iterator[Finding]:
    """Find a mode that does not say what a question costs, which its readers pay for."""
    told = f"{file.comment}\n{(file.content.get('metadata') or {}).get('comment', '')}"
    if "query" in (file.content.get("inputs") or {}) and not re.search(r"LLM calls per question: *\S", told):
        yield flaw(
            (),
            "The file answers questions and does not say what one costs.",
            "Expected a line in the comment that opens it.",
            "Add `# LLM calls per question: 0.`, with the number that is true and what it depends on.",
        )
