"""The words by which BM25 finds a passage, for Chinese and English and sensibly for every other script."""

import re
import threading
import zlib
from functools import cache, lru_cache
from importlib.util import find_spec
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import combining, normalize

from shiguan.errors import ConfigurationError
from shiguan.resources import read_table

if TYPE_CHECKING:
    from haystack import Document

STOP_WORDS = frozenset(read_table(Path(__file__).with_name("terms.yaml"))["stop_words"].split())

# Scripts written without spaces between words: Thai and Lao, Burmese, Hangul, Khmer, kana, Han. Hangul has spaces, but
# its particles are glued to the words, and pairs of syllables find a noun under any of them.
UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u1000-\u103f\u1100-\u11ff\u1780-\u17d3"
    "\u3005\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U000323af"
)
# Signs that belong to the letter before them: accents, vowel points, and the whole Indic blocks but for their stops.
MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    "\u0711\u0730-\u074a\u0900-\u0963\u0966-\u0df3"
)

_NUMBER = r"\d{1,3}(?:,\d{3})+(?!\d)|\d+(?:\.\d+)+"
_LETTERS = f"[^\\W_{UNSPACED}]+"
_WORD = f"{_LETTERS}(?:[{MARKS}]+(?:{_LETTERS})?)*"
_TOKEN = re.compile(f"[{UNSPACED}]+|{_NUMBER}|{_WORD}(?:'{_WORD})*")
_ASCII_TOKEN = re.compile(f"{_NUMBER}|[a-z0-9]+(?:'[a-z0-9]+)*", re.ASCII)
_RUN = re.compile(f"[{UNSPACED}]")
_ENDINGS = frozenset({"s", "t", "d", "m", "re", "ve", "ll"})

# Longer words are no words (addresses, encoded data); cutting them keeps the stemmer and the cache cheap.
LONGEST_WORD = 64
# Distinct words kept with their terms: about 30 MB at most, more than the vocabulary of a large library.
_CACHED_WORDS = 200_000

_SHINGLE = 3
_REMEMBERED = 256
"""Texts whose shingles are kept, about 40 KB for a long passage: the same passages are read for many questions."""

_word_terms: dict[str, tuple[str, ...]] = {}
_indices: dict[str, int] = {}
_stemming = threading.Lock()


def terms(text: str) -> list[str]:
    """
    Cut a text into the terms that BM25 counts.

    Characters are NFKC-folded and lower-cased, traditional and variant Han characters folded to simplified ones. A run
    of Han, kana, Hangul or another script without spaces gives its single characters and then its pairs of neighbours;
    an English word its stem, unless it is a stop word; a word of another alphabet itself, without accents; a number
    itself, without thousands separators. Runs and words come in the order of the text. The same text gives the same
    terms in every process and on every machine.

    ```python
    terms("The governors of 范陽")  # ["governor", "范", "阳", "范阳"]
    ```
    """
    tokens = _ASCII_TOKEN.findall(text.lower()) if text.isascii() else _TOKEN.findall(fold_text(text))
    found: list[str] = []
    known = _word_terms.get
    for token in tokens:
        cached = known(token)
        if cached is not None:
            found += cached
        elif _RUN.match(token):
            found += token
            found += map(add, token, token[1:])
        else:
            found += _remember(token)
    return found


def term_index(term: str) -> int:
    """
    Give the number of a term in sparse vectors.

    A checksum of the term, so that it needs no dictionary and is the same in every process. Two of 300,000 terms share
    a number about ten times (birthday problem over 2**32), which shifts a score by at most one term's weight.
    """
    index = _indices.get(term)
    if index is None:
        index = zlib.crc32(term.encode("utf-8", "surrogatepass"))
        if len(_indices) >= 4 * _CACHED_WORDS:
            _indices.clear()
        _indices[term] = index
    return index


def _remember(token: str) -> tuple[str, ...]:
    token = token[:LONGEST_WORD]
    result = _terms_of_word(token)
    if len(_word_terms) >= _CACHED_WORDS:
        _word_terms.clear()
    _word_terms[token] = result
    return result


def _terms_of_word(token: str) -> tuple[str, ...]:
    if token[0].isdecimal() and ("," in token or "." in token):
        return (_western_digits(token.replace(",", "")),)
    parts = token.split("'")
    if parts[-1] == "t" and len(parts) == 2 and parts[0].endswith("n"):
        return ()  # all contractions of "not" are function words
    while len(parts) > 1 and parts[-1] in _ENDINGS:
        parts.pop()
    return tuple(term for part in parts if (term := _term_of_part(part)))


