"""Modes of one's own: the shipped ones with other models, other sections, or an agent's tools that reach outside."""

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


def outside_tools(url: str) -> list[dict[str, Any]]:
    """The database of persons and the encyclopedia, at another address than the public one."""
    return [
        {"type": "shiguan.agent.cbdb_search.CBDBSearch", "init_parameters": {"url": f"{url}/person.php?o=json"}},
        {"type": "shiguan.agent.wikipedia_search.WikipediaSearch", "init_parameters": {"url": f"{url}/w/api.php"}},
    ]


def agent_file(folder: Path, tools: list[dict[str, Any]], *, deployment: str = "embedded") -> Path:
    data = yaml.safe_load((PIPELINES / deployment / "agent.yml").read_text(encoding="utf-8"))
    data["components"]["agent"]["init_parameters"]["tools"] += tools
    path = folder / "agent.yml"
    path.write_text("# LLM calls per question: 7.\n" + yaml.safe_dump(data, allow_unicode=True), encoding="utf-8")
    return path
