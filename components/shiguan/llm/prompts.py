"""The prompts that ship with Shiguan, their layers, profiles and examples, and the not-found sentences."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml
from jinja2 import Environment, meta, nodes

from shiguan.errors import ConfigurationError
from shiguan.resources import resource_folder


def list_prompts() -> list[str]:
    """Name the prompts that ship with Shiguan, sorted, without the `.jinja` suffix."""
    return sorted(path.stem for path in resource_folder("prompts").glob("*.jinja"))


def load_prompt(name: str) -> str:
    """Read one prompt's Jinja source by its file's stem; a `ConfigurationError` lists the known ones."""
    known = list_prompts()
    if name not in known:
        raise ConfigurationError(
            f"There is no prompt `{name}`. Known prompts: {', '.join(known)}. "
            "Name one of these, or give the text itself as an inline `template`."
        )
    return (resource_folder("prompts") / f"{name}.jinja").read_text(encoding="utf-8")


def list_layers(kind: str | None = None) -> list[str]:
    """Name the layers of a kind (`shiguan` of `persona`), or all by their paths (`persona/shiguan`), sorted."""
    folder = resource_folder("prompts") / "layers"
    if kind is not None:
        return sorted(path.stem for path in (folder / kind).glob("*.jinja"))
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.jinja"))


def load_layer(name: str) -> str:
    """Read one layer's Jinja source by its path, such as `persona/shiguan`; an error lists the known ones."""
    known = list_layers()
    if name not in known:
        raise ConfigurationError(
            f"There is no prompt layer `{name}`. Known layers: {', '.join(known)}. Name one of these."
        )
    return (resource_folder("prompts") / "layers" / f"{name}.jinja").read_text(encoding="utf-8")


def load_prompt_data(folder: str, name: str) -> str:
    """Read the YAML that prompts are filled with from `profiles` or `examples`; an error lists the known files."""
    known = sorted(path.stem for path in (resource_folder("prompts") / folder).glob("*.yml"))
    if name not in known:
        raise ConfigurationError(
            f"There is no `{name}` in prompts/{folder}. Known: {', '.join(known)}. Name one of these."
        )
    return (resource_folder("prompts") / folder / f"{name}.yml").read_text(encoding="utf-8")


