"""Prompts by name: one Jinja file per LLM call, and the fixed phrases that several stages must say identically."""

from functools import cache

import yaml

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

    The prompt asks the LLM for exactly this sentence, the extractive answerer says it, and the citation extractor
    recognises it, so it lives in one place: `prompts/not_found.yml`.
    """
    modes = _not_found_sentences()
    if mode not in modes:
        raise ConfigurationError(f"There is no not-found sentence for mode `{mode}`. Known modes: {', '.join(modes)}.")
    return modes[mode].get(language, modes[mode]["en"])
