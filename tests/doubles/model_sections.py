"""Deployments of one's own: the shipped modes, with other models in `models.yml` and other sections in the file."""

import re
from pathlib import Path
from typing import Any

import yaml

PIPELINES = Path(__file__).resolve().parents[2] / "pipelines"


def mode_with(folder: Path, mode: str, *, models: dict[str, Any] | None = None, **sections: Any) -> Path:
    """
    Write a mode of the embedded deployment with other models, or with other sections; the rules of its models stay.

    The folder is then one for SHIGUAN_PIPELINES_DIR, where `models.yml` counts for every mode.
    """
    own = folder / "embedded"
    own.mkdir(exist_ok=True)
    if models is not None:
        shipped = yaml.safe_load((PIPELINES / "embedded" / "models.yml").read_text(encoding="utf-8"))
        (own / "models.yml").write_text(yaml.safe_dump({**shipped, **models}, sort_keys=False), encoding="utf-8")
    text = (PIPELINES / "embedded" / f"{mode}.yml").read_text(encoding="utf-8")
    for name, section in sections.items():
        text = re.sub(rf"^{name}:\n(?:  .*\n)+", "", text, flags=re.MULTILINE)
        text += f"\n{yaml.safe_dump({name: section}, sort_keys=False)}"
    path = own / f"{mode}.yml"
    path.write_text(text, encoding="utf-8")
    return path


def named(llm: Any, *names: str, **more: Any) -> list[dict[str, Any]]:
    """Describe models at a stand-in, each called there as it is named here."""
    return [{"name": name, "base_url": llm.url, "model": name, **more} for name in names]