@cache
def _not_found_sentences() -> dict[str, dict[str, str]]:
    path = resource_folder("prompts") / "not_found.yml"
    sentences: dict[str, dict[str, str]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return sentences


def not_found_sentence(mode: str, language: str) -> str:
    """
    Give the one sentence with which a mode says that the sources do not hold the answer.

    The prompt asks the LLM for exactly this sentence, the answerability gate says it, and the citation extractor
    recognises it, so it lives in one place: `prompts/not_found.yml`.
    """
    modes = _not_found_sentences()
    if mode not in modes:
        raise ConfigurationError(f"There is no not-found sentence for mode `{mode}`. Known modes: {', '.join(modes)}.")
    return modes[mode].get(language, modes[mode]["en"])


def modes_with_sentence() -> tuple[str, ...]:
    return tuple(_not_found_sentences())


KINDS = ("persona", "rules", "task", "scope", "working")
"""The kinds of layer of which one is chosen by name: `{% include persona %}` in a template."""

_PREFIX, _SUFFIX = "layers/", ".jinja"
_PROFILE_KEYS = ("persona", "rules", "sections")
_EXAMPLE_KEYS = {"sources", "question", "answer"}


@dataclass(frozen=True)
class LayerUse:
    """What a template includes."""

    fixed: tuple[str, ...]
    kinds: tuple[str, ...]
    variables: frozenset[str]


def layer_path(kind: str, name: str) -> str:
    """Give the name by which a template includes a layer, such as `layers/persona/shiguan.jinja`."""
    return f"{_PREFIX}{kind}/{name}{_SUFFIX}"


def layer_source(path: str) -> str | None:
    """Load what an `include` names, for Jinja; None if it is no layer of Shiguan's."""
    name = path.removeprefix(_PREFIX).removesuffix(_SUFFIX)
    return load_layer(name) if path == f"{_PREFIX}{name}{_SUFFIX}" and name in list_layers() else None


def layers_used(environment: Environment, source: str, name: str) -> LayerUse:
    """Find out what a template includes; a `ConfigurationError` if it is something that is no layer."""
    fixed: list[str] = []
    kinds: set[str] = set()
    for node in environment.parse(source).find_all(nodes.Include):
        if isinstance(node.template, nodes.Name) and node.template.name in KINDS:
            kinds.add(node.template.name)
        elif isinstance(node.template, nodes.Const) and layer_source(str(node.template.value)) is not None:
            fixed.append(str(node.template.value).removeprefix(_PREFIX).removesuffix(_SUFFIX))
        else:
            raise ConfigurationError(
                f"Prompt `{name}` includes something that is no layer. Include one of {', '.join(KINDS)}, or a file "
                "below `layers/` by its name."
            )
    chosen = tuple(kind for kind in KINDS if kind in kinds)
    eligible = [*fixed, *(f"{kind}/{layer}" for kind in chosen for layer in list_layers(kind))]
    variables: set[str] = set()
    for layer in eligible:
        variables |= meta.find_undeclared_variables(environment.parse(load_layer(layer)))
    return LayerUse(tuple(dict.fromkeys(fixed)), chosen, frozenset(variables))


def check_layer(kind: str, name: str) -> None:
    """Make sure that a layer exists; a `ConfigurationError` lists the known ones."""
    known = list_layers(kind)
    if name not in known:
        raise ConfigurationError(f"There is no {kind} `{name}`. Known: {', '.join(known)}. Name one of these.")


def read_profile(given: str | Mapping[str, Any] | None) -> dict[str, Any]:
    """Read a profile by its file's stem or as given: `persona`, a name or None; `rules` and `sections` by language."""
    data = _read("profiles", given) or {}
    if not isinstance(data, Mapping) or set(data) - set(_PROFILE_KEYS):
        raise ConfigurationError(
            f"Profile {_shown(given)} is not valid: it takes {', '.join(f'`{key}`' for key in _PROFILE_KEYS)}. "
            "Correct its keys."
        )
    for key in ("rules", "sections"):
        by_language = data.get(key) or {}
        if not isinstance(by_language, Mapping) or not all(_are_texts(texts) for texts in by_language.values()):
            raise ConfigurationError(
                f"Profile {_shown(given)} is not valid: `{key}` must have a list of texts for each language, such as "
                f"`{key}: {{en: [...], zh: [...]}}`. Correct it."
            )
    return {"persona": data.get("persona"), "rules": data.get("rules") or {}, "sections": data.get("sections") or {}}


def read_examples(given: str | Mapping[str, Any] | None) -> dict[str, list[dict[str, Any]]]:
    """Read examples by their file's stem or as given: by language, lists of `sources`, `question` and `answer`."""
    data = _read("examples", given) or {}
    if isinstance(data, Mapping) and all(_are_examples(examples) for examples in data.values()):
        return {str(language): list(examples) for language, examples in data.items()}
    raise ConfigurationError(
        f"Examples {_shown(given)} are not valid: each language needs a list of entries with `sources` (a list of "
        "texts), `question` and `answer`. Correct them."
    )


def in_language(by_language: Mapping[str, Any], language: str) -> list[Any]:
    """Choose what is written in a language, else in English, else nothing."""
    return list(by_language.get(language) or by_language.get("en") or [])


def _read(folder: str, given: str | Mapping[str, Any] | None) -> Any:
    return yaml.safe_load(load_prompt_data(folder, given)) if isinstance(given, str) else given


def _shown(given: str | Mapping[str, Any] | None) -> str:
    return f"`{given}`" if isinstance(given, str) else "given inline"


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _are_examples(value: Any) -> bool:
    return isinstance(value, Iterable) and all(
        isinstance(example, Mapping)
        and set(example) == _EXAMPLE_KEYS
        and _are_texts(example["sources"])
        and isinstance(example["question"], str)
        and isinstance(example["answer"], str)
        for example in value
    )
