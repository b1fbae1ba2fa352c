"""Shows an answer on a terminal while it is made, with the passages that it rests on."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Self

from haystack import Document
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from shiguan.answer.quotations import QUOTING, is_part
from shiguan.commands.terminal import counted, place_line, print_indented
from shiguan.text.sentences import sentence_spans
from shiguan.text.terminal import console_for_people
from shiguan.text.terms import is_wide, size_of

_VERDICT_STYLES = {"supported": "green", "partial": "yellow", "unsupported": "red", "contradicted": "bold red"}
_RESERVATIONS = {
    "en": {
        "absent": "“{}” does not occur in your library.", "near": " Names that do: {}.", "comma": ", ",
        "waiting": "The library is still being indexed: {:,} passages cannot be searched by meaning yet. "
        "Ask again later.",
    },
    "zh": {
        "absent": "你的书库中没有“{}”。", "near": "相近的有：{}。", "comma": "、",
        "waiting": "书库还在建立索引：尚有{:,}段不能按意义检索。请稍后再问。",
    },
}  # fmt: skip
_MAX_QUOTE = 300
# The sentences beside the marked one are shown where all of it stays within this size.
_SHORT = 400
_MARK = re.compile(r"\[(\d{1,3})\]")


class AnswerView:
    """Shows an answer while it is made, its passages numbered as they come, and how long the model has been working."""

    def __init__(self, query: str, *, full: bool = False) -> None:
        """Set the question, and whether the whole passages are shown around what is quoted of them."""
        self._console = console_for_people()
        self._query, self._full = query, full
        self._text = ""
        self._numbers: dict[int, int] = {}
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
        if self._query:  # not before something is shown: a refused question is not repeated
            self._console.print(Text(self._query, style="bold"))
            self._console.print()
            self._query = ""
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
            self._print_rest(data)

    def _print(self, *verdict: tuple[str, str]) -> None:
        text, self._text = self._text.strip("\n "), ""
        if text:
            self._waiting.stop()
            print_indented(self._console, Text.assemble(self._remarked(text), *verdict), 2)
            self._waiting.start()

    def _renumbered(self, number: int) -> int:
        return self._numbers.setdefault(number, len(self._numbers) + 1)

    def _remarked(self, text: str) -> str:
        return _MARK.sub(lambda mark: f"[{self._renumbered(int(mark[1]))}]", text)

    def _print_rest(self, answer: dict[str, Any]) -> None:
        """Print the passages behind an answer, and how it came about."""
        metadata = answer["metadata"]
        claims = metadata.get("claims") or ()
        against = [claim for claim in claims if claim.get("against")]
        if answer["status"] in QUOTING:
            self._print_quotations(answer)
        else:
            reasons = {claim["start"]: claim["reason"] for claim in claims if claim["verdict"] == "partial"}
            self._print_citations(answer["citations"], reasons)
            self._print_contradictions(against)
            if self._full:
                self._print_passages(answer, [*answer["citations"], *(claim["against"] for claim in against)])
        for sentence in _reservations(answer):
            print_indented(self._console, Text(sentence), 2)
            self._console.print()
        for name, value in metadata.get("explain", {}).items():
            _print_explained(self._console, name, value)
        seconds = metadata["timings_ms"].get("total", 0.0) / 1000
        calls = counted(metadata["llm_calls"], "LLM call")
        how = f"  {answer['mode']} · {metadata['model'] or 'no model'} · {calls} · {seconds:.2f} s"
        self._console.print(Text(how, style="dim"))
        _print_warnings(self._console, metadata["warnings"])

    def _print_citations(self, citations: list[dict[str, Any]], reasons: dict[int, str]) -> None:
        """Print the passages that are cited; what is supported in part with the reason."""
        for number, passages in self._by_number(citations).items():
            self._print_head(passages[0], number)
            best = {citation["quote"]: citation for citation in sorted(passages, key=lambda one: one["confidence"])}
            for citation in best.values():
                verdict = f"  {citation['verdict']} {citation['confidence']:.2f}"
                if citation["verdict"] == "partial" and (reason := reasons.get(citation["claim"]["start"])):
                    verdict += f": {self._remarked(reason)}"
                style = _VERDICT_STYLES.get(citation["verdict"], "")
                print_indented(self._console, Text.assemble(_quote(citation["quote"]), (verdict, style)), 6)
        if citations:
            self._console.print()

    def _by_number(self, places: Iterable[dict[str, Any]]) -> dict[int, list[dict[str, Any]]]:
        grouped: dict[int, list[dict[str, Any]]] = {}
        for place in places:
            grouped.setdefault(self._renumbered(place["number"]), []).append(place)
        return dict(sorted(grouped.items()))

    def _print_contradictions(self, claims: list[dict[str, Any]]) -> None:
        for claim in claims:
            place = claim["against"]
            label = "Contradicted: " if claim["verdict"] == "contradicted" else "Another source disagrees: "
            print_indented(self._console, Text.assemble((label, "bold red"), claim["text"]), 2)
            self._print_head(place, self._renumbered(place["number"]))
            marked = _marked(self._console, place["quote"], place["start"], [], place.get("words") or [])
            print_indented(self._console, marked, 6)
            self._console.print()

    def _print_passages(self, answer: dict[str, Any], shown: list[dict[str, Any]]) -> None:
        for number, places in self._by_number(shown).items():
            self._print_head(places[0], number)
            print_indented(self._console, Text(_whole(answer, places[0]) or places[0]["quote"]), 6)
            self._console.print()

    def _print_head(self, citation: dict[str, Any], number: int) -> None:
        head = Text.assemble((f"  [{number}] ", "bold cyan"), place_line(citation))
        self._console.print(head, overflow="ellipsis", no_wrap=True)

    def _print_quotations(self, answer: dict[str, Any]) -> None:
        # What the passages are is said in the question's language.
        introduction = answer["answer"].partition("\n")[0]
        if answer["status"] == "closest":
            print_indented(self._console, Text(introduction, style="bold"), 2)
            self._console.print()
        # A passage that is quoted twice is named once.
        for number, citations in self._by_number(answer["citations"]).items():
            self._print_head(citations[0], number)
            if self._full and (whole := _whole(answer, citations[0])):
                first = citations[0]["start"] - whole.index(citations[0]["quote"])
                words = [word for citation in citations for word in citation["words"]]
                sentences = [citation["sentence"] for citation in citations]
                print_indented(self._console, _marked(self._console, whole, first, sentences, words), 6)
            else:
                for citation in citations:
                    if citation is not citations[0]:  # what stands between them is not shown
                        self._console.print()
                    print_indented(self._console, _short(self._console, citation), 6)
            self._console.print()
        if answer["status"] == "quoted":
            print_indented(self._console, Text(introduction, style="dim"), 2)
            self._console.print()


def _reservations(answer: dict[str, Any]) -> Iterator[str]:
    """Explain an unsure answer, in its language: names that are not in the library, and passages without vectors."""
    if answer["status"] not in ("closest", "not_found"):
        return
    metadata = answer["metadata"]
    texts = _RESERVATIONS["zh" if metadata.get("language") == "zh" else "en"]
    for absent in metadata.get("absent") or ():
        if absent["near"] and any(f"“{absent['term']}”" in warning for warning in metadata["warnings"]):
            continue
        near = texts["near"].format(texts["comma"].join(absent["near"])) if absent["near"] else ""
        yield texts["absent"].format(absent["term"]) + near
    waiting = metadata.get("waiting")
    if waiting and not any("have no vector yet" in warning for warning in metadata["warnings"]):
        yield texts["waiting"].format(waiting)


def _whole(answer: dict[str, Any], citation: dict[str, Any]) -> str:
    """Return the text of the passage that a citation is from, if the answer brings it."""
    found = (entry.get("content") or "" for entry in answer["documents"] if entry["id"] == citation.get("parent_id"))
    return next((text for text in found if citation["quote"] in text), "")


def _short(console: Console, citation: dict[str, Any]) -> Text:
    """Cut a quotation to its marked sentence, with those beside it where they are short."""
    quote, at = citation["quote"], citation["start"]
    start, end = (place - at for place in citation["sentence"])
    spans: list[tuple[int, int]] = []
    for first, last in sentence_spans(quote):
        goes_on = bool(spans) and is_part(quote[slice(*spans[-1])])
        spans.append((spans.pop()[0] if goes_on else first, last))
    around = [span for span in spans if span[0] < end and span[1] > start]
    if around and size_of(quote[around[0][0] : around[-1][1]]) <= _SHORT:
        start, end = min(start, around[0][0]), max(end, around[-1][1])
    before = [span for span in spans if span[1] <= start][-1:]
    after = [span for span in spans if span[0] >= end][:1]
    for first, last in [*after, *before]:
        low, high = min(start, first), max(end, last)
        # A note stays whole, and behind what it is a note on.
        noted = quote.count("[", first, last) != quote.count("]", first, last) or (
            last <= start and quote[first] == "["
        )
        if size_of(quote[low:high]) <= _SHORT and not noted:
            start, end = low, high
    start += len(quote[start:end]) - len(quote[start:end].lstrip())
    shown = quote[start:end].rstrip()
    text = _marked(console, shown, at + start, [citation["sentence"]], citation["words"])
    opening, closing = ("…" if is_wide(edge or " ") else " …" for edge in (shown[:1], shown[-1:]))
    return Text.assemble(opening[::-1] if quote[:start].strip() else "", text, closing if quote[end:].strip() else "")


def _marked(
    console: Console, text: str, offset: int, sentences: Iterable[list[int]], words: Iterable[list[int]]
) -> Text:
    """Mark sentences and words of a text that begins at an offset; with asterisks where there are no colours."""
    marked = Text(text)
    for spans, style in ((sentences, "bold"), (words, "underline")):
        for start, end in spans:
            marked.stylize(style, max(0, start - offset), max(0, end - offset))
    if console.color_system is not None:
        return marked
    edges = [(max(0, start - offset), min(len(text), end - offset)) for start, end in sentences or words]
    for start, end in sorted(edges, reverse=True):
        text = f"{text[:start]}**{text[start:end].rstrip()}**{text[end:]}" if start < end else text
    return Text(text)


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
