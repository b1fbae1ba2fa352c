"""Offers the nearest name of the passages for one in a question that none of them has: most likely a typing slip."""

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from shiguan.text.languages import HAN, fold_han
from shiguan.text.names import foreign_names, looks_like_name, sounds_of_text

_HAN_RUN = re.compile(f"[{HAN}]{{2,}}")
_NAME = re.compile(r"(?<![\w'’-])[A-Z][^\W\d_]{3,}")
# Two of three letters that differ make another name; one of seven does not: Ismael is Ishmael.
_ALIKE = 0.8
# Two syllables sound alike too often.
_HAN_SIZES = (4, 3)


def near_names(question: str, passages: Sequence[str]) -> list[str]:
    """
    Say of each name of a question that no passage has which one was probably meant.

    Latin names are compared by their letters, names in Han characters by their sound (安路山 is 安禄山).
    """
    text = "\n".join(passages)
    pairs = [*_latin(question, text), *_han(fold_han(question), fold_han(text))]
    return [f"No passage has “{name}”. Did you mean “{other}”?" for name, other in dict(pairs).items()]


def _latin(question: str, text: str) -> Iterator[tuple[str, str]]:
    missing = [match[0] for name in foreign_names(question, text) if (match := _NAME.match(name))]
    known = {name.lower(): name for name in _NAME.findall(text)} if missing else {}
    for name in missing:
        for close in get_close_matches(name.lower(), known, n=1, cutoff=_ALIKE):
            # African is no slip of Africa.
            if not (name.lower().startswith(close) or close.startswith(name.lower())):
                yield name, known[close]


def _han(question: str, text: str) -> Iterator[tuple[str, str]]:
    said: set[str] = set()
    for size in _HAN_SIZES:
        missing = [name for name in _names(question, size) if name[:2] not in text and name not in said]
        if not missing:
            continue
        known = {_sound(name): name for name in _names(text, size)}
        for name in missing:
            if other := known.get(_sound(name)):
                said |= {name[at : at + width] for width in _HAN_SIZES for at in range(size)}
                yield name, other


def _names(text: str, size: int) -> Iterator[str]:
    """Give the pieces of some length that look like a name, as they stand side by side."""
    for run in _HAN_RUN.findall(text):
        yield from (run[at : at + size] for at in range(len(run) - size + 1) if looks_like_name(run[at : at + size]))


def _sound(name: str) -> tuple[str, ...]:
    return tuple(sounds_of_text(name))
