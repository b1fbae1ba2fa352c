"""A block under construction: pieces of text and notes become content with offsets."""

from dataclasses import dataclass, field
from typing import Any

from shiguan.ingest.epub.notes import Note
from shiguan.text.languages import detect_language, same_script
from shiguan.text.places import Mark, Run, runs_of

# Enough characters to detect a script.
_SAMPLE = 400


@dataclass
class Block:
    """One paragraph, quote, caption, table or note of a book."""

    content: str
    kind: str
    language: str
    anchor: dict[str, Any]
    notes: list[dict[str, Any]]
    section: list[str] = field(default_factory=list)
    pages: list[Mark] = field(default_factory=list)
    cfi: list[Run] = field(default_factory=list)

    @property
    def meta(self) -> dict[str, Any]:
        """The meta of its document."""
        own = {"language": self.language, "notes": self.notes, "pages": self.pages, "cfi": self.cfi}
        stated = {name: value for name, value in own.items() if value}
        return {"section": self.section, "kind": self.kind, "anchor": self.anchor, **stated}


@dataclass
class BlockBuilder:
    """Collects the pieces of one block: its text, and notes where they are referred to."""

    kind: str
    anchor: dict[str, Any]
    language: str
    page: str = ""
    preformatted: bool = False
    length: int = 0
    notes: list[tuple[Note, str]] = field(default_factory=list)
    _pieces: list[str | tuple[Note, str]] = field(default_factory=list)
    # The pieces before which a page begins; the node of each piece, with the node's text if that is the piece.
    _pages: list[tuple[int, str]] = field(default_factory=list)
    _nodes: dict[int, tuple[str, str | None, int]] = field(default_factory=dict)

    def add(self, text: str, *, gap: str = "", node: str = "", raw: str | None = None) -> None:
        """Add a gap and a text; `node` is the CFI of its node, `raw` the node's text if the text is taken from it."""
        if node:
            self._nodes[len(self._pieces)] = (node, raw, len(gap))
        self._pieces.append(gap + text)
        self.length += len(gap + text)

    def begin_page(self, label: str) -> None:
        self._pages.append((len(self._pieces), label))

    def add_note(self, note: Note, text: str) -> None:
        self._pieces.append((note, text))
        self.notes.append((note, text))

    @property
    def ends_with_digit(self) -> bool:
        return bool(self._pieces) and isinstance(self._pieces[-1], str) and self._pieces[-1][-1:].isdecimal()

    def text(self) -> str:
        text = "".join(piece for piece in self._pieces if isinstance(piece, str))
        return text.strip("\n").rstrip() if self.preformatted else text.strip()

    def build(self) -> Block | None:
        """Finish the block, still without its section; None where there is nothing to show."""
        plain = self.text()
        seen = detect_language(plain[:_SAMPLE]) if self.notes or self.language else "und"
        chinese = seen == "zh"
        content, notes = "", []
        pages: list[Mark] = []
        runs: list[Run] = []
        turns = iter([(0, self.page), *self._pages, (len(self._pieces), "")])
        turn = next(turns)
        page = ""
        after_note = False
        for number, piece in enumerate(self._pieces):
            while turn[0] <= number < len(self._pieces):
                page = turn[1]
                pages.append((len(content), page))
                turn = next(turns)
            if isinstance(piece, str):
                if after_note and not chinese and piece[:1].isalnum():
                    content += " "
                shown = piece if content else piece.lstrip("\n" if self.preformatted else None)
                if number in self._nodes:
                    runs += _placed(piece, len(content) - (len(piece) - len(shown)), *self._nodes[number])
                content += shown
                after_note = after_note and not piece
                continue
            note, text = piece
            if not text:
                continue
            if content and not chinese and not content[-1].isspace():
                content += " "
            start = len(content)
            own = chinese or (not plain and detect_language(text) == "zh")
            content += f"[脚注：{text}]" if own else f"[Note: {text}]"
            notes.append({"start": start, "end": len(content), "anchor": note.anchor})
            pages += [(start, note.page), (len(content), page)] if note.page else []
            runs += [(start, note.cfi, -1)] if note.cfi else []
            after_note = True
        content = content.rstrip()
        if not content:
            return None
        # Converters often state English for every book; a wrong language is worse than none, which would be detected.
        agrees = seen == "und" or same_script(seen, self.language)
        language = self.language if agrees else ""
        block = Block(content, self.kind, language, dict(self.anchor), notes)
        block.pages = [mark for mark in pages if mark[0] < len(content)] if any(label for _, label in pages) else []
        block.cfi = runs
        return block


def _placed(piece: str, at: int, node: str, raw: str | None, gap: int) -> list[Run]:
    """Map the runs of a piece to the content, from which its leading white space may have been left out."""
    if raw is None:
        return [(max(at + gap, 0), node, -1)]
    runs = [(at + gap + place, node, offset) for place, _, offset in runs_of(raw, piece[gap:], node)]
    return [(max(place, 0), path, offset + max(-place, 0)) for place, path, offset in runs]
