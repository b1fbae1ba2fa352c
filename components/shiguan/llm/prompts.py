"""The prompts that ship with Shiguan, their layers, profiles and examples, and the not-found sentences."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, meta, nodes
from pydantic import BaseModel, TypeAdapter, ValidationError

from shiguan.errors import ConfigurationError
from shiguan.resources import read_texts, resource_folder


def _check_known(name: str, known: Sequence[str], what: str) -> None:
    if name not in known:
        raise ConfigurationError(f"There is no {what}. Known: {', '.join(known)}. Name one of these.")


_OWN = "SHIGUAN_PROMPTS_DIR"


def own_prompts() -> Path | None:
    """Return the folder whose files replace shipped ones of the same name, if one is set."""
    given = os.environ.get(_OWN)
    if given and not Path(given).is_dir():
        raise ConfigurationError(
            f"`--prompts` or ${_OWN} names {given}, which is not a folder. Make it, or name another one or none."
        )
    return Path(given) if given else None


def read_prompt_file(name: str, *, shipped: bool = False) -> str:
    own = None if shipped else own_prompts()
    path = own / name if own is not None and (own / name).is_file() else resource_folder("prompts") / name
    return path.read_text(encoding="utf-8-sig")


def list_prompts() -> list[str]:
    """List the prompts that ship with Shiguan, sorted, without the `.jinja` suffix."""
    return sorted(path.stem for path in resource_folder("prompts").glob("*.jinja"))


def load_prompt(name: str, *, shipped: bool = False) -> str:
    """Read a prompt: the user's own, if there is one, unless `shipped`."""
    _check_known(name, list_prompts(), f"prompt `{name}`")
    return read_prompt_file(f"{name}.jinja", shipped=shipped)


def list_layers(kind: str | None = None) -> list[str]:
    """List the layers of a kind (`shiguan` of `persona`), or all by their paths (`persona/shiguan`), sorted."""
    layers = _layers_in(resource_folder("prompts") / "layers")
    return [name.removeprefix(f"{kind}/") for name in layers if kind is None or name.startswith(f"{kind}/")]


