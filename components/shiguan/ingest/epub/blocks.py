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
    language: str
    anchor: dict[str, Any]
    notes: list[dict[str, Any]]
    # Stated to be text of the book, whatever it stands in: an epigraph on a title page.
    kept: bool
    section: list[str] = field(default_factory=list)

    @property
    def meta(self) -> dict[str, Any]:
        """What a document of it says of it."""
        own = {"language": self.language, "notes": self.notes}
        stated = {name: value for name, value in own.items() if value}
        return {"section": self.section, "kind": self.kind, "anchor": self.anchor, **stated}


class BlockBuilder:
    """Collects the pieces of one block: its text, and notes where they are referred to."""

    def __init__(
        self, kind: str, anchor: dict[str, Any], language: str, *, preformatted: bool = False, kept: bool = False
    ) -> None:
        self.kind = kind
        self.length = 0
        self.notes: list[tuple[Note, str]] = []
        self._anchor = anchor
        self._language = language
        self._preformatted = preformatted
        self._kept = kept
        self._pieces: list[str | tuple[Note, str]] = []

    def add(self, text: str) -> None:
        self._pieces.append(text)
        self.length += len(text)

    def add_note(self, note: Note, text: str) -> None:
        self._pieces.append((note, text))
        self.notes.append((note, text))

    @property
    def ends_with_digit(self) -> bool:
        return bool(self._pieces) and isinstance(self._pieces[-1], str) and self._pieces[-1][-1:].isdecimal()

    def text(self) -> str:
        text = "".join(piece for piece in self._pieces if isinstance(piece, str))
        return text.strip("\n").rstrip() if self._preformatted else text.strip()

    def build(self) -> Block | None:
        """Finish the block, as yet without its section; None where there is nothing to show."""
        plain = self.text()
        seen = detect_language(plain[:_SAMPLE]) if self.notes or self._language else "und"
        chinese = seen == "zh"
        content, notes = "", []
        after_note = False
        for piece in self._pieces:
            if isinstance(piece, str):
                if after_note and not chinese and piece[:1].isalnum():
                    content += " "
                content += piece if content else piece.lstrip("\n" if self._preformatted else None)
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
        # Converters often state English for every book; a wrong language is worse than none, which is then detected.
        agrees = seen == "und" or _SCRIPTS.get(seen) == _SCRIPTS.get(self._language)
        language = self._language if agrees else ""
        return Block(content, self.kind, language, dict(self._anchor), notes, self._kept)


# Languages that are not in the Latin script.
_SCRIPTS = {
    code: script
    for script, codes in {
        "han": "zh ja", "hangul": "ko", "arabic": "ar fa ur ps ug", "hebrew": "he yi",
        "cyrillic": "ru uk be bg sr mk kk mn", "greek": "el grc", "devanagari": "hi mr ne sa", "thai": "th",
    }.items()
    for code in codes.split()
}  # fmt: skip
