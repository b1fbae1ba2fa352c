"""Renders a prompt from a file in `prompts/`, or from a template of one's own, into chat messages."""

from dataclasses import replace
from typing import Any

from haystack import component
from haystack.dataclasses import ChatMessage
from jinja2.exceptions import SecurityError, TemplateError

from shiguan.errors import ConfigurationError
from shiguan.prompts import load_prompt, not_found_sentence
from shiguan.support.prompt_rendering import chat_prompt_builder, prompt_hash

# The one variable that is not a socket: its words depend on the mode and the language and live in one file.
_NOT_FOUND = "not_found"
_SOCKET_TYPES: dict[str, Any] = {"query": str, "context": str, "language": str}


@component
class PromptFileBuilder:
    r"""
    Renders the messages for the generator.

    Stands between `ContextBuilder` and the chat generator. On top of Haystack's `ChatPromptBuilder`: sandboxed Jinja
    with `{% message role="…" %}` blocks; what variables bring along is inserted as text and never rendered again.
    Every variable of the template is an input socket, and all are required. The variable `not_found` is filled here,
    with the mode's not-found sentence in the language given as `language`.

    Each message's meta carries `prompt` (its name, or `template`), `prompt_hash` and, where the template has a
    `language`, that language, so that an answer can say which prompt made it.

    Example:
    ```python
    builder = PromptFileBuilder(prompt="simple")
    builder.run(context="<sources>\n</sources>", query="Who was An Lushan?", language="en")
    # {"prompt": [ChatMessage(system, "You are Shiguan…"), ChatMessage(user, "<sources>…")]}
    ```
    """

    def __init__(self, prompt: str | None = None, *, template: str | None = None, mode: str = "simple") -> None:
        """
        Name the prompt or give the template.

        :param prompt: A file's stem in `prompts/`, such as `simple`.
        :param template: The text of a template, instead of `prompt`. One without a `message` block is one user message.
        :param mode: Whose not-found sentence `not_found` is: `simple`, `advanced` or `precise`.
        :raises ValueError: If both or neither of `prompt` and `template` are given.
        :raises ConfigurationError: If the prompt or mode does not exist, or the template is not valid.
        """
        if (prompt is None) == (template is None):
            given = "both" if prompt is not None else "neither"
            raise ValueError(f"Give exactly one of `prompt` and `template`, got {given}.")
        not_found_sentence(mode, "en")
        self.prompt = prompt
        self.template = template
        self.mode = mode
        source = load_prompt(prompt) if prompt is not None else str(template)
        self._builder = chat_prompt_builder(source, self._name)
        self._hash = prompt_hash(source)
        self._variables = sorted(set(self._builder.variables) - {_NOT_FOUND})
        if _NOT_FOUND in self._builder.variables and "language" not in self._variables:
            self._variables.append("language")
        for name in self._variables:
            component.set_input_type(self, name, _SOCKET_TYPES.get(name, Any))

    @property
    def _name(self) -> str:
        return self.prompt or "template"

    @component.output_types(prompt=list[ChatMessage])
    def run(self, **kwargs: Any) -> dict[str, list[ChatMessage]]:
        """
        Render the prompt.

        :param kwargs: One value for each variable of the template.
        :returns: `prompt`, the messages.
        :raises ValueError: If a variable is missing; the message names it.
        :raises ConfigurationError: If the template asks for something that its variables do not have.
        """
        missing = [name for name in self._variables if name not in kwargs]
        if missing:
            raise ValueError(
                f"Prompt `{self._name}` needs {', '.join(f'`{name}`' for name in missing)}, which nobody gave. "
                f"Its variables are: {', '.join(self._variables)}. Connect or pass the missing ones."
            )
        variables = {name: kwargs[name] for name in self._variables}
        marks = {"prompt": self._name, "prompt_hash": self._hash}
        if "language" in variables:
            marks["language"] = str(variables["language"])
        if _NOT_FOUND in self._builder.variables:
            variables[_NOT_FOUND] = not_found_sentence(self.mode, marks["language"])
        try:
            messages = self._builder.run(template_variables=variables)["prompt"]
        except (TemplateError, SecurityError) as error:
            raise ConfigurationError(
                f"Prompt `{self._name}` could not be rendered: {error}. Correct the template or its variables."
            ) from error
        if not messages:
            raise ConfigurationError(
                f"Prompt `{self._name}` renders no message. "
                'Wrap its text in {% message role="user" %} and {% endmessage %}.'
            )
        return {"prompt": [replace(message, _meta={**message.meta, **marks}) for message in messages]}
