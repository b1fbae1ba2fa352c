"""Reads what Markdown files hold beside their text: front matter, notes, comments, link definitions, attributes."""

import re
import tomllib
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml

from shiguan.text.languages import detect_language
from shiguan.text.works import work_of

_FRONT_MATTER = re.compile(
    r"\A(?:---[ \t]*\r?\n(?P<yaml>.*?)^(?:---|\.\.\.)|\+\+\+[ \t]*\r?\n(?P<toml>.*?)^\+\+\+)[ \t]*\r?$\n?", re.S | re.M
)
_LONGEST_FRONT_MATTER = 16 * 1024
_SAMPLE = 400
_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_DEFINITION = re.compile(r" {0,3}\[\^([^\]\s]{1,100})\]:(.*)", re.DOTALL)
_INDENTED = re.compile(r" {4}|\t")
# A line that ends a note although no blank line is before it.
_OTHER = re.compile(r" {0,3}(?:[#>|]|[-*+][ \t]|\[\^|\d{1,9}[.)][ \t])")
_LINK = re.compile(
    r" {0,3}\[(?!\^)[^\]\n]{1,500}\]:[ \t]*<?\S+>?(?:[ \t]+(?:\"[^\"]*\"|'[^']*'|\([^)]*\)))?[ \t]*\r?\n?\Z"
)
# `{#id .class key=value}` at the end of a line, or after a link or a code.
_ATTRIBUTE = r"(?:[#.][\w:.-]+|[\w-]+=(?:\"[^\"\n]*\"|[^\s\"}]+))"
_ATTRIBUTES = re.compile(
    rf"(?:[ \t](?=\{{[^{{}}]*\}}[ \t]*\r?\n?\Z)|(?<=[\])`]))"
    rf"\{{:?[ \t]*(?:{_ATTRIBUTE}|-)(?:[ \t]+{_ATTRIBUTE})*[ \t]*\}}"
)
# Code stays as it is; then the mark of a note, and a note that is written in the text.
_INLINE = re.compile(
    r"(?P<code>(?<!`)(`{1,20})(?!`).*?(?<!`)\2(?!`))|\[\^(?P<mark>[^\]\s]{1,100})\]|\^\[(?P<own>(?:[^\[\]\n]|\[[^\[\]\n]*\]){1,2000})\]"
)
_NAMES = {
    "title": "title", "author": "author", "authors": "author", "editor": "editor", "translator": "translator",
    "date": "year", "year": "year", "publisher": "publisher", "edition": "edition", "isbn": "identifier",
}  # fmt: skip
_MOST_PEOPLE = 20


class MarkdownText(NamedTuple):
    """A text as a reader sees it, the places of the notes that were put into it, and what its front matter says."""

    text: str
    notes: list[tuple[int, int]]
    work: dict[str, Any]


def read_markdown(raw: str) -> MarkdownText:
    """
    Leave out of a Markdown text what a reader does not see, and put each note where the text first refers to it.

    Front matter (YAML or TOML) gives title and author. Code is left as it is; so are a note to which nothing refers,
    and a mark without a note.
    """
    front = _FRONT_MATTER.match(raw)
    work = _stated(front) if front else None
    lines = list(_lines(raw if front is None or work is None else raw[front.end() :]))
    notes, own = _definitions(lines)
    marked = {found["mark"] for line, code in lines if not code for found in _marks(line)}
    left_out = {at for at, name in own.items() if name in marked}
    waiting = {name: text for name, text in notes.items() if name in marked}
    pieces: list[str] = []
    places: list[tuple[int, int]] = []
    length = 0
    for at, (line, code) in enumerate(lines):
        for piece, is_note in [] if at in left_out else [(line, False)] if code else _spliced(line, waiting, notes):
            pieces.append(piece)
            places += [(length, length + len(piece))] if is_note else []
            length += len(piece)
    return MarkdownText("".join(pieces), places, work or {})


