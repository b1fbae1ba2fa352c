"""The inputs and outputs of a component as it stands in a file, with those that its parameters make."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import TemplateError, meta

from shiguan.checking.definition import Component
from shiguan.checking.signatures import Socket
from shiguan.checking.templates import template_environment
from shiguan.errors import ConfigurationError
from shiguan.llm.prompts import layers_used, load_prompt

ATTEMPT_STARTER = "shiguan.grading.attempt_starter.AttemptStarter"
ATTEMPT_READER = "shiguan.grading.attempt_reader.AttemptReader"
BRANCH_JOINER = "haystack.components.joiners.branch.BranchJoiner"
_FILE_ROUTER = "haystack.components.routers.file_type_router.FileTypeRouter"
_PROMPT_BUILDER = "shiguan.answer.prompt_file_builder.PromptFileBuilder"

_READ_STATE = {
    "state": "dict",
    "query": "str",
    "queries": "list[str]",
    "question": "str",
    "attempt": "int",
    "documents": "list[Document]",
    "feedback": "str",
}
_FILLED = {"not_found", "profile", "examples"}


@dataclass(frozen=True)
class Sockets:
    """What may be connected to a component."""

    inputs: dict[str, Socket]
    outputs: dict[str, Socket]
    open_inputs: bool
    open_outputs: bool


def sockets_of(component: Component) -> Sockets:
    """Work out what may be connected to a component."""
    parameters = component.parameters
    if component.type == ATTEMPT_STARTER:
        carried = {name: Socket(type_, mandatory=True) for name, type_ in _carry(parameters).items()}
        own = {"query": Socket("str", mandatory=True), "queries": Socket("list[str] | None")}
        return Sockets({**own, **carried}, {"state": Socket("dict")}, open_inputs=False, open_outputs=False)
    if component.type == ATTEMPT_READER:
        outputs = {name: Socket(type_) for name, type_ in {**_READ_STATE, **_carry(parameters)}.items()}
        return Sockets({"state": Socket("dict", mandatory=True)}, outputs, open_inputs=False, open_outputs=False)
    if component.type == BRANCH_JOINER:
        value = Socket(str(parameters.get("type_", "")), mandatory=True)
        return Sockets({"value": value}, {"value": value}, open_inputs=False, open_outputs=False)
    signature = component.signature
    if component.type == _FILE_ROUTER:
        kinds = parameters.get("mime_types")
        names = [*(kinds if isinstance(kinds, list) else []), "unclassified", "failed"]
        outputs = {str(name): Socket("list[str | Path | ByteStream]") for name in names}
        return Sockets(signature.inputs, outputs, signature.open_inputs, open_outputs=False)
    if component.type == _PROMPT_BUILDER and isinstance(parameters.get("prompt"), str):
        inputs = _prompt_inputs(parameters["prompt"])
        if inputs is not None:
            return Sockets(inputs, signature.outputs, open_inputs=False, open_outputs=signature.open_outputs)
    return Sockets(signature.inputs, signature.outputs, signature.open_inputs, signature.open_outputs)


def _carry(parameters: Any) -> dict[str, str]:
    carry = parameters.get("carry")
    return {str(name): str(type_) for name, type_ in carry.items()} if isinstance(carry, dict) else {}


@cache
def _prompt_inputs(prompt: str) -> dict[str, Socket] | None:
    """Give what `PromptFileBuilder` makes of a prompt: its variables, and what chooses its layers."""
    environment = template_environment()
    try:
        source = load_prompt(prompt)
        used = layers_used(environment, source, prompt)
        own = meta.find_undeclared_variables(environment.parse(source))
    except (ConfigurationError, TemplateError):
        return None  # another check says so
    variables = (own - set(used.kinds)) | used.variables
    needed = (variables - _FILLED) | ({"language"} if variables & _FILLED else set())
    inputs = {name: Socket("", mandatory=name not in ("feedback", "language")) for name in needed}
    chosen = {"task", "scope"} & set(used.kinds)
    named = {"profile"} & used.variables
    optional = {name: Socket("str | None") for name in chosen | named}
    optional |= {"analysis": Socket("dict | None")} if chosen else {}
    return {**inputs, **optional}
