"""The state inside an element, and a block under construction: pieces of text and notes become content with offsets."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from shiguan.ingest.epub.notes import Note
from shiguan.ingest.epub.sections import Heading
from shiguan.ingest.epub.trees import Element, element_text, is_separate, visible
from shiguan.text.languages import detect_language, same_script
from shiguan.text.places import Mark, Run, runs_of

# So many cells of a table are repeated in the rows that they reach into, if they have no longer text.
_MOST_SPANS, _LONGEST_SPAN, _SPANS = 8, 100, ("rowspan", "colspan")
_UNSPACED = re.compile("[\u2e80-\ua4cf\uff00-\uff60]")
_WRAPPED = re.compile(rf"(?<={_UNSPACED.pattern})[^\S\n]*\n\s*(?={_UNSPACED.pattern})")
# Enough characters to detect a script.
_SAMPLE = 400


class Block(NamedTuple):
    """One paragraph, quote, caption, table or note of a book, with the meta of its document."""

    content: str
    meta: dict[str, Any]
    # Of a heading, which is in the sections of what stands below it.
    heading: Heading | None = None


class _Piece(NamedTuple):
    """A text and its node; or a note and its text; or, without a text, where a page begins."""

    text: str
    node: str = ""
    # The node's whole text, if the piece is taken from it, and the length of the gap before that in the piece.
    raw: str | None = None
    gap: int = 0
    note: Note | None = None
    page: str | None = None


@dataclass(eq=False)
class Frame:
    """The state inside an element, inherited from its parent and changed by itself."""

    element: Element
    path: str = ""
    cfi: str = ""
    start: int = 0
    host: "Frame | None" = None
    lines: "Frame | None" = None
    kind: str = "text"
    language: str = ""
    depth: int = 0
    table: "TableRows | None" = None
    # The number of the last item of a list that states one of three digits or more, a year; else below 0.
    item: int = -1
    heading: bool = False
    no_headings: bool = False
    preformatted: bool = False
    captioned: bool = False
    # The kind of a part that is not text of the book, if it is one.
    left_out: str = ""
    muted: bool = False
    uncounted: bool = False

    def inner(self, element: Element, path: str, cfi: str) -> "Frame":
        """Make the frame of an element in it: `dataclasses.replace` would take a third of the time for a book."""
        frame = object.__new__(Frame)
        vars(frame).update(vars(self), element=element, path=path, cfi=cfi)
        return frame

    @property
    def is_block(self) -> bool:
        """Whether its start and end separate words."""
        return not self.uncounted and is_separate(self.element)

    @property
    def shown(self) -> bool:
        """Whether its text goes into blocks."""
        return not (self.left_out or self.muted or self.uncounted)


@dataclass
class TableRows:
    """The cells of a table that reach over several rows, each of which has their text."""

    # Where the next cell of the row begins; of each cell that reaches further down its column, rows and text.
    column: int = 0
    spans: dict[int, tuple[int, str]] = field(default_factory=dict)

    def before(self, cell: Element | None) -> Iterator[str]:
        """Yield the texts of the cells above that come before a cell, or before the end of the row."""
        for column in sorted(self.spans):
            if column >= self.column and (cell is None or column == self.column):
                rows, text = self.spans.pop(column)
                if rows > 1:
                    self.spans[column] = rows - 1, text
                self.column = column + 1
                yield text
        if cell is None:
            self.column = 0
            return
        rows, columns = (int(own[:4]) if (own := cell.get(name, "")).isdecimal() else 1 for name in _SPANS)
        text = element_text(cell) if rows > 1 and len(self.spans) < _MOST_SPANS else ""
        if 0 < len(text) <= _LONGEST_SPAN:
            self.spans[self.column] = rows - 1, text
        self.column += max(columns, 1)


def item_label(frame: Frame, parent: Frame) -> str:
    """Return the year that numbers an item of a list; counts are left to who shows the list."""
    name, element = str(frame.element.tag), frame.element
    stated = element.get("start" if name == "ol" else "value", "") if name in ("ol", "li") else ""
    year = int(stated[:4]) if len(stated) > 2 and stated.isdecimal() else -1
    if name in ("ol", "ul"):
        frame.item = year - 1 if year > 0 else -1
    elif name == "li":
        parent.item = year if year > 0 else parent.item + (parent.item > 0)
        return f"{parent.item}. " if parent.item > 0 and frame.shown else ""
    return ""


@dataclass
class BlockBuilder:
    """Collects the pieces of one block: its text, and notes where they are referred to."""

    kind: str
    anchor: dict[str, Any]
    language: str
    page: str
    preformatted: bool = False
    length: int = 0
    _pieces: list[_Piece] = field(default_factory=list)
    _line_ended: bool = False  # whether the last text ends with a line of the file

    def add(self, text: str, *, gap: str = "", node: str = "", raw: str | None = None) -> None:
        """Add a gap and a text; `node` is the CFI of its node, `raw` the node's text if the text is taken from it."""
        if raw and "\n" in raw and not self.preformatted:
            # A line of the file that ends between Han characters ends no word.
            text = " ".join(visible(_WRAPPED.sub("", raw)).split())
            self._line_ended = self._line_ended or "\n" in raw[: -len(raw.lstrip())]
        if gap == " " and self._line_ended and _UNSPACED.match(text) and _UNSPACED.match(self.ending[-1:]):
            gap = ""
        self._line_ended = raw is not None and "\n" in raw[len(raw.rstrip()) :]
        self._pieces.append(_Piece(gap + text, node, raw, len(gap)))
        self.length += len(gap + text)

    def begin_page(self, label: str) -> None:
        self._pieces.append(_Piece("", page=label))

    def add_note(self, note: Note, text: str) -> None:
        if text:
            self._pieces.append(_Piece(text, note=note))

    @property
    def notes(self) -> list[tuple[Note, str]]:
        """The notes with their texts."""
        return [(piece.note, piece.text) for piece in self._pieces if piece.note is not None]

    @property
    def ending(self) -> str:
        """The last text, if no note is after it."""
        last = self._pieces[-1] if self._pieces else _Piece("")
        return last.text if last.note is None else ""

    def text(self) -> str:
        text = "".join(piece.text for piece in self._pieces if piece.note is None)
        return text.strip("\n").rstrip() if self.preformatted else text.strip()

    def build(self) -> Block | None:
        """Finish the block, still without its section; None where there is nothing to show."""
        plain = self.text()
        seen = detect_language(plain[:_SAMPLE]) if self.notes or self.language else "und"
        chinese = seen == "zh"
        content, notes = "", []
        page = self.page
        pages: list[Mark] = [(0, page)]
        runs: list[Run] = []
        after_note = False
        for piece in self._pieces:
            if piece.page is not None:
                page = piece.page
                pages.append((len(content), page))
            elif piece.note is None:
                if after_note and not chinese and piece.text[:1].isalnum():
                    content += " "
                shown = piece.text if content else piece.text.lstrip("\n" if self.preformatted else None)
                if piece.node:
                    runs += _placed(piece, len(content) - (len(piece.text) - len(shown)))
                content += shown
                after_note = after_note and not piece.text
            else:
                if content and not chinese and not content[-1].isspace():
                    content += " "
                start = len(content)
                own = chinese or (not plain and detect_language(piece.text) == "zh")
                content += f"[脚注：{piece.text}]" if own else f"[Note: {piece.text}]"
                notes.append({"start": start, "end": len(content), "anchor": piece.note.anchor})
                pages += [(start, piece.note.page), (len(content), page)] if piece.note.page else []
                runs += [(start, piece.note.cfi, -1)] if piece.note.cfi else []
                after_note = True
        content = content.rstrip()
        if not content:
            return None
        # Converters often state English for every book; a wrong language is worse than none, which would be detected.
        agrees = seen == "und" or same_script(seen, self.language)
        stated = {
            "language": self.language if agrees else "",
            "notes": notes,
            "pages": [mark for mark in pages if mark[0] < len(content)] if any(label for _, label in pages) else [],
            "cfi": runs,
        }
        meta = {"section": [], "kind": self.kind, "anchor": dict(self.anchor)}
        return Block(content, meta | {name: value for name, value in stated.items() if value})


def note_block(note: Note, text: str, language: str) -> Block | None:
    """Make a note that is not inserted into a text a block of its own."""
    builder = BlockBuilder("footnote", note.anchor, language, page=note.page)
    builder.add(text, node=note.cfi)
    return builder.build()


def _placed(piece: _Piece, at: int) -> list[Run]:
    """Map the runs of a piece to the content, from which its leading white space may have been left out."""
    if piece.raw is None:
        return [(max(at + piece.gap, 0), piece.node, -1)]
    runs = [
        (at + piece.gap + place, node, offset)
        for place, node, offset in runs_of(piece.raw, piece.text[piece.gap :], piece.node)
    ]
    return [(max(place, 0), node, offset + max(-place, 0)) for place, node, offset in runs]
