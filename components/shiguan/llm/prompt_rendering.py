"""
Renders prompts strictly: sandboxed, every variable required, values never rendered as templates.

Also cleans the history of a conversation for prompts.
"""

import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from haystack.components.builders import ChatPromptBuilder
from haystack.dataclasses import ChatMessage
from jinja2 import Environment, FunctionLoader, StrictUndefined
from jinja2.exceptions import SecurityError, TemplateError, TemplateRuntimeError

from shiguan.errors import ConfigurationError
from shiguan.haystack_compat import template_environment, with_meta
from shiguan.llm.prompts import (
    layer_source,
    layers_used,
    list_prompts,
    load_prompt,
    own_prompts,
    read_examples,
    read_profile,
    read_prompt_file,
)
from shiguan.llm.source_blocks import neutral_text
from shiguan.llm.template_rules import WHAT_TEMPLATES_DO, faults_of_template
from shiguan.resources import resource_folder, text_hash

_MESSAGE_TAG = re.compile(r"\{%[-+]?\s*message\b")


def chat_prompt_builder(source: str, name: str) -> ChatPromptBuilder:
    """Make Haystack's prompt builder strict; a template without a `message` block is one user message."""
    if _MESSAGE_TAG.search(source) is None:
        source = '{% message role="user" %}\n' + source + "\n{% endmessage %}"
    if faults := faults_of_template(source):
        raise ConfigurationError(f"Prompt `{name}` {faults[0]}. {WHAT_TEMPLATES_DO} Remove it.")
    try:
        builder = ChatPromptBuilder(template=source, required_variables="*")
    except TemplateError as error:
        raise ConfigurationError(f"Prompt `{name}` is not a valid template: {error}. Correct it.") from error
    environment = template_environment(builder)
    # Haystack renders a missing attribute as nothing; an incomplete prompt must not be sent.
    environment.undefined = StrictUndefined
    # Lines with only a tag leave no empty lines, so that a prompt reads like its file.
    environment.trim_blocks = True
    environment.lstrip_blocks = True
    # `include` reaches layers and no other file.
    environment.loader = FunctionLoader(layer_source)
    limit_rendering(environment)
    # Haystack compiles the template anew for every prompt, which takes longer than the search.
    environment.from_string = cache(environment.from_string)
    return builder


# A prompt with every source has a hundredth of this.
_MOST_CHARACTERS, _MOST_SECONDS = 4_000_000, 5.0


def limit_rendering(environment: Environment) -> None:
    """End a rendering that takes too long or writes too much with a `TemplateRuntimeError`."""

    def concat(parts: Iterable[str]) -> str:
        end, size, kept = time.thread_time() + _MOST_SECONDS, 0, []
        for part in parts:
            size += len(part)
            kept.append(part)
            if size > _MOST_CHARACTERS or time.thread_time() > end:
                raise TemplateRuntimeError(
                    f"it takes more than {_MOST_CHARACTERS:,} characters or {_MOST_SECONDS:g} seconds of the processor"
                )
        return "".join(kept)

    environment.concat = concat  # type: ignore[method-assign]


def prompt_hash(source: str) -> str:
    """Return the version of a prompt, twelve hexadecimal digits."""
    return text_hash(source)[:12]


def messages_sha256(messages: Sequence[ChatMessage]) -> str:
    return text_hash(json.dumps([[message.role.value, message.text] for message in messages]))


def render_prompt(name: str, **variables: Any) -> list[ChatMessage]:
    """Render a prompt of `prompts/`; text from outside must have gone through `neutral_text`."""
    builder, digest, needed = _prepared(name, own_prompts())
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
    return [with_meta(message, **marks) for message in messages]


@cache
def _prepared(name: str, own: Path | None) -> tuple[ChatPromptBuilder, str, frozenset[str]]:  # noqa: ARG001  # another folder has another text
    """Read a prompt, its version, and the variables of the shipped prompt, which it is filled with."""
    source = load_prompt(name)
    return chat_prompt_builder(source, name), prompt_hash(source), _variables(name, load_prompt(name, shipped=True))


def _variables(name: str, source: str) -> frozenset[str]:
    builder = chat_prompt_builder(source, name)
    return layers_used(template_environment(builder), source, name).variables | set(builder.variables)


