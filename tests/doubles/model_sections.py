"""Pipeline files with models of their own: the shipped ones, with another `models` section and another `budget`."""

import re
from pathlib import Path
from typing import Any

import yaml

PIPELINES = Path(__file__).resolve().parents[2] / "pipelines"


def mode_with(folder: Path, mode: str, *, models: dict[str, Any] | None = None, **sections: Any) -> Path:
    """Write a mode of the embedded deployment with other models, or with other sections; its rules stay."""
    text = (PIPELINES / "embedded" / f"{mode}.yml").read_text(encoding="utf-8")
    if models is not None:
        found = re.search(r"^x-models: &models\n((?:  .*\n)+)", text, re.MULTILINE)
        assert found is not None
        section = {**yaml.safe_load(found[1]), **models}
        lines = "".join(f"  {line}\n" for line in yaml.safe_dump(section, sort_keys=False).splitlines())
        text = text.replace(found[1], lines)
    for name, section in sections.items():
        text = re.sub(rf"^{name}:\n(?:  .*\n)+", "", text, flags=re.MULTILINE)
        text += f"\n{yaml.safe_dump({name: section}, sort_keys=False)}"
    path = folder / f"{mode}.yml"
    path.write_text(text, encoding="utf-8")
    return path


def named(llm: Any, *names: str, **more: Any) -> list[dict[str, Any]]:
    """Describe models at a stand-in, each called there as it is named here."""
    return [{"name": name, "base_url": llm.url, "model": name, **more} for name in names]
