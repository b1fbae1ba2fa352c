"""Renders a prompt strictly: sandboxed, every variable required, nothing that comes in rendered again."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from haystack.components.builders import ChatPromptBuilder
from haystack.dataclasses import ChatMessage
from jinja2 import FunctionLoader, StrictUndefined
from jinja2.exceptions import SecurityError, TemplateError

from shiguan.errors import ConfigurationError
from shiguan.llm.prompts import layer_source, load_prompt

_MESSAGE_TAG = re.compile(r"\{%[-+]?\s*message\b")


def chat_prompt_builder(source: str, name: str) -> ChatPromptBuilder:
    """Make Haystack's prompt builder strict; a template without a `message` block is one user message."""
    if _MESSAGE_TAG.search(source) is None:
        source = '{% message role="user" %}\n' + source + "\n{% endmessage %}"
    try:
        builder = ChatPromptBuilder(template=source, required_variables="*")
    except TemplateError as error:
        raise ConfigurationError(f"Prompt `{name}` is not a valid template: {error}. Correct it.") from error
    # Haystack renders an attribute that does not exist as nothing; a prompt with a hole in it must not be sent.
    builder._env.undefined = StrictUndefined
    # Lines that hold only a tag leave no trace, so that a prompt reads like its file.
    builder._env.trim_blocks = True
    builder._env.lstrip_blocks = True
    # `include` reaches the layers that ship with Shiguan and no other file.
    builder._env.loader = FunctionLoader(layer_source)
    # Haystack compiles the template for every prompt anew, which takes longer than the search.
    builder._env.from_string = cache(builder._env.from_string)  # type: ignore[method-assign, assignment]
    return builder


def prompt_hash(source: str) -> str:
    """Name a version of a prompt by twelve hexadecimal digits."""
    return hashlib.sha256(source.encode("utf-8")).hexdigest()[:12]


def messages_sha256(messages: Sequence[ChatMessage]) -> str:
    """Hash a rendered prompt, so that it can be told later whether another one is the same."""
    sent = json.dumps([[message.role.value, message.text] for message in messages])
    return hashlib.sha256(sent.encode()).hexdigest()


def render_prompt(name: str, **variables: Any) -> list[ChatMessage]:
    """
    Render a prompt from `prompts/` for a stage that asks a model on the side.

    Text from outside goes through `neutral_text` before it comes here.
    """
    builder, digest = _prepared(name)
    needed = set(builder.variables)
    if needed != set(variables):
        wrong = ", ".join(f"`{variable}`" for variable in sorted(needed ^ set(variables)))
        raise ConfigurationError(
            f"Prompt `{name}` takes the variables {', '.join(sorted(needed))}; missing or unknown: {wrong}."
        )
    try:
        messages = builder.run(template_variables=variables)["prompt"]
    except (TemplateError, SecurityError) as error:
        raise ConfigurationError(f"Prompt `{name}` could not be rendered: {error}. Correct the template.") from error
    if not messages:
        raise ConfigurationError(f"Prompt `{name}` renders no message. Wrap its text in message blocks.")
    marks = {"prompt": name, "prompt_hash": digest}
    return [replace(message, _meta={**message.meta, **marks}) for message in messages]


@cache
def _prepared(name: str) -> tuple[ChatPromptBuilder, str]:
    source = load_prompt(name)
    return chat_prompt_builder(source, name), prompt_hash(source)