def check_own_prompts() -> None:
    """Check every file of the user's own folder: its name, its variables, and that question and sources are shown."""
    own, shipped = own_prompts(), resource_folder("prompts")
    for path in sorted(own.rglob("*")) if own is not None else ():
        if path.suffix not in (".jinja", ".yml"):
            continue
        kind, _, name = path.relative_to(own or path).as_posix().rpartition("/")
        if not (shipped / kind / name).is_file() or not (path.suffix == ".jinja" or kind in ("profiles", "examples")):
            raise ConfigurationError(
                f"{path} does not replace any file. Name it as a shipped prompt, {', '.join(list_prompts())}, with "
                "`.jinja`, or as a file below `layers/`, `profiles/` or `examples/`."
            )
        if path.suffix == ".yml":
            (read_profile if kind == "profiles" else read_examples)(path.stem)
            continue
        file = f"{kind}/{name}".removeprefix("/")
        known = _variables(file, read_prompt_file(file, shipped=True))
        used = _variables(file, read_prompt_file(file))
        if unknown := used - known:
            raise ConfigurationError(
                f"{path} has the variables {', '.join(sorted(unknown))}, which nothing fills. Known are "
                f"{', '.join(sorted(known))}."
            )
        if not kind and (missing := {"context", "query"} & known - used):
            shown = ", ".join(f"`{variable}`" for variable in sorted(missing))
            raise ConfigurationError(f"{path} does not show {shown}. Add it.")


def written_pairs(pairs: Sequence[tuple[str, str]], *, numbered: bool = False) -> str:
    """Write questions with their answers for a prompt; numbered if they do not build on each other."""
    places = [f" {place}" if numbered else "" for place in range(1, len(pairs) + 1)]
    return "\n---\n".join(
        f"Question{place}: {question}\nAnswer{place}: {answer}"
        for place, (question, answer) in zip(places, pairs, strict=True)
    )


LAST_TURNS = 6
"""The number of last messages with which a follow-up is read."""

_SPEAKERS = ("user", "assistant")
_LONGEST_TURN = 2_000
_LONGEST_ROLE = 20


def clean_history(
    history: Iterable[ChatMessage | Mapping[str, Any]] | None, *, max_turns: int = 20
) -> tuple[list[ChatMessage], list[str]]:
    """
    Keep the messages of user and assistant, made harmless, and return warnings of what was dropped.

    System and tool messages come from outside and could carry instructions. Only the last `max_turns` messages are
    kept, and of a long one its beginning and its end, without a warning.
    """
    kept: list[ChatMessage] = []
    dropped: Counter[str] = Counter()
    for turn in history or []:
        role, text = _role_and_text(turn)
        text = neutral_text(text).strip()
        if role not in _SPEAKERS:
            dropped[f"with the role `{role}`" if role else "that are no messages"] += 1
        elif not text:
            dropped["without text"] += 1
        else:
            text = _shortened(text)
            kept.append(ChatMessage.from_user(text) if role == "user" else ChatMessage.from_assistant(text))
    warnings = [
        f"{count} {'message' if count == 1 else 'messages'} {what} left out of the history; only turns of `user` and "
        "`assistant` count."
        for what, count in dropped.items()
    ]
    return kept[max(0, len(kept) - max_turns) :], warnings


def _role_and_text(turn: Any) -> tuple[str, str]:
    if isinstance(turn, ChatMessage):
        return turn.role.value, " ".join(turn.texts)
    if not isinstance(turn, Mapping):
        return "", ""
    role = turn.get("role")
    name = "".join(c for c in str(getattr(role, "value", role) or "") if c.isalnum() or c in "_-")[:_LONGEST_ROLE]
    return name, _text(turn.get("content"))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = (part.get("text") if isinstance(part, Mapping) else part for part in content)
        return " ".join(part for part in parts if isinstance(part, str))
    return ""


def _shortened(text: str) -> str:
    if len(text) <= _LONGEST_TURN:
        return text
    # A long turn names its topic at the beginning and its point at the end.
    head = _LONGEST_TURN * 2 // 3
    return f"{text[:head]} … {text[head - _LONGEST_TURN :]}"
