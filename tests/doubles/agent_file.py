"""The mode `agent` with tools that reach outside, as somebody who switches them on writes it."""

from pathlib import Path
from typing import Any

import yaml

PIPELINES = Path(__file__).resolve().parents[2] / "pipelines"
PACKAGE = "shiguan.agent"


def outside_tools(url: str) -> list[dict[str, Any]]:
    """The database of persons and the encyclopedia, at another address than the public one."""
    return [
        {"type": f"{PACKAGE}.cbdb_search.CBDBSearch", "init_parameters": {"url": f"{url}/person.php?o=json"}},
        {"type": f"{PACKAGE}.wikipedia_search.WikipediaSearch", "init_parameters": {"url": f"{url}/w/api.php"}},
    ]


def agent_file(folder: Path, tools: list[dict[str, Any]], *, deployment: str = "embedded") -> Path:
    data = yaml.safe_load((PIPELINES / deployment / "agent.yml").read_text(encoding="utf-8"))
    data["components"]["agent"]["init_parameters"]["tools"] += tools
    path = folder / "agent.yml"
    path.write_text("# LLM calls per question: 7.\n" + yaml.safe_dump(data, allow_unicode=True), encoding="utf-8")
    return path