def _term_of_part(part: str) -> str:
    if not part.isascii():
        part = fold_accents(part)
    if part in STOP_WORDS:
        return ""
    if not part.isascii() or part.isdecimal():
        return part
    with _stemming:
        return str(_stemmer().stemWord(part))


def fold_text(text: str) -> str:
    """Write a text in lower case, with one form of each character."""
    return normalize("NFKC", text).lower().translate(_folding())


def fold_accents(text: str) -> str:
    """Write a word of any alphabet without accents and vowel points, its digits as western ones."""
    # From 10 on, combining classes are accents and vowel points; below it, signs that make another letter.
    bare = "".join(c for c in normalize("NFKD", text.casefold()) if combining(c) < 10)
    return _western_digits(normalize("NFC", bare))


def _western_digits(text: str) -> str:
    return text if text.isascii() else "".join(str(int(c)) if c.isdecimal() else c for c in text)


@cache
def _stemmer() -> Any:
    # The module itself and not the factory of `snowballstemmer`: the factory takes PyStemmer where that is installed,
    # whose version, and so whose stems, may differ from those a store was written with.
    from snowballstemmer.english_stemmer import EnglishStemmer  # noqa: PLC0415

    return EnglishStemmer()


@cache
def _folding() -> dict[int, str | None]:
    """
    Build the table of characters that count as another one.

    Traditional characters become the first simplified form of OpenCC's character table. The forms of Hong Kong, Taiwan
    and Japan join through their traditional form, unless the character is an everyday one of simplified Chinese
    (in GB 2312), which must stay itself: 予 is no 豫 in a Chinese text.
    """
    spec = find_spec("opencc")
    folder = Path(spec.origin).parent / "dictionary" if spec and spec.origin else Path("opencc")
    try:
        simplified = {a: b for a, b in _pairs(folder / "TSCharacters.txt") if a != b}
        variants = [
            (form, simplified.get(traditional, traditional))
            for name in ("TWVariants.txt", "HKVariants.txt", "JPVariants.txt")
            for traditional, form in _pairs(folder / name)
        ]
    except OSError as error:
        raise ConfigurationError(
            f"The table of Han variants could not be read: {error}. It comes with the package "
            "`opencc-python-reimplemented`; install it again with "
            "`pip install --force-reinstall opencc-python-reimplemented`."
        ) from error
    table: dict[int, str | None] = {}
    for form, target in variants:
        if form not in simplified and form != target and not _everyday(form):
            table[ord(form)] = target
    table |= {ord(a): b for a, b in simplified.items()}
    # Some targets are variants themselves; one step must give the last form.
    table = {
        code: table.get(ord(target), target) if target and len(target) == 1 else target
        for code, target in table.items()
    }
    table |= dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"))
    return table | dict.fromkeys(map(ord, "\u2018\u2019\u02bc\uff07"), "'")


def _pairs(path: Path) -> list[tuple[str, str]]:
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines() if "\t" in line)
    return [(row[0], row[1].split(" ")[0]) for row in rows if len(row[0]) == 1]


def _everyday(character: str) -> bool:
    try:
        character.encode("gb2312")
    except UnicodeEncodeError:
        return False
    return True


@lru_cache(_REMEMBERED)
def shingles(text: str) -> frozenset[tuple[str, ...]]:
    """
    Cut a text into overlapping runs of three search terms.

    Search terms fold case, width and traditional characters, so the same passage in two scripts is one passage.
    """
    words = terms(text)
    if not words:
        return frozenset([(text.strip(),)])
    return frozenset(tuple(words[at : at + _SHINGLE]) for at in range(max(1, len(words) - _SHINGLE + 1)))


def similarity(first: frozenset[tuple[str, ...]], second: frozenset[tuple[str, ...]]) -> float:
    """Compare two sets of shingles (Jaccard)."""
    together = len(first | second)
    return len(first & second) / together if together else 1.0


def passage_text(document: "Document") -> str:
    """Give what a passage says, its title and the headings above it."""
    section = document.meta.get("section") or []
    headings = section if isinstance(section, str) else " ".join(map(str, section))
    return f"{document.meta.get('title') or ''} {headings} {document.content or ''}"