def _stated(front: re.Match[str]) -> dict[str, Any] | None:
    """Return what front matter says of the work; None where it is no front matter but a text between two rules."""
    written, is_toml = front["yaml"] or front["toml"] or "", front["toml"] is not None
    try:
        if len(written) > _LONGEST_FRONT_MATTER:
            return {}
        given = tomllib.loads(written.replace("\r", "")) if is_toml else yaml.safe_load(written)
    except (yaml.YAMLError, ValueError, RecursionError, TypeError):
        return {}
    if not isinstance(given, dict):
        return None if isinstance(given, str) else {}
    return work_of({_NAMES[key]: _texts(value) for key, value in given.items() if key in _NAMES})


def _texts(value: Any) -> list[str]:
    """Return a value, or those of a list; what is nested deeper may be endless."""
    values = value[:_MOST_PEOPLE] if isinstance(value, list) else [value]
    values = [each.get("name") if isinstance(each, dict) else each for each in values]
    return [str(each) for each in values if each is not None and not isinstance(each, list | dict | set | tuple)]


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the lines with something that a reader sees, and whether each is code."""
    fence = ""
    comment = False
    last = text.rfind("-->")  # a comment that never ends is none
    for match in _LINE.finditer(text):
        line = match[0]
        fenced = _FENCE.match(line) if not comment else None
        if fence:
            yield line, True
            if fenced and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif fenced:
            fence = fenced[1]
            yield line, True
        else:
            shown = line
            if comment or "<!--" in line:
                shown, comment = _without_comments(line, comment, last - match.start())
            if (shown == line or shown.strip()) and not _LINK.match(shown):
                yield _ATTRIBUTES.sub("", shown), False


def _without_comments(line: str, comment: bool, last: int) -> tuple[str, bool]:
    shown, at = "", 0
    while True:
        mark = "-->" if comment else "<!--"
        found = line.find(mark, at)
        if found < 0 or (not comment and found > last):
            return shown + ("" if comment else line[at:]), comment
        shown += "" if comment else line[at:found]
        at, comment = found + len(mark), not comment


def _definitions(lines: list[tuple[str, bool]]) -> tuple[dict[str, str], dict[int, str]]:
    """Find the notes by their names, and the lines that each takes."""
    notes: dict[str, list[str]] = {}
    own: dict[int, str] = {}
    name = ""
    for at, (line, code) in enumerate(lines):
        found = None if code else _DEFINITION.match(line)
        blank = not line.strip()
        if found and found[1] not in notes:
            name = found[1]
            notes[name] = [found[2]]
        elif not name or (code and not _INDENTED.match(line)):
            name = ""
            continue
        elif _INDENTED.match(line) or (not blank and lines[at - 1][0].strip() and not _OTHER.match(line)):
            notes[name].append(line)
        elif not blank:
            name = ""
            continue
        own[at] = name
    return {name: " ".join(" ".join(text).split()) for name, text in notes.items()}, own


def _marks(line: str) -> Iterator[re.Match[str]]:
    """Find code and marks in a line, behind the name of a note that it may define."""
    definition = _DEFINITION.match(line)
    return _INLINE.finditer(line, definition.start(2) if definition else 0)


def _spliced(line: str, waiting: dict[str, str], notes: dict[str, str]) -> Iterator[tuple[str, bool]]:
    """Yield a line in pieces, each with whether it is a note; a second mark of a note is left out."""
    at = 0
    chinese = None
    for found in _marks(line):
        name = found["mark"]
        if found["code"] or (name and name not in notes):
            continue
        text = found["own"] or waiting.pop(name, "")
        before, at = line[at : found.start()], found.end()
        yield before, False
        if text:
            chinese = detect_language(line[:_SAMPLE]) == "zh" if chinese is None else chinese
            if not chinese and not line[: found.start()][-1:].isspace():
                yield " ", False
            yield (f"[脚注：{text}]" if chinese else f"[Note: {text}]"), True
            if not chinese and line[at : at + 1].isalnum():
                yield " ", False
    yield line[at:], False
