"""Shows an answer on a terminal while it is made, with the passages that it rests on."""

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, Self

from haystack import Document
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from shiguan.answer.quotations import QUOTING
from shiguan.commands.terminal import place_line, print_indented
from shiguan.text.terminal import console_for_people

_VERDICT_STYLES = {"supported": "green", "partial": "yellow", "unsupported": "red", "contradicted": "bold red"}
_MAX_QUOTE = 300


class AnswerView:
    """Shows an answer while it is made and, on a terminal, how long the model has been working."""

    def __init__(self, query: str) -> None:
        self._console = console_for_people()
        self._console.print(Text(query, style="bold"))
        self._console.print()
        self._text = ""
        errors = console_for_people(stderr=True)
        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        self._waiting = Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal)
        self._task = self._waiting.add_task("looking for passages")

    def __enter__(self) -> Self:
        self._waiting.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._waiting.stop()

    def show(self, name: str, data: dict[str, Any]) -> None:
        """Show one event of the stream; the last one has the answer object."""
        if name == "generation_start":
            attempt = f", attempt {data['attempt']}" if data["attempt"] > 1 else ""
            self._waiting.reset(self._task, description=f"waiting for the model{attempt}")
        elif name == "token":
            self._text += data["text"]
        elif name == "claim":
            self._print((f"  {data['verdict']}", _VERDICT_STYLES.get(data["verdict"], "")))
        elif name == "generation_complete":
            self._waiting.stop()
            if data["status"] not in QUOTING:
                self._print()
                self._console.print()
            _print_rest(self._console, data)

    def _print(self, *verdict: tuple[str, str]) -> None:
        text, self._text = self._text.strip("\n "), ""
        if text:
            self._waiting.stop()
            print_indented(self._console, Text.assemble(text, *verdict), 2)
            self._waiting.start()


def _print_rest(console: Console, answer: dict[str, Any]) -> None:
    """Print the passages behind an answer, and how it came about."""
    if answer["status"] in QUOTING:
        _print_quotations(console, answer)
    elif answer["citations"]:
        _print_citations(console, answer["citations"])
    metadata = answer["metadata"]
    for sentence in _reservations(answer):
        print_indented(console, Text(sentence), 2)
        console.print()
    for name, value in metadata.get("explain", {}).items():
        _print_explained(console, name, value)
    seconds = metadata["timings_ms"].get("total", 0.0) / 1000
    calls = metadata["llm_calls"]
    console.print(
        Text(
            f"  {answer['mode']} · {metadata['model'] or 'no model'} · {calls} LLM call{'' if calls == 1 else 's'} · "
            f"{seconds:.2f} s",
            style="dim",
        )
    )
    _print_warnings(console, metadata["warnings"])


def _reservations(answer: dict[str, Any]) -> Iterator[str]:
    """Explain an unsure answer: names that are not in the library, and passages without vectors."""
    if answer["status"] not in ("closest", "not_found"):
        return
    for absent in answer["metadata"].get("absent") or ():
        near = f" Names that do: {', '.join(absent['near'])}." if absent["near"] else ""
        yield f"{absent['term']} does not occur in your library.{near}"
    if waiting := answer["metadata"].get("waiting"):
        yield f"The library is still being read: {waiting:,} passages are not searched by meaning yet. Ask again later."


def _print_citations(console: Console, citations: list[dict[str, Any]]) -> None:
    numbered = itemgetter("number")
    for _, same in groupby(sorted(citations, key=numbered), key=numbered):
        passages = list(same)
        _print_head(console, passages[0])
        for citation in passages:
            verdict = f"  {citation['verdict']} {citation['confidence']:.2f}"
            style = _VERDICT_STYLES.get(citation["verdict"], "")
            print_indented(console, Text.assemble(_quote(citation["quote"]), (verdict, style)), 6)
    console.print()


def _print_head(console: Console, citation: dict[str, Any]) -> None:
    head = Text.assemble((f"  [{citation['number']}] ", "bold cyan"), place_line(citation))
    console.print(head, overflow="ellipsis", no_wrap=True)


def _print_quotations(console: Console, answer: dict[str, Any]) -> None:
    # What the passages are is said in the question's language.
    introduction = answer["answer"].partition("\n")[0]
    if answer["status"] == "closest":
        print_indented(console, Text(introduction, style="bold"), 2)
        console.print()
    for citation in answer["citations"]:
        _print_head(console, citation)
        text, at = Text(citation["quote"]), citation["start"]
        for spans, style in (([citation["sentence"]], "bold"), (citation["words"], "underline")):
            for start, end in spans:
                text.stylize(style, start - at, end - at)
        print_indented(console, text, 6)
        console.print()
    if answer["status"] == "quoted":
        print_indented(console, Text(introduction, style="dim"), 2)
        console.print()


def print_passages(query: str, documents: list[Document], warnings: list[str]) -> None:
    console = console_for_people()
    console.print(Text(query, style="bold"))
    console.print()
    if not documents:
        console.print("  Nothing in the library matches.")
    for number, document in enumerate(documents, start=1):
        heading = Text.assemble(
            (f"  {number:>2}  ", "bold cyan"), place_line(document.meta), (f"  {document.score:.4f}", "dim")
        )
        console.print(heading, overflow="ellipsis", no_wrap=True)
        matches = document.meta.get("matches") or [{"start": 0, "end": _MAX_QUOTE}]
        text = (document.content or "")[matches[0]["start"] : matches[0]["end"]]
        print_indented(console, _quote(text), 6)
    _print_warnings(console, warnings)


def _print_explained(console: Console, name: str, value: Any) -> None:
    console.print(Text(f"  {name}", style="bold magenta"))
    for entry in value if isinstance(value, list) else [value]:
        text = entry if isinstance(entry, str) else json.dumps(entry, ensure_ascii=False, default=str)
        print_indented(console, Text(text), 6)
    console.print()


def _quote(text: str) -> Text:
    flat = " ".join(text.split())
    return Text(flat if len(flat) <= _MAX_QUOTE else flat[:_MAX_QUOTE].rstrip() + " …", style="italic")


def _print_warnings(console: Console, warnings: Iterable[str]) -> None:
    for warning in warnings:
        print_indented(console, Text(f"note: {warning}", style="yellow"), 2)
