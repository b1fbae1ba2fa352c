"""Checks that a file names only allowed types, and no code in parameters or templates."""

import inspect
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shiguan.checking.definition import Definition, words_of
from shiguan.checking.reading import Finding, Place, shortened
from shiguan.llm.template_rules import faults_of_template
from shiguan.resources import read_table

ALLOWED = read_table(Path(__file__).with_name("allowed.yaml"))
"""The types that a file may name; others are refused before they are imported."""

ALLOWED_TYPES = tuple(ALLOWED["allowed"])
REFUSED_TYPES: dict[str, str] = ALLOWED["refused"]

SETTING = "SHIGUAN_ALLOWED_TYPES"
"""The environment variable that extends the list: packages, modules or classes, separated by commas."""


def extensions(given: list[str] | None = None) -> tuple[str, ...]:
    """Collect the types that an operator allows beyond the list."""
    words = [*re.split(r"[,\s]+", os.environ.get(SETTING, "")), *(given or [])]
    return tuple(dict.fromkeys(word.rstrip(".") for word in words if word.strip(". ")))


def refusal(type_: str, allowed: tuple[str, ...] = ()) -> str | None:
    """Return why a type is refused; None if it is allowed."""
    if _below(type_, allowed):
        return None
    if "image" in re.split(r"[._]", type_.rpartition(".")[0]):
        return "it opens files that a document names"
    for refused, reason in REFUSED_TYPES.items():
        if _below(type_, (refused,)):
            return reason
    return None if _below(type_, ALLOWED_TYPES) else "it is not on the list of allowed types"


def _below(type_: str, prefixes: tuple[str, ...]) -> bool:
    return any(type_ == prefix or type_.startswith(f"{prefix}.") for prefix in prefixes)


def check_allowed_types(definition: Definition) -> Iterator[Finding]:
    """Find types that are not allowed: Haystack imports every `type`, which runs its module."""
    for part in definition.parts:
        reason = refusal(part.type, definition.allowed_types)
        if reason is not None:
            yield Finding((*part.place, "type"), f"The type `{shortened(part.type, 160)}` is not allowed: {reason}.")


_SWITCHES = {
    "unsafe": "lets a template run code",
    "trust_remote_code": "runs code that comes with a model",
    "custom_generate": "runs code that comes with a model",
}
# Haystack imports the module of a callable's path. These are its parameters for callables, and likely names of others.
_CALLABLES = re.compile(
    r"tools|toolset|custom_filters|azure_ad_token_provider|.*(callback|callable|hook|handler|_fn|_func)s?"
    r"|(splitting|tool_parsing|parsing|embedding|tokenizer|filter)_function"
)
_EMPTIES = re.compile(r"(force_)?(recreate|drop|overwrite|delete|clear|reset|purge|wipe)(_\w+)?")
_CALLABLE_TYPES = frozenset({"Callable", "StreamingCallbackT", "Tool", "Toolset", "ToolsType"})
# The modules of types are imported as well.
_TYPE_PARAMETERS = frozenset({"type_", "list_type_", "output_type", "output_types", "outputs_type", "inputs_type"})
_PLAIN_TYPES = frozenset(ALLOWED["plain_types"].split())
# Of Shiguan's own variables only those of its stores; the others hold the keys of callers.
_KEY_NAME = re.compile(
    r"SHIGUAN_(ELASTICSEARCH|QDRANT)_(URL|API_KEY)|OPENAI_\w+|HF_\w+"
    r"|(?!SHIGUAN_)[A-Z][A-Z0-9_]*_(KEY|KEY_ID|TOKEN|PASSWORD|USERNAME|USER)"
)


def check_code_in_parameters(definition: Definition) -> Iterator[Finding]:
    """Find parameters with which a file would run code, or send secrets elsewhere."""
    for component in definition.components.values():
        for place, value in component.values():
            if isinstance(value, dict):
                for key, inner in value.items():
                    problem = None if _names_property((*place, key), inner) else _parameter(key, inner)
                    if problem:
                        yield Finding((*place, key), f"`{shortened(key)}: {shortened(inner)}` {problem}.")
                yield from _secret(place, value)


def check_templates(definition: Definition) -> Iterator[Finding]:
    """Find templates that do more than show values: their constants are computed while the file is built."""
    for component in definition.components.values():
        for place, value in component.values():
            for fault in faults_of_template(value) if isinstance(value, str) else ():
                yield Finding(place, f"`{shortened(value)}` {fault}.")


def _parameter(key: str, value: Any) -> str | None:
    """Return what a parameter would do that no file may do."""
    if key in _SWITCHES and value not in (False, None):
        return _SWITCHES[key]
    if _EMPTIES.fullmatch(key) and value not in (False, None):
        return "empties a store whenever the file is built; `shiguan stores init` makes what is missing"
    if _CALLABLES.fullmatch(key) and value not in (None, [], {}) and not _lists_components(key, value):
        return IS_CODE
    if key in _TYPE_PARAMETERS:
        named = re.findall(r"[\w.]+", " ".join(map(str, value)) if isinstance(value, list) else str(value))
        unknown = [shortened(word) for word in named if word not in _PLAIN_TYPES]
        return f"names the type `{unknown[0]}`, whose module would be imported" if unknown else None
    if key == "filter_policy" and value != "replace":
        return "joins filters: an OR, or a second condition on the same field, of the caller's drops the tenant's"
    return None


def _lists_components(key: str, value: Any) -> bool:
    """Return whether `tools` holds only tools with parameters, which the list of allowed types covers."""
    return (
        key == "tools"
        and isinstance(value, list)
        and all(
            isinstance(one, dict)
            and one.keys() <= {"type", "init_parameters"}
            and "." in (type_ := str(one.get("type")))
            and not type_.startswith("haystack.")
            for one in value
        )
    )


def _names_property(place: Place, value: Any) -> bool:
    """Return whether a key is the name of a property in a JSON schema for replies."""
    return place[-2] == "properties" and "generation_kwargs" in place and isinstance(value, dict | bool)


IS_CODE = "names code to be imported and called"


def takes_only_code(name: str, parameter: inspect.Parameter | None) -> bool:
    """Return whether a text for a parameter could only be the path of a callable."""
    words = words_of(parameter.annotation) if parameter is not None else set[str]()
    return bool(words & _CALLABLE_TYPES) and not words & {"str", "Any"} and not _CALLABLES.fullmatch(name)


def _secret(place: Place, value: dict[str, Any]) -> Iterator[Finding]:
    names: Any = [] if value.get("key_variable") is None else [value["key_variable"]]
    if value.get("type") == "env_var":
        names = value.get("env_vars")
    for name in names if isinstance(names, list) else [names]:
        if not isinstance(name, str) or not _KEY_NAME.fullmatch(name):
            yield Finding(
                (*place, "env_vars" if "env_vars" in value else "key_variable"),
                f"`{shortened(name)}` is not the name of a key that a file may use: it could send any secret of the "
                "server to an address that it names.",
                "Expected a variable that ends in _API_KEY, _TOKEN, _PASSWORD or the like and is not Shiguan's own.",
            )
