"""
Write `docs/modes.md` from the pipeline files, the table of `options.md` from `AskOptions`, a reference from docstrings.

    PYTHONPATH=components python docs/generate.py                # write the pages
    PYTHONPATH=components python docs/generate.py --check        # exit with 1 if one is out of date
    PYTHONPATH=components python docs/generate.py --reference    # write build/reference.md, which is not committed

What is said twice drifts apart; these pages are said once, where they are true.
"""

import argparse
import importlib
import inspect
import pkgutil
import re
import sys
from pathlib import Path
from typing import Any

import yaml
from haystack.core.component import Component

from shiguan.engine.loading import describe_mode
from shiguan.engine.options import ENGINE_OPTIONS, AskOptions, allowed_values

DOCS = Path(__file__).resolve().parent
PIPELINES = DOCS.parent / "pipelines"
EXAMPLES = DOCS.parent / "examples" / "components"
MODES = ("simple", "advanced", "precise")
STAGES = "ingest query retrieval context answer llm grading memory stores.embedded stores.cluster".split()
NOTE = "<!-- Written by docs/generate.py; change the source instead. -->\n"


def modes_page() -> str:
    """Describe every mode of the embedded deployment by its opening comment, and draw the simplest."""
    parts = [
        NOTE,
        "# Modes\n",
        "`simple` is drawn in the order in which data flows, without `tenant_filter`, which feeds every reader; "
        "`make reference` draws the others. A mode of your own: [your_own_mode.md](your_own_mode.md).\n",
    ]
    for mode in MODES:
        comment = describe_mode("embedded", mode).replace("\n", " ")
        parts += [
            f"## {mode}\n",
            f"[`pipelines/embedded/{mode}.yml`](../pipelines/embedded/{mode}.yml)\n",
            comment + "\n",
        ]
        if mode == "simple":
            parts += _drawing(mode)
    return "\n".join(parts)


def _drawing(mode: str) -> list[str]:
    definition = yaml.safe_load((PIPELINES / "embedded" / f"{mode}.yml").read_text(encoding="utf-8"))
    return ["```mermaid", "flowchart TD", *_diagram(definition), "```\n"]


def reference_page() -> str:
    """Describe every component (what it does, parameters, sockets), draw the modes, show the examples."""
    parts = [NOTE, "# Reference of the components\n", "In the order in which data flows through them.\n"]
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
    parts.append("## Modes\n")
    for mode in MODES:
        parts += [f"### {mode}\n", *_drawing(mode)]
    parts.append("## Examples\n")
    for path in sorted(EXAMPLES.glob("*.py")):
        _, text, code = path.read_text(encoding="utf-8").split('"""', 2)
        title, _, text = text.strip().partition("\n")
        parts += [
            f"### {title.rstrip('.')} in a pipeline of your own\n",
            text.strip() + "\n",
            f"```python\n{code.strip()}\n```\n",
        ]
    return "\n".join(parts).rstrip() + "\n"


def options_page() -> str:
    """Write the table of options anew: values from the model that checks them, modes from the files that hear them."""
    inputs = {
        mode: _taken(yaml.safe_load((PIPELINES / "embedded" / f"{mode}.yml").read_text(encoding="utf-8")))
        for mode in (*MODES, "agent")
    }
    flags = {"sources": "`--source`", "sections": "`--section`", "conversation_id": "`--conversation`"}
    flags |= {"filters": "-", "history": "-", "strict": "-"}
    rows = ["| option | flag | values | modes | what it does |", "|---|---|---|---|---|"]
    for name, schema in AskOptions.model_json_schema()["properties"].items():
        hearing = [f"`{mode}`" for mode in inputs if name in inputs[mode]]
        heard = "all" if name in ENGINE_OPTIONS or len(hearing) == len(inputs) else ", ".join(hearing)
        flag = flags.get(name, f"`--{name.replace('_', '-')}`")
        rows.append(f"| `{name}` | {flag} | {_values(name)} | {heard} | {schema['description']} |")
    table = "".join(f"{row}\n" for row in rows)
    page = (DOCS / "options.md").read_text(encoding="utf-8")
    return re.sub(r"(?m)(?:^\|.*\n)+", lambda _: table, page, count=1)


def _values(name: str) -> str:
    values = allowed_values(name)
    return values if isinstance(values, str) else ", ".join(f"`{value}`" for value in values)


def _taken(definition: dict[str, Any]) -> dict[str, list[str]]:
    return {**definition.get("inputs", {}), **definition.get("options", {})}


def _diagram(definition: dict[str, Any]) -> list[str]:
    """Draw the components and what passes between them: one arrow for each pair, with the names of all sockets."""
    lines = [
        f'    {name}["{name}<br/><small>{spec["type"].rsplit(".", 1)[1]}</small>"]'
        for name, spec in definition["components"].items()
        if not spec["type"].endswith(".TenantFilter")
    ]
    hidden = {name for name, spec in definition["components"].items() if spec["type"].endswith(".TenantFilter")}
    pairs: dict[tuple[str, str], list[str]] = {}
    for edge in definition["connections"]:
        sender, _, socket = edge["sender"].partition(".")
        receiver = edge["receiver"].partition(".")[0]
        if sender not in hidden:
            pairs.setdefault((sender, receiver), []).append(socket)
    for (sender, receiver), sockets in pairs.items():
        label = ", ".join(dict.fromkeys(sockets)).replace("(", "").replace(")", "").replace("|", " or ")
        lines.append(f'    {sender} -->|"{label}"| {receiver}')
    asked = dict.fromkeys(target.split(".")[0] for target in _taken(definition).get("query", []))
    lines += ["    question([question])", *(f"    question --> {name}" for name in asked)]
    answers = definition.get("outputs", {}).get("answers")
    return [*lines, f"    {answers.split('.')[0]} --> answer([answer])"] if answers else lines


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
    """Write or check the pages."""
    parser = argparse.ArgumentParser(description="Write docs/modes.md and options.md, or the reference.")
    parser.add_argument("--check", action="store_true", help="only say whether they are up to date")
    parser.add_argument("--reference", action="store_true", help="write build/reference.md from the docstrings")
    options = parser.parse_args()
    if options.reference:
        path = DOCS.parent / "build" / "reference.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(reference_page(), encoding="utf-8")
        return 0
    check, stale = options.check, []
    pages = {"modes.md": modes_page(), "options.md": options_page()}
    for name, text in pages.items():
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
