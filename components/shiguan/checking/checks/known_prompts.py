"""Prompts, layers and fixed sentences that a file names must exist."""

from collections.abc import Callable, Iterator
from functools import partial

from shiguan.checking.definition import Component, Definition, inner_components
from shiguan.checking.finding import Finding
from shiguan.errors import ConfigurationError
from shiguan.llm.prompt_layers import check_layer, read_examples, read_profile
from shiguan.llm.prompts import load_prompt, not_found_sentence

_OURS = "shiguan."
_BUILDER = "shiguan.answer.prompt_file_builder.PromptFileBuilder"
_LAYERS = ("persona", "rules", "task", "scope")


def check_known_prompts(definition: Definition) -> Iterator[Finding]:
    """Find names that lead to no prompt."""
    for component in definition.components.values():
        for one in (component, *inner_components(component)):
            if one.type.startswith(_OURS):
                yield from _check(one)


def _check(component: Component) -> Iterator[Finding]:
    given = component.parameters
    asked: dict[str, Callable[[], object]] = {}
    if isinstance(given.get("prompt"), str):
        asked["prompt"] = partial(load_prompt, given["prompt"])
    if isinstance(given.get("mode"), str):
        asked["mode"] = partial(not_found_sentence, given["mode"], "en")
    if component.type == _BUILDER:
        asked |= {kind: partial(check_layer, kind, given[kind]) for kind in _LAYERS if isinstance(given.get(kind), str)}
        asked["profile"] = partial(read_profile, given.get("profile"))
        asked["examples"] = partial(read_examples, given.get("examples"))
        if (given.get("prompt") is None) == (given.get("template") is None):
            yield Finding(
                (*component.place, "init_parameters"),
                f"Both or neither of `prompt` and `template` are given to `{component.name}`.",
                "Expected exactly one.",
                "Name a prompt, or write a template.",
                unsafe=False,
            )
    for name, ask in asked.items():
        try:
            ask()
        except ConfigurationError as error:
            problem, _, rest = str(error).partition(". ")
            expected, _, next_step = rest.rpartition(". ")
            yield Finding(
                (*component.place, "init_parameters", name),
                f"{problem}.",
                f"{expected}." if expected else "Expected one that exists.",
                next_step or "Correct the name.",
                unsafe=False,
            )
