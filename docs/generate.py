"""
Write `docs/modes.md` from the pipeline files, `components.md` from docstrings and `options.md` from `AskOptions`.

    PYTHONPATH=components python docs/generate.py            # write all
    PYTHONPATH=components python docs/generate.py --check    # exit with 1 if one is out of date

What is said twice drifts apart; these pages are said once, where they are true.
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

from shiguan.checking.parameters import ENGINE_OPTIONS
from shiguan.engine.options import AskOptions

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


OPTIONS = """# Options of a question

The same names in Python (`Runner.ask(query, tenant_id=..., NAME=VALUE)`), in the body of `POST /api/v1/rag/query`,
`/api/v1/rag/query-stream`, their other names `/generate` and `/generate/stream`, each entry of `/api/v1/rag/batch`
and Hayhooks' `/MODE/run`, as fields beside `messages` at `/v1/chat/completions` (`extra_body` of OpenAI's client),
and as flags of `shiguan ask`, `chat` and `search`. What is left out is as the mode's file says.

A wrong value or an unknown name is refused before anything runs, with what is allowed: `RefusedError` in Python,
exit code 2, status 422. `/v1/chat/completions` answers 400, as OpenAI's programs expect; a name that it does not
know is left aside with a warning there, since such programs send fields of their own. An option that a mode cannot
hear is left aside with a warning.
"""
OPTIONS_AFTER = """
- `rewrite_method`: `hyde` adds a hypothetical passage and does not reword; with any other method but `auto` there
  is none. `decompose` needs a mode that answers sub-questions (`advanced`). A follow-up is made to stand alone by
  all but `none`.
- `retrieval` leaves one list out of the fusion. The probability that the passages answer is still computed from
  both.
- `confidence_threshold`: how good the probability is, see [quality.md](quality.md). The agent does not take it:
  what the library lacks it may find elsewhere.
- `max_tokens` goes before what the file says ([models.md](models.md)); what a question may cost is limited by a
  budget. OpenAI's `max_completion_tokens` is another name of it. An answer that was cut off says so.
- `sources` and `sections` limit a question to books, or parts of them, by name, and narrow `filters`. Headings are
  looked up in the library and unknown ones refused. `sections` are for the deployment `embedded`; the servers of the
  other cannot filter by them, which is told.

What an answer tells: [answer_object.md](answer_object.md).
"""


def options_page() -> str:
    """Write the table of options: values from the model that checks them, modes from the files that hear them."""
    inputs = {
        mode: _taken(yaml.safe_load((PIPELINES / "embedded" / f"{mode}.yml").read_text(encoding="utf-8")))
        for mode in (*MODES[1:], "agent")
    }
    flags = {"sources": "`--source`", "sections": "`--section`", "conversation_id": "`--conversation`", "filters": "-"}
    rows = []
    for name, schema in AskOptions.model_json_schema()["properties"].items():
        hearing = [f"`{mode}`" for mode in inputs if name in inputs[mode]]
        heard = "all" if name in ENGINE_OPTIONS or len(hearing) == len(inputs) else ", ".join(hearing)
        flag = flags.get(name, f"`--{name.replace('_', '-')}`")
        rows.append(f"| `{name}` | {flag} | {_values(schema['anyOf'][0])} | {heard} | {schema['description']} |")
    head = "| option | flag | values | modes | what it does |\n|---|---|---|---|---|\n"
    return f"{NOTE}\n{OPTIONS}\n{head}" + "\n".join(rows) + "\n" + OPTIONS_AFTER


def _values(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "minimum" in schema:
        return f"{schema['minimum']:,} to {schema['maximum']:,}"
    if "$ref" in schema:
        return "`calls`, `tokens`, `seconds`, `cost`"
    return {"string": "text", "array": "list", "object": "object"}[schema["type"]]


def _opening_comment(text: str) -> list[str]:
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        lines.append(line)
    return lines


def _taken(definition: dict[str, Any]) -> dict[str, list[str]]:
    return {**definition.get("inputs", {}), **definition.get("options", {})}


def _diagram(definition: dict[str, Any]) -> list[str]:
    lines = [
        f'    {name}["{name}<br/><small>{spec["type"].rsplit(".", 1)[1]}</small>"]'
        for name, spec in definition["components"].items()
    ]
    for name, targets in _taken(definition).items():
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
    """Write or check the pages."""
    parser = argparse.ArgumentParser(description="Write docs/modes.md, components.md and options.md.")
    parser.add_argument("--check", action="store_true", help="only tell whether they are up to date")
    check = parser.parse_args().check
    stale = []
    pages = {"modes.md": modes_page(), "components.md": components_page(), "options.md": options_page()}
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