@cache  # what ships does not change under a running process, and every prompt asks for it a dozen times
def _layers_in(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.jinja"))


def load_layer(name: str, *, shipped: bool = False) -> str:
    return read_prompt_file(f"{_PREFIX}{name}{_SUFFIX}", shipped=shipped)


@cache  # every prompt builder parses the same thirty texts
def _variables(text: str) -> frozenset[str]:
    return frozenset(meta.find_undeclared_variables(Environment(autoescape=True).parse(text)))


def check_layer(kind: str, name: str) -> None:
    _check_known(name, list_layers(kind), f"{kind} `{name}`")


def load_prompt_data(folder: str, name: str) -> str:
    """Read the YAML that prompts are filled with from `profiles` or `examples`; an error lists the known files."""
    path = resource_folder("prompts") / folder
    _check_known(name, sorted(file.stem for file in path.glob("*.yml")), f"`{name}` in prompts/{folder}")
    return read_prompt_file(f"{folder}/{name}.yml")


def not_found_sentence(mode: str, language: str) -> str:
    """Return the sentence with which a mode says that the sources do not hold the answer."""
    modes: dict[str, dict[str, str]] = read_texts("not_found")
    _check_known(mode, list(modes), f"not-found sentence for mode `{mode}`")
    return modes[mode].get(language, modes[mode]["en"])


def modes_with_sentence() -> tuple[str, ...]:
    return tuple(read_texts("not_found"))


KINDS = ("persona", "rules", "task", "scope", "working")
"""The kinds of layers that a template includes by a variable, such as `{% include persona %}`."""

_PREFIX, _SUFFIX = "layers/", ".jinja"


@dataclass(frozen=True)
class LayerUse:
    """The layers that a template includes, and the variables that they need."""

    fixed: tuple[str, ...]
    kinds: tuple[str, ...]
    variables: frozenset[str]


def layer_path(kind: str, name: str) -> str:
    """Return the path by which a template includes a layer, such as `layers/persona/shiguan.jinja`."""
    return f"{_PREFIX}{kind}/{name}{_SUFFIX}"


def layer_source(path: str) -> str | None:
    """Load the layer that an `include` names, for Jinja; None if there is no such layer."""
    name = path.removeprefix(_PREFIX).removesuffix(_SUFFIX)
    return load_layer(name) if path == f"{_PREFIX}{name}{_SUFFIX}" and name in list_layers() else None


def layers_used(environment: Environment, source: str, name: str) -> LayerUse:
    """Find the layers that a template includes; including anything else is a `ConfigurationError`."""
    fixed: list[str] = []
    kinds: set[str] = set()
    for node in environment.parse(source).find_all(nodes.Include):
        if isinstance(node.template, nodes.Name) and node.template.name in KINDS:
            kinds.add(node.template.name)
        elif isinstance(node.template, nodes.Const) and layer_source(str(node.template.value)) is not None:
            fixed.append(str(node.template.value).removeprefix(_PREFIX).removesuffix(_SUFFIX))
        else:
            raise ConfigurationError(
                f"Prompt `{name}` includes something that is not a layer. Include one of {', '.join(KINDS)}, or a file "
                "below `layers/` by its name."
            )
    chosen = tuple(kind for kind in KINDS if kind in kinds)
    eligible = [*fixed, *(f"{kind}/{layer}" for kind in chosen for layer in list_layers(kind))]
    # An own layer gets the variables of the shipped one.
    variables: set[str] = set()
    for layer in eligible:
        variables |= _variables(load_layer(layer, shipped=True))
    return LayerUse(tuple(dict.fromkeys(fixed)), chosen, frozenset(variables))


class _Profile(BaseModel, extra="forbid"):
    persona: Any = None
    rules: dict[str, list[str]] | None = None
    sections: dict[str, list[str]] | None = None


class _Example(BaseModel, extra="forbid"):
    sources: list[str]
    question: str
    answer: str


def read_profile(given: str | Mapping[str, Any] | None) -> dict[str, Any]:
    """Read a profile by its file's stem or as given: `persona`, a name or None; `rules` and `sections` by language."""
    wanted = "It takes `persona`, `rules`, `sections`; the last two are lists of texts for each language"
    found: _Profile = _read(TypeAdapter(_Profile), "profiles", given, f"{wanted}, such as `rules: {{en: [...]}}`")
    return {"persona": found.persona, "rules": found.rules or {}, "sections": found.sections or {}}


def read_examples(given: str | Mapping[str, Any] | None) -> dict[str, list[dict[str, Any]]]:
    """Read examples by their file's stem or as given: by language, lists of `sources`, `question` and `answer`."""
    wanted = "Each language takes a list of entries with `sources` (a list of texts), `question` and `answer`"
    found = _read(TypeAdapter(dict[str, list[_Example]]), "examples", given, wanted)
    return {language: [example.model_dump() for example in examples] for language, examples in found.items()}


def in_language(by_language: Mapping[str, Any], language: str) -> list[Any]:
    """Choose the entries of a language, else of English, else none."""
    return list(by_language.get(language) or by_language.get("en") or [])


def _read(form: TypeAdapter[Any], folder: str, given: str | Mapping[str, Any] | None, wanted: str) -> Any:
    try:
        data = yaml.safe_load(load_prompt_data(folder, given)) if isinstance(given, str) else given
        return form.validate_python(data or {})
    except ValidationError as error:
        fault = error.errors()[0]
        name, place = f"`{given}`" if isinstance(given, str) else "what is given", ".".join(map(str, fault["loc"]))
        raise ConfigurationError(
            f"Of the {folder}, {name} is not valid: {fault['msg']} (`{place}`). {wanted}. Correct it."
        ) from error
