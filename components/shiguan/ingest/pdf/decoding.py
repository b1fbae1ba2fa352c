"""Finds pages whose text cannot be decoded: fonts without a table of characters, bytes of another encoding."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from shiguan.ingest.file_types import decode_text, has_common_characters
from shiguan.ingest.pdf.lines import Line, PageLines
from shiguan.ingest.pdf.runs import WIDE
from shiguan.text.languages import function_word_share

# Half of a pair, private use, control, no character at all.
_NOT_TEXT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f\ufffd\ufffe\uffff\ue000-\uf8ff\U000f0000-\U0010ffff]")
_NAMES_OF_GLYPHS = re.compile(r"/(?:g|cid|glyph|uni|a|c)\d{1,5}\b")
# What the bytes of another encoding look like in a Latin font; dashes and quotation marks stand in every text.
_HIGH = re.compile(r"[\u00a1-\u00b6\u00b8-\u00ff€‚ƒ„†‡ˆ‰Š‹ŒŽ˜™š›œžŸ]")
_BULLET = re.compile("[\uf0a7\uf0b7]")  # from the symbol fonts of word processors
_BYTES = {bytes([byte]).decode("cp1252", "ignore") or chr(byte): byte for byte in range(256)}
_BYTES["•"] = 0xFF  # stands in no character of these encodings
# Latin fonts draw byte AD as a hyphen, which Asian texts have only in Latin words and numbers, and the bytes that they
# lack, of which Shift_JIS is full, as a bullet.
_SOFT_HYPHEN = re.compile(rb"(?<=[\x80-\xff])-|(?<![\s\d])(?<![A-Za-z]{2})-(?![\s\d-])")
_LOST, _MOST_LOST = "•", 0.01
# The share of a page from which on it cannot be read; no language written in Latin letters has more than a quarter.
_MOST_UNREAD, _MOST_HIGH, _FEWEST_WORDS, _LEAST_WIDE = 0.2, 0.35, 0.08, 0.5


class Decoded(NamedTuple):
    """
    The lines of every page, none where they cannot be decoded; the numbers of those pages, from 1.

    `unknown` characters of the other pages became U+FFFD; `guessed` is the encoding that pages were read in, if any.
    """

    pages: list[list[Line]]
    failed: list[int]
    unknown: int
    guessed: str


def decode_pages(pages: Sequence[PageLines]) -> Decoded:
    """Decode what the fonts got wrong, as far as it is certain."""
    texts = ["\n".join(line.text for line in page.lines) for page in pages]
    high = {number for number, text in enumerate(texts) if len(_HIGH.findall(text)) > _MOST_HIGH * _size(text)}
    guessed = _other_encoding([texts[number] for number in sorted(high)])
    decoded: list[list[Line]] = []
    failed: list[int] = []
    for number, (page, text) in enumerate(zip(pages, texts, strict=True)):
        lines = page.lines
        if number in high and guessed:
            lines = [line._replace(text=_bytes(line.text).decode(guessed, "replace")) for line in lines]
        elif lines and (number in high or not _is_text(text, page.undefined)):
            failed.append(number + 1)
            lines = []
        elif _NOT_TEXT.search(text):
            lines = [line._replace(text=_NOT_TEXT.sub("\ufffd", _BULLET.sub("•", line.text))) for line in lines]
        decoded.append(lines)
    unknown = sum(line.text.count("\ufffd") for lines in decoded for line in lines)
    return Decoded(decoded, failed, unknown, guessed)


def _size(text: str) -> int:
    return max(sum(map(len, text.split())), 1)


def _is_text(text: str, undefined: float) -> bool:
    wrong = sum(map(len, _NAMES_OF_GLYPHS.findall(text))) + len(_NOT_TEXT.findall(_BULLET.sub("", text)))
    if wrong > _MOST_UNREAD * _size(text):
        return False
    # Some fonts number their glyphs like ASCII without saying so: then the text is right.
    if undefined > _MOST_UNREAD and function_word_share(text) < _FEWEST_WORDS:
        return False
    return has_common_characters(text)


def _other_encoding(texts: list[str]) -> str:
    """Return the encoding of the bytes that these pages show as Latin letters, if it is certain."""
    lines = "\n".join(texts).splitlines()
    if sum(line.count(_LOST) for line in lines) > _MOST_LOST * sum(map(len, lines)):
        return ""
    found = decode_text(b"\n".join(_bytes(line) for line in lines if _LOST not in line)) if lines else None
    certain = found and len(WIDE.findall(found.text)) > _LEAST_WIDE * _size(found.text) and _is_text(found.text, 0)
    return found.encoding if found and certain else ""


def _bytes(text: str) -> bytes:
    return _SOFT_HYPHEN.sub(b"\xad", bytes(_BYTES.get(character, 0x3F) for character in text))
