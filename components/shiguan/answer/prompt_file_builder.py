"""Renders a prompt from a file in `prompts/`, or from a given template, into chat messages."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from haystack import component
from haystack.dataclasses import ChatMessage, ChatRole
from jinja2.exceptions import SecurityError, TemplateError

from shiguan.errors import ConfigurationError
from shiguan.llm.prompt_rendering import (
    chat_prompt_builder,
    messages_sha256,
    prefix_hashes,
    prompt_hash,
    written_pairs,
)
from shiguan.llm.prompts import (
    check_layer,
    in_language,
    layer_path,
    layers_used,
    load_layer,
    load_prompt,
    load_prompt_data,
    modes_with_sentence,
    not_found_sentence,
    own_prompts,
    read_examples,
    read_profile,
)
from shiguan.llm.source_blocks import neutral_text
from shiguan.text.languages import detect_language

# Not sockets: their words come from files and depend on the mode, the parameters and the language.
_FILLED = ("not_found", "profile", "examples")
_SOCKET_TYPES: dict[str, Any] = {"query": str, "context": str}
# The layers that a run chooses, each by an input of its name or by the analysis.
_CHOSEN_BY_RUN = ("task", "scope", "working")
# Questions of these types are worked out first, in a block that is cut out of the reply.
_WORKED_OUT = ("complex_reasoning", "multi_hop", "comparison")
_DEFAULT_PERSONA = "shiguan"


@component
class PromptFileBuilder:
    r"""
    Renders the messages for the generator.

    It comes between `ContextBuilder` and the chat generator and uses Haystack's `ChatPromptBuilder`: sandboxed Jinja
    with `{% message role="…" %}` blocks; the values of variables are inserted as text and never rendered again. Every
    variable of the template is an input socket; `character`, `feedback`, `goal`, `instructions`, `memory`, `pairs` and
    `language` may be left out. `not_found` is filled here, with the mode's not-found sentence in `language`.

    A prompt is made of layers, files below `prompts/layers/` that can be exchanged one by one. `{% include persona %}`
    and `{% include rules %}` take the layers named here; `{% include task %}` and `{% include scope %}` take those
    that the run asks for, by the inputs `task` and `scope` or by an `analysis` with these keys; `{% include working %}`
    asks for brief working before the answer where the analysis's `type` is complex_reasoning, multi_hop or comparison,
    in a block that is cut out of the reply wherever it is read. A profile adds what a field asks of every answer, and a
    run may name another one; examples show its form. All of these come before the sources and do not change from
    question to question, so that a provider's prefix cache hits. `goal` and `feedback`, which models write, and
    `memory`, what was said before, are made harmless like passages.

    Earlier turns of a conversation, in `earlier`, come behind the system message, and what is asked now behind them, so
    that a prompt begins like the one before. In a loop everything that changes from round to round comes as `attempt`:
    the messages of the attempt before it with its reply, to which feedback and new sources are added, so that nothing
    is written twice. `sub_answers` are the parts of a question that was taken apart, rendered as `pairs`.

    Each message's meta carries `prompt` (its name, or `template`), `prompt_hash`, `prompt_layers` (the hash of every
    layer, profile and set of examples in it), `prompt_rendered` (the `messages` as role and text, their `sha256`, and
    hashes of their beginnings as `prefix`) and, where the template has a `language`, that language, so that an answer's
    receipt can say which prompt made it; and `asked`: the `complexity` and `type` of the question, the number of the
    `attempt`, and which sub-questions have no answer, as `missing`.

    Example:
    ```python
    builder = PromptFileBuilder(prompt="precise", persona="historian", profile="history", examples="cited")
    builder.run(context="<sources>\n</sources>", query="Who was An Lushan?", language="en", goal="", task="qa")
    # {"prompt": [ChatMessage(system, "You are a careful historian…"), ChatMessage(user, "<sources>…")]}
    ```
    """

    counts_once = ("goal", "memory")
    """Inputs that count only in the first round of a loop: the prompts of later rounds continue that one."""

    def __init__(
        self,
        prompt: str | None = None,
        *,
        template: str | None = None,
        mode: str | None = None,
        persona: str | None = None,
        rules: str | None = None,
        task: str = "qa",
        scope: str = "local",
        profile: str | dict[str, Any] | None = None,
        examples: str | dict[str, Any] | None = None,
    ) -> None:
        """
        Set the prompt or the template, and its layers.

        :param prompt: A file's stem in `prompts/`, such as `simple`.
        :param template: The text of a template, instead of `prompt`. One without a `message` block is one user message.
        :param mode: The mode of `prompts/not_found.yml` whose sentence `not_found` is; None for the mode that the
            prompt is named after, else `simple`.
        :param persona: Who answers, a file's stem in `prompts/layers/persona/`; None for the profile's, else `shiguan`.
        :param rules: The rules for every sentence, a file's stem in `prompts/layers/rules/`; None for the mode's.
        :param task: The task where a run does not set one: `qa`, `summarize`, `compare` or `code`.
        :param scope: The scope where a run does not set one: `local` (exact details) or `global` (a synthesis).
        :param profile: A field's requirements, a file's stem in `prompts/profiles/` or its data; None for none.
        :param examples: Few-shot examples, a file's stem in `prompts/examples/` or its data; None for none.
        :raises ValueError: If both or neither of `prompt` and `template` are given, or a layer is named for a template
            that has no place for it.
        :raises ConfigurationError: If something named does not exist, or the template or the data is not valid.
        """
        if (prompt is None) == (template is None):
            given = "both" if prompt is not None else "neither"
            raise ValueError(f"Give exactly one of `prompt` and `template`, got {given}.")
        self.prompt = prompt
        self.template = template
        self.mode = mode
        self.persona = persona
        self.rules = rules
        self.task = task
        self.scope = scope
        self.profile = profile
        self.examples = examples
        self._mode = mode or (prompt if prompt in modes_with_sentence() else "simple")
        not_found_sentence(self._mode, "en")
        source = load_prompt(prompt) if prompt is not None else str(template)
        self._builder = chat_prompt_builder(source, self._name)
        self._hash = prompt_hash(source)
        # A file that replaces a shipped one gets the variables of the shipped one.
        asked = source if prompt is None else load_prompt(prompt, shipped=True)
        self._asking = self._builder if asked == source else chat_prompt_builder(asked, self._name)
        self._use = layers_used(self._builder._env, asked, self._name)
        self._profile = read_profile(profile)
        self._examples = read_examples(examples)
        self._layers = {
            "persona": persona or self._profile["persona"] or _DEFAULT_PERSONA,
            "rules": rules or self._mode,
            "task": task,
            "scope": scope,
            "working": "none",
        }
        for kind, name in self._layers.items():
            check_layer(kind, name)
        self._check_places()
        self._set_sockets()

    @property
    def _name(self) -> str:
        return self.prompt or "template"

    def _check_places(self) -> None:
        given = {"persona": self.persona, "rules": self.rules, "profile": self.profile, "examples": self.examples}
        places = {*self._use.kinds, *self._use.fixed}
        for name, value in given.items():
            if value is not None and name not in places:
                layer = name if name in self._layers else f'"layers/{name}.jinja"'
                raise ValueError(
                    f"Prompt `{self._name}` has no place for `{name}`. Leave it out, or put "
                    f"{{% include {layer} %}} into the template."
                )

    def _set_sockets(self) -> None:
        own = set(self._asking.variables) - set(self._use.kinds)
        layered = {"profile", "examples"} & self._use.variables
        self._filled = {name for name in _FILLED if name in layered or (name == "not_found" and name in own)}
        if "not_found" in self._use.variables:
            self._filled.add("not_found")
        variables = (own | self._use.variables) - self._filled
        if self._filled:
            variables.add("language")
        texts = sorted({"character", "goal", "instructions", "memory"} & variables)
        self._variables = sorted(variables - {*texts, "language", "feedback", "pairs"})
        self._feeds = {"feedback", "pairs"} & variables
        for name in self._variables:
            component.set_input_type(self, name, _SOCKET_TYPES.get(name, Any))
        optional: dict[str, tuple[Any, str | None]] = {}
        if "language" in variables:
            optional["language"] = (str | None, None)
        optional |= dict.fromkeys(texts, (str, ""))
        if "profile" in layered:
            optional["profile"] = (str | None, None)
        for kind in (kind for kind in _CHOSEN_BY_RUN if kind in self._use.kinds):
            optional[kind] = (str | None, None)
        self._optional = tuple(optional)
        optional["earlier"] = (list[ChatMessage] | None, None)
        optional["analysis"] = (dict[str, Any] | None, None)
        if "pairs" in self._feeds:
            optional["sub_answers"] = (list[dict[str, Any]] | None, None)
        if "feedback" in self._feeds:
            optional["attempt"] = (Any, None)
        for name, (type_, default) in optional.items():
            component.set_input_type(self, name, type_, default)

    @component.output_types(prompt=list[ChatMessage])
    def run(self, **kwargs: Any) -> dict[str, list[ChatMessage]]:
        """
        Render the prompt.

        :param kwargs: One value for each variable of the template. Optional: `memory` (what was said in the
            conversation), `earlier` (the messages that come before), `attempt` (the round of a loop, from
            `AttemptLoop`, whose question, analysis and messages then count), `sub_answers` (from
            `SubQuestionAnswerer`), `character` and `instructions` (who answers, and in what tone), `language` (of the
            answer; else that of `query`), `task`, `scope`, `working` (`brief` or `none`), `analysis` (a dict that may
            have `task`, `scope`, `type` and `complexity`) and `profile` (a file's stem in `prompts/profiles/`, instead
            of the builder's own); `task` and `scope` take precedence over the analysis.
        :returns: `prompt`, the messages.
        :raises ValueError: If a variable is missing; the message names it.
        :raises ConfigurationError: If there is no such task, scope or profile, or the template uses something that its
            variables do not have.
        """
        attempt = kwargs.get("attempt")
        if attempt is not None:
            kwargs = {**kwargs, "query": attempt.question, "analysis": attempt.analysis, "earlier": attempt.messages}
        missing = [name for name in self._variables if name not in kwargs]
        if missing:
            raise ValueError(
                f"Prompt `{self._name}` needs {', '.join(f'`{name}`' for name in missing)}, which nothing gave. "
                f"Its variables are: {', '.join(self._variables)}. Connect or pass the missing ones."
            )
        variables = {name: kwargs[name] for name in self._variables}
        earlier: list[ChatMessage] = list(kwargs.get("earlier") or [])
        again = bool(earlier) and earlier[0].is_from(ChatRole.SYSTEM)
        if again:
            kwargs = {**kwargs, "memory": ""}
        for name in ("character", "instructions", "memory"):
            if name in self._optional:
                variables[name] = neutral_text(kwargs.get(name) or "").strip()
        parts: list[dict[str, Any]] = kwargs.get("sub_answers") or []
        feedback = attempt.feedback if attempt else kwargs.get("feedback") or ""
        feeds = {"feedback": neutral_text(feedback).strip(), "pairs": _pairs(parts) or kwargs.get("pairs") or ""}
        variables |= {name: feeds[name] for name in self._feeds}
        if "goal" in self._optional:
            variables["goal"] = _goal(kwargs.get("goal"), variables.get("query"))
        named = kwargs.get("profile") if "profile" in self._optional else None
        profile = self._profile if named is None else read_profile(named)
        layers = self._chosen_layers(kwargs, profile)
        variables.update({kind: layer_path(kind, name) for kind, name in layers.items()})
        analysis = kwargs.get("analysis") or {}
        asked_about = {
            "complexity": analysis.get("complexity"),
            "type": analysis.get("type"),
            "attempt": attempt.number if attempt else 1,
            "missing": [part["question"] for part in parts if part["status"] != "answered"],
        }
        marks: dict[str, Any] = {"prompt": self._name, "prompt_hash": self._hash, "asked": asked_about}
        hashes = self._layer_hashes(layers, self.profile if named is None else named)
        if hashes:
            marks["prompt_layers"] = hashes
        if "language" in self._optional:
            question = str(kwargs.get("query") or "")
            variables["language"] = marks["language"] = str(kwargs.get("language") or detect_language(question))
        variables.update(self._filled_values(marks.get("language", "en"), profile))
        messages = self._render(variables)
        system = [] if again else [message for message in messages if message.is_from(ChatRole.SYSTEM)]
        asked = [message for message in messages if not message.is_from(ChatRole.SYSTEM)]
        sent = [*system, *earlier, *asked] if earlier else messages
        marks["prompt_rendered"] = {
            "sha256": messages_sha256(sent),
            "prefix": prefix_hashes(sent),
            "messages": [{"role": message.role.value, "text": message.text or ""} for message in sent],
        }
        old = {id(message) for message in earlier}
        return {
            "prompt": [
                message if id(message) in old else replace(message, _meta={**message.meta, **marks}) for message in sent
            ]
        }

    def _render(self, variables: dict[str, Any]) -> list[ChatMessage]:
        try:
            messages: list[ChatMessage] = self._builder.run(template_variables=variables)["prompt"]
        except (TemplateError, SecurityError) as error:
            raise ConfigurationError(
                f"Prompt `{self._name}` could not be rendered: {error}. Correct the template or its variables."
            ) from error
        if not messages:
            raise ConfigurationError(
                f"Prompt `{self._name}` renders no message. "
                'Wrap its text in {% message role="user" %} and {% endmessage %}.'
            )
        return messages

    def _chosen_layers(self, kwargs: dict[str, Any], profile: dict[str, Any]) -> dict[str, str]:
        analysis = kwargs.get("analysis") or {}
        layers = {kind: self._layers[kind] for kind in self._use.kinds}
        if "persona" in layers and self.persona is None:
            layers["persona"] = profile["persona"] or _DEFAULT_PERSONA
            _check_once("persona", layers["persona"])
        for kind in _CHOSEN_BY_RUN:
            if kind in layers:
                layers[kind] = kwargs.get(kind) or analysis.get(kind) or layers[kind]
                if kind == "working" and not kwargs.get(kind) and analysis.get("type") in _WORKED_OUT:
                    layers[kind] = "brief"
                _check_once(kind, layers[kind])
        return layers

    def _layer_hashes(self, layers: dict[str, str], profile: str | dict[str, Any] | None) -> dict[str, str]:
        names = [*(f"{kind}/{name}" for kind, name in layers.items()), *self._use.fixed]
        hashes = {name: _layer_hash(name, own_prompts()) for name in names}
        for folder, given in (("profiles", profile), ("examples", self.examples)):
            if isinstance(given, str):
                hashes[f"{folder}/{given}"] = prompt_hash(load_prompt_data(folder, given))
            elif given is not None:
                hashes[folder] = prompt_hash(json.dumps(given, ensure_ascii=False, sort_keys=True))
        return hashes

    def _filled_values(self, language: str, profile: dict[str, Any]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        if "not_found" in self._filled:
            values["not_found"] = not_found_sentence(self._mode, language)
        if "profile" in self._filled:
            values["profile"] = {key: in_language(profile[key], language) for key in ("rules", "sections")}
        if "examples" in self._filled:
            values["examples"] = in_language(self._examples, language)
        return values


# Files do not change under a running process; checking them for every prompt takes longer than rendering it.
_check_once = cache(check_layer)


@cache
def _layer_hash(name: str, own: Path | None) -> str:  # noqa: ARG001  # another folder has another layer
    return prompt_hash(load_layer(name))


def _pairs(parts: Sequence[Mapping[str, Any]]) -> str:
    """Write sub-questions with their answers, keeping their marks; numbered where none depends on another."""
    alone = not any(part["needs"] for part in parts)
    return written_pairs([(neutral_text(part["question"]), part["answer"]) for part in parts], numbered=alone)


def _goal(goal: Any, query: Any) -> str:
    words = str(goal or "").split()
    # A goal that is the question itself is already in the prompt, at its end.
    return "" if words == str(query or "").split() else neutral_text(" ".join(words))
