"""Folds texts for comparing quotations: only letters, digits and signs count, not script variants, spaces or stops."""

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from string import ascii_letters
from unicodedata import category, combining, normalize

from shiguan.llm.run import raise_if_cancelled
from shiguan.reading.edges import hidden_denial, splits_number
from shiguan.reading.text import read_text
from shiguan.resources import read_table
from shiguan.text.terms import UNSPACED, fold_text

_VARIANTS = {ord(pair[0]): pair[1] for pair in read_table(Path(__file__).with_name("variants.yaml"))["han"].split()}
# What is between two characters: nothing, something optional, or a separator of words.
_JOINED, _LOOSE, _APART = range(3)
_WIDE = re.compile(f"[{UNSPACED}]")
_NOISE = re.compile(
    r"(?<!\s)\[\^?\d{1,3}\]|(?<!\s)[〔【［]\d{1,3}[〕】］]|[²³¹⁰-⁹①-⑳*_\u200b-\u200f\u2060-\u2069\ufeff]"
)
_HYPHEN = re.compile(r"[-‐‑\u00ad]\s*|\.")
_APOSTROPHE = re.compile("['’ʼ＇]")
_OTHER_WORDS = frozenset("cant hell id ill its lets shed shell wed well were whore wont".split())
_DASH = "-‐‑‒–—−"
SIGNS = (
    r"(?<=\w) [<>] (?=\S)|(?<=\w) ?[<>] ?(?=\d)"
    r"|(?<=[A-Za-z])(?<![A-Za-z][A-Za-z])[<>](?=[A-Za-z](?![A-Za-z]))|(?<=[A-Za-z])#(?!\w)"
    r"|(?<=[\w)\]]) ?(?:[-+*/%!=<>:]=+|&&|\|\||[=-]>|<-) ?(?=[\w(!-])|(?<![\w!])!(?=[A-Za-z(])|(?<=\w) \+ (?=\w)"
    r"|(?<![A-Za-z][A-Za-z])(?:(?<=[A-Za-z\d)]) [-+*/^=&] |(?<=[A-Za-z)])[-+*/^=]|(?<=\d)\^)(?=[A-Za-z\d(](?![A-Za-z]))"
)
"""Less than, equal, minus, not, and C#: what signs of markup are between words and numbers."""
_PIECES = re.compile(
    rf"(?P<noise>(?<=\d),(?=\d{{3}}(?!\d))|(?<!\d)[²³¹⁰-⁹]+|[①-⑳]|{_NOISE.pattern.partition('|[²')[0]})"
    rf"|(?P<sign>(?<=\d)[.,:/](?=\d)|(?<=\d)\s?[{_DASH}]\s?(?=\d)|(?<=[^\W\d_])['’ʼ＇](?=[^\W\d_])"
    rf"|(?:(?<=[\s(（\[“\"])|^)[-−](?=\d)|[²³¹⁰-⁹]+|{SIGNS})"
    rf"|(?P<run>[A-Za-z]+(?:['’ʼ＇][A-Za-z]+)*|[{UNSPACED}]+)|(?P<other>\S)",
)
_NO_LETTERS = re.compile(
    "[\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)


@dataclass(frozen=True)
class Folded:
    """The characters of a text that count, with the place of each in it and what separates it from the last."""

    text: str
    key: str
    places: Sequence[int]
    edges: bytes

    def find(self, passage: "Folded", start: int = 0, stop: int | None = None) -> Iterator[int]:
        """Yield the places, none of which overlap, where a passage has this text word for word."""
        size, at = len(self.key), passage.key.find(self.key, start, stop) if self.key else -1
        while at >= 0:
            raise_if_cancelled()
            found = self._fits(passage.edges[at + 1 : at + size])
            found = found and not passage.splits(at) and not passage.splits(at + size)
            if found:
                yield at
            at = passage.key.find(self.key, at + size if found else at + 1, stop)

    def _fits(self, edges: bytes) -> bool:
        own = self.edges[1:]
        if own == edges:
            return True
        # Of two numbers, `_JOINED` with `_APART` alone differ in the second bit alone.
        pairs = int.from_bytes(own, "big") ^ int.from_bytes(edges, "big")
        other = pairs.to_bytes(len(own), "big").count(_JOINED ^ _APART)
        # One space more or less makes another word, but a text in which most are missing just lost its spaces.
        return not other or (other > 2 and 2 * other >= max(self.edges.count(_APART), edges.count(_APART)))

    def is_in(self, passage: "Folded") -> bool:
        return next(self.find(passage), None) is not None

    def splits(self, at: int) -> bool:
        """Return whether a cut there would split a word, a number or a character."""
        if not 0 < at < len(self.key):
            return False
        before = self.places[at - 1]
        return self.edges[at] == _JOINED or self.places[at] == before or splits_number(self.text, before + 1)

    def hides_denial(self, at: int) -> bool:
        """Return whether what begins there leaves out the word before it that denies or limits it."""
        return bool(hidden_denial(self.text, self.places[at]))

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span in the text of a stretch of characters that count."""
        return self.places[start], self.places[end - 1] + 1

    def after(self, place: int) -> int:
        """Return the index of the first character that counts at or after a place in the text."""
        return bisect_left(self.places, place)


def joined(parts: list[Folded], starts: list[int]) -> Folded:
    """Join consecutive passages; places are relative to their starts."""
    places = array("I", [start + at for part, start in zip(parts, starts, strict=True) for at in part.places])
    edges = b"".join(bytes([_APART]) + part.edges[1:] for part in parts if part.key)
    return Folded("\n".join(part.text for part in parts), "".join(part.key for part in parts), places, edges)


def fold(text: str, *, noted: bool = True) -> Folded:
    """Fold a text: remove differences of case, width, script variants, marks, stops and hyphens; keep all else."""
    return read_text(text).once(_fold, noted)


def _fold(text: str, noted: bool) -> Folded:
    key: list[str] = []
    places, edges, end, wide = array("I"), bytearray(), 0, True
    whole = read_text(text)
    notes = iter(() if noted else whole.notes)
    note, skipped = next(notes, None), False
    for match in _PIECES.finditer(text):
        kind, piece, start = match.lastgroup, match[0], match.start()
        while note is not None and start >= note[1]:
            note = next(notes, None)
        if note is not None and start >= note[0]:
            skipped = True
            continue
        if kind == "noise":
            continue
        letters = _sign(piece) if kind == "sign" else _letters(piece)
        if not letters:
            continue
        now = bool(_WIDE.match(letters))
        if kind == "run" and len(letters) < len(piece) and letters.isascii():
            places.extend(start + at for at, character in enumerate(piece) if character.isalpha())
        elif kind == "run" and len(letters) == len(piece):
            places.extend(range(start, match.end()))
        elif kind == "run":
            places.extend(place for place, character in enumerate(piece, start=start) for _ in _letters(character))
        else:
            places.extend([start] * len(letters))
        mark = combining(letters[0]) or category(letters[0]) == "Mc"
        between = whole.without_notes(end, start) if skipped else text[end:start]
        edges.append(_JOINED if mark else _LOOSE if wide or now else _edge(between))
        edges.extend(bytes([_LOOSE if now else _JOINED]) * (len(letters) - 1))
        key.append(letters)
        end, wide, skipped = match.end(), now, False
    return Folded(text, "".join(key), places, bytes(edges))


@lru_cache(maxsize=16384)
def _letters(piece: str) -> str:
    if piece[0] in ascii_letters:
        # Its apostrophes may be missing unless that makes another word.
        plain = _APOSTROPHE.sub("", piece).lower()
        return _APOSTROPHE.sub("'", piece).lower() if plain in _OTHER_WORDS else plain
    folded = piece.lower() if piece.isascii() else normalize("NFKD", fold_text(piece).translate(_VARIANTS))
    if folded.isalpha():
        return folded
    if _NO_LETTERS.match(piece) or piece in "_*~|<>^`":
        return ""
    return "".join(c for c in folded if category(c)[0] in "LNM" or category(c) in ("Sc", "Sm") or c in "%‰°")


def _sign(piece: str) -> str:
    bare = piece.strip()
    if bare in _DASH:
        return "-"
    return "'" if bare in "'’ʼ＇" else bare if bare in ".,:/<>" else "^" + normalize("NFKD", bare)


def _edge(between: str) -> int:
    if between in ("", " "):
        return _APART if between else _JOINED
    between = _NO_LETTERS.sub("", _NOISE.sub("", between))
    if between in ("", ","):  # 3,000
        return _JOINED
    return _LOOSE if _HYPHEN.fullmatch(between) else _APART
