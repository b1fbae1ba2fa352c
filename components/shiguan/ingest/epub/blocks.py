"""A block under construction: pieces of text and notes become content with offsets."""

from dataclasses import dataclass, field
from typing import Any

from shiguan.ingest.epub.notes import Note
from shiguan.text.languages import detect_language

# Enough to tell a script.
_SAMPLE = 400


@dataclass
class Block:
    """One paragraph, quote, caption, table or note of a book."""

    content: str
    kind: str
    section: list[str]
    language: str
    anchor: dict[str, Any]
    notes: list[dict[str, Any]] = field(default_factory=list)
    # Stated to be text of the book, whatever it stands in: an epigraph on a title page.
    kept: bool = False

    @property
    def meta(self) -> dict[str, Any]:
        """What a document of it says of it."""
        own = {"language": self.language, "notes": self.notes}
        told = {name: value for name, value in own.items() if value}
        return {"section": self.section, "kind": self.kind, "anchor": self.anchor, **told}


class BlockBuilder:
    """Collects the pieces of one block; `gap` is the white space to put before the next piece."""

    def __init__(
        self, kind: str, anchor: dict[str, Any], language: str, *, preformatted: bool, kept: bool = False
    ) -> None:
        self.kind = kind
        self.anchor = anchor
        self.language = language
        self.preformatted = preformatted
        self.kept = kept
        self.length = 0
        self.notes: list[tuple[Note, str]] = []
        self._pieces: list[str | tuple[Note, str]] = []

    def add(self, text: str) -> None:
        """Append text."""
        self._pieces.append(text)
        self.length += len(text)

    def add_note(self, note: Note, text: str) -> None:
        """Append a note."""
        self._pieces.append((note, text))
        self.notes.append((note, text))

    def text(self) -> str:
        """Give the text alone."""
        text = "".join(piece for piece in self._pieces if isinstance(piece, str))
        return text.strip("\n").rstrip() if self.preformatted else text.strip()

    def has_text(self) -> bool:
        """Tell whether there is anything to show."""
        return any(piece.strip() if isinstance(piece, str) else piece[1] for piece in self._pieces)

    def build(self, section: list[str]) -> Block | None:
        """Finish the block."""
        plain = self.text()
        seen = detect_language(plain[:_SAMPLE]) if self.notes or self.language else "und"
        chinese = seen == "zh"
        content, notes = "", []
        after_note = False
        for piece in self._pieces:
            if isinstance(piece, str):
                if after_note and not chinese and piece[:1].isalnum():
                    content += " "
                content += piece if content else piece.lstrip("\n" if self.preformatted else None)
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
            after_note = True
        content = content.rstrip()
        if not content:
            return None
        language = self.language if agrees(self.language, seen) else ""
        return Block(content, self.kind, section, language, dict(self.anchor), notes, self.kept)


def agrees(stated: str, seen: str) -> bool:
    """
    Check a stated language against the script of the text.

    Converters often state English for every book; a wrong language is worse than none, which is then detected.
    """
    return seen == "und" or _script(seen) == _script(stated)


def _script(code: str) -> str:
    for script, codes in _SCRIPTS.items():
        if code in codes:
            return script
    return "latin"


_SCRIPTS = {
    "han": {"zh", "ja"},
    "hangul": {"ko"},
    "arabic": {"ar", "fa", "ur", "ps", "ug"},
    "hebrew": {"he", "yi"},
    "cyrillic": {"ru", "uk", "be", "bg", "sr", "mk", "kk", "mn"},
    "greek": {"el", "grc"},
    "devanagari": {"hi", "mr", "ne", "sa"},
    "thai": {"th"},
}
