"""
Write `docs/modes.md` from the pipeline files and `docs/components.md` from the components' docstrings.

    PYTHONPATH=components python docs/generate.py            # write both
    PYTHONPATH=components python docs/generate.py --check    # exit with 1 if either is out of date

What is said twice drifts apart; these two pages are said once, where they are true.
"""

import argparse
import importlib
import inspect
import pkgutil
import sys
from pathlib import Path
from typing import Any

import yaml
from haystack.core.component import Component

DOCS = Path(__file__).resolve().parent
PIPELINES = DOCS.parent / "pipelines"
MODES = ("index", "simple", "advanced", "precise")
STAGES = (
    "ingest",
    "query",
    "retrieval",
    "context",
    "answer",
    "llm",
    "grading",
    "memory",
    "stores.embedded",
    "stores.cluster",
)
NOTE = "<!-- Written by docs/generate.py; change the source instead. -->\n"


def modes_page() -> str:
    """Describe every pipeline of the embedded deployment: its opening comment, a diagram, its inputs and outputs."""
    parts = [
        NOTE,
        "# Modes\n",
        "A mode is a pipeline and a promise of cost and care. Every diagram is drawn from the file that it names; "
        "round nodes are what is asked and what comes back.\n",
    ]
    for mode in MODES:
        path = PIPELINES / "embedded" / f"{mode}.yml"
        text = path.read_text(encoding="utf-8")
        comment = " ".join(line.lstrip("# ") for line in _opening_comment(text))
        definition = yaml.safe_load(text)
        parts += [
            f"## {mode}\n",
            f"[`pipelines/embedded/{mode}.yml`](../pipelines/embedded/{mode}.yml)\n",
            comment + "\n",
        ]
        parts += ["```mermaid", "flowchart TD", *_diagram(definition), "```\n"]
    return "\n".join(parts)


def components_page() -> str:
    """Describe every component: what it does for the answer, its parameters, its sockets."""
    parts = [NOTE, "# Components\n", "In the order in which data flows through them.\n"]
    for stage in STAGES:
        classes = _components(stage)
        if not classes:
            continue
        package = importlib.import_module(f"shiguan.{stage}")
        parts += [f"## {stage.replace('.', '/')}/\n", (package.__doc__ or "").strip() + "\n"]
        for cls in classes:
            parts += [f"### {cls.__name__}\n", f"`{cls.__module__}.{cls.__name__}`\n"]
            parts += [inspect.getdoc(cls) or "", ""]
            for title, method in (("Parameters", cls.__init__), ("Run", cls.run)):
                fields = _fields(inspect.getdoc(method) or "")
                if fields:
                    parts += [f"**{title}**\n", *fields, ""]
    return "\n".join(parts).rstrip() + "\n"


def _opening_comment(text: str) -> list[str]:
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line)
    return lines


def _diagram(definition: dict[str, Any]) -> list[str]:
    lines = [
        f'    {name}["{name}<br/><small>{spec["type"].rsplit(".", 1)[1]}</small>"]'
        for name, spec in definition["components"].items()
    ]
    for name, targets in definition.get("inputs", {}).items():
        lines.append(f"    in_{name}([{name}])")
        lines += [f"    in_{name} --> {target.split('.')[0]}" for target in targets]
    for edge in definition["connections"]:
        sender, receiver = edge["sender"], edge["receiver"]
        label = sender.split(".", 1)[1].replace("(", "").replace(")", "").replace("|", " or ")
        lines.append(f'    {sender.split(".")[0]} -- "{label}" --> {receiver.split(".")[0]}')
    for name, target in definition.get("outputs", {}).items():
        lines += [f"    out_{name}([{name}])", f"    {target.split('.')[0]} --> out_{name}"]
    return lines


def _components(stage: str) -> list[type]:
    package = importlib.import_module(f"shiguan.{stage}")
    found = []
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        for name, value in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if value.__module__ == module.name and not name.startswith("_") and issubclass(value, Component):
                found.append(value)
    return found


def _fields(docstring: str) -> list[str]:
    """Turn `:param x: text` and its kin into a list, continuation lines joined."""
    fields: list[str] = []
    for line in docstring.splitlines():
        if line.startswith(":"):
            head, _, text = line[1:].partition(":")
            kind, _, name = head.partition(" ")
            label = {"param": f"`{name}`", "returns": "returns", "raises": f"raises `{name}`"}.get(kind, kind)
            fields.append(f"- {label}: {text.strip()}")
        elif fields and line.startswith(" "):
            fields[-1] += " " + line.strip()
    return fields


def main() -> int:
    """Write or check both pages."""
    parser = argparse.ArgumentParser(description="Write docs/modes.md and docs/components.md.")
    parser.add_argument("--check", action="store_true", help="only tell whether they are up to date")
    check = parser.parse_args().check
    stale = []
    for name, text in (("modes.md", modes_page()), ("components.md", components_page())):
        path = DOCS / name
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not check:
            path.write_text(text, encoding="utf-8")
    if check and stale:
        print(f"Out of date: {', '.join(stale)}. Run `make docs`.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
