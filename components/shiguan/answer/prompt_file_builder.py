"""Renders a prompt from a file in `prompts/`, or from a given template, into chat messages."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from haystack import component
from haystack.dataclasses import ChatMessage, ChatRole

from shiguan.haystack_compat import template_environment, with_meta
from shiguan.llm.prompts import (
    chat_prompt_builder,
    check_layer,
    in_language,
    layer_path,
    layers_used,
    load_layer,
    load_prompt,
    load_prompt_data,
    messages_sha256,
    modes_with_sentence,
    not_found_sentence,
    own_prompts,
    prompt_hash,
    read_examples,
    read_profile,
    rendered,
    written_pairs,
)
from shiguan.llm.source_blocks import neutral_text
from shiguan.reading.text import read_text

# What is made harmless and may be left out.
_TEXTS = frozenset(("character", "goal", "instructions", "memory"))
_SOCKET_TYPES: dict[str, Any] = {"query": str, "context": str}
# The layers that a run chooses, each by an input of its name or by the analysis, and what they are otherwise.
_CHOSEN_BY_RUN = {"task": "qa", "scope": "local", "working": "none"}
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

    A prompt is made of layers, files below `prompts/layers/` that can be exchanged one by one: `{% include persona %}`
    takes the one named here, `{% include rules %}` that of the mode, `{% include task %}` and `{% include scope %}`
    those that the run asks for, by the inputs `task` and `scope` or an `analysis` with these keys, and
    `{% include working %}` asks for brief working before the answer where the analysis's `type` is complex_reasoning,
    multi_hop or comparison, in a block that is cut out of the reply. A profile adds what a field asks of every answer,
    and a run may name another one; examples show its form. All of these come before the sources and do not change from
    question to question, so that a provider's prefix cache hits. `goal`, `feedback` and `memory` are made harmless like
    passages.

    Earlier turns of a conversation, in `earlier`, come behind the system message, and what is asked now behind them, so
    that a prompt begins like the one before. In a loop everything that changes from round to round comes as `attempt`:
    the messages of the attempt before it with its reply, to which feedback and new sources are added. `sub_answers` are
    the parts of a question that was taken apart, rendered as `pairs`.

    Each message's meta says for the receipt which prompt made it: `prompt` (its name, or `template`), `prompt_hash`,
    `prompt_layers` (the hash of every layer, profile and set of examples), `prompt_rendered` (the `messages` as role
    and text, their `sha256`, and hashes of their beginnings as `prefix`) and the `language`; and `asked`: the
    `complexity` and `type` of the question, the number of the `attempt`, and which sub-questions have no answer, as
    `missing`.

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
        profile: str | dict[str, Any] | None = None,
        examples: str | dict[str, Any] | None = None,
    ) -> None:
        """
        Set the prompt or the template, and its layers.

        :param prompt: A file's stem in `prompts/`, such as `simple`.
        :param template: The text of a template, instead of `prompt`. One without a `message` block is one user message.
        :param mode: The mode of `prompts/not_found.yml` whose sentence `not_found` is and whose rules are taken; None
            for the mode that the prompt is named after, else `simple`.
        :param persona: Who answers, a file's stem in `prompts/layers/persona/`; None for the profile's, else `shiguan`.
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
        self.profile = profile
        self.examples = examples
        self._name = prompt or "template"
        self._mode = mode or (prompt if prompt in modes_with_sentence() else "simple")
        not_found_sentence(self._mode, "en")
        source = load_prompt(prompt) if prompt is not None else str(template)
        self._builder = chat_prompt_builder(source, self._name)
        self._hash = prompt_hash(source)
        # A file that replaces a shipped one gets the variables of the shipped one.
        asked = source if prompt is None else load_prompt(prompt, shipped=True)
        self._use = layers_used(template_environment(self._builder), asked, self._name)
        self._profile = read_profile(profile)
        self._examples = read_examples(examples)
        for kind, name in (("persona", persona or self._profile["persona"] or _DEFAULT_PERSONA), ("rules", self._mode)):
            check_layer(kind, name)
        for name, value in (("persona", persona), ("profile", profile), ("examples", examples)):
            if value is not None and name not in (*self._use.kinds, *self._use.fixed):
                layer = name if name == "persona" else f'"layers/{name}.jinja"'
                raise ValueError(
                    f"Prompt `{self._name}` has no place for `{name}`. Leave it out, or put "
                    f"{{% include {layer} %}} into the template."
                )
        asking = self._builder if asked == source else chat_prompt_builder(asked, self._name)
        self._set_sockets(set(asking.variables) - set(self._use.kinds))

    def _set_sockets(self, own: set[str]) -> None:
        # Not sockets: their words come from files and depend on the mode, the parameters and the language.
        self._filled = {"not_found"} & (own | self._use.variables) | {"profile", "examples"} & self._use.variables
        self._inserted = (own | self._use.variables) - self._filled | ({"language"} if self._filled else set())
        self._variables = sorted(self._inserted - _TEXTS - {"language", "feedback", "pairs"})
        for name in self._variables:
            component.set_input_type(self, name, _SOCKET_TYPES.get(name, Any))
        for name in sorted(_TEXTS & self._inserted):
            component.set_input_type(self, name, str, "")
        chosen = {"language"} & self._inserted | {"profile"} & self._filled | _CHOSEN_BY_RUN.keys() & {*self._use.kinds}
        optional: dict[str, Any] = dict.fromkeys(sorted(chosen), str | None)
        optional |= {"earlier": list[ChatMessage] | None, "analysis": dict[str, Any] | None}
        optional |= {"sub_answers": list[dict[str, Any]] | None} if "pairs" in self._inserted else {}
        optional |= {"attempt": Any} if "feedback" in self._inserted else {}
        for name, type_ in optional.items():
            component.set_input_type(self, name, type_, None)

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
                f"Prompt `{self._name}` needs {', '.join(f'`{name}`' for name in missing)}: not provided. "
                f"Its variables are: {', '.join(self._variables)}. Connect or pass the missing ones."
            )
        earlier: list[ChatMessage] = list(kwargs.get("earlier") or [])
        again = bool(earlier) and earlier[0].is_from(ChatRole.SYSTEM)
        named = kwargs.get("profile") if "profile" in self._filled else None
        profile = self._profile if named is None else read_profile(named)
        analysis, parts = kwargs.get("analysis") or {}, kwargs.get("sub_answers") or []
        layers = self._chosen_layers(kwargs, analysis, profile)
        language = str(kwargs.get("language") or read_text(str(kwargs.get("query") or "")).language)
        texts = {name: neutral_text(kwargs.get(name) or "").strip() for name in ("character", "instructions", "memory")}
        feedback = attempt.feedback if attempt else kwargs.get("feedback") or ""
        inserted = texts | {
            "feedback": neutral_text(feedback).strip(),
            "pairs": _pairs(parts) or kwargs.get("pairs") or "",
            "goal": _goal(kwargs.get("goal"), kwargs.get("query")),
            "language": language,
        }
        inserted |= {"memory": ""} if again else {}
        filled: dict[str, Any] = {
            "not_found": not_found_sentence(self._mode, language),
            "profile": {key: in_language(profile[key], language) for key in ("rules", "sections")},
            "examples": in_language(self._examples, language),
        }
        variables = {kind: layer_path(kind, name) for kind, name in layers.items()}
        variables |= {name: kwargs[name] for name in self._variables}
        variables |= {name: value for name, value in inserted.items() if name in self._inserted}
        variables |= {name: filled[name] for name in self._filled}
        messages = rendered(self._builder, self._name, variables)
        asked = [message for message in messages if not message.is_from(ChatRole.SYSTEM)]
        system = [] if again else [message for message in messages if message.is_from(ChatRole.SYSTEM)]
        sent = [*system, *earlier, *asked] if earlier else messages
        hashes = self._layer_hashes(layers, self.profile if named is None else named)
        marks = {
            "prompt": self._name,
            "prompt_hash": self._hash,
            "asked": {
                "complexity": analysis.get("complexity"),
                "type": analysis.get("type"),
                "attempt": attempt.number if attempt else 1,
                "missing": [part["question"] for part in parts if part["status"] != "answered"],
            },
            **({"prompt_layers": hashes} if hashes else {}),
            **({"language": language} if "language" in self._inserted else {}),
            "prompt_rendered": {
                "sha256": messages_sha256(sent),
                "messages": [{"role": message.role.value, "text": message.text or ""} for message in sent],
            },
        }
        old = set(map(id, earlier))
        return {"prompt": [one if id(one) in old else with_meta(one, **marks) for one in sent]}

    def _chosen_layers(
        self, given: Mapping[str, Any], analysis: Mapping[str, Any], profile: Mapping[str, Any]
    ) -> dict[str, str]:
        layers = {"persona": self.persona or profile["persona"] or _DEFAULT_PERSONA, "rules": self._mode}
        for kind, otherwise in _CHOSEN_BY_RUN.items():
            layers[kind] = given.get(kind) or analysis.get(kind) or otherwise
        if not given.get("working") and analysis.get("type") in _WORKED_OUT:
            layers["working"] = "brief"
        for kind in self._use.kinds:
            check_layer(kind, layers[kind])
        return {kind: layers[kind] for kind in self._use.kinds}

    def _layer_hashes(self, layers: dict[str, str], profile: str | dict[str, Any] | None) -> dict[str, str]:
        names = [*(f"{kind}/{name}" for kind, name in layers.items()), *self._use.fixed]
        hashes = {name: _layer_hash(name, own_prompts()) for name in names}
        for folder, given in (("profiles", profile), ("examples", self.examples)):
            if isinstance(given, str):
                hashes[f"{folder}/{given}"] = prompt_hash(load_prompt_data(folder, given))
            elif given is not None:
                hashes[folder] = prompt_hash(json.dumps(given, ensure_ascii=False, sort_keys=True))
        return hashes


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
