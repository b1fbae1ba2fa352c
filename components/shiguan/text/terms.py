"""Cuts text of any script into the terms by which BM25 finds passages, and weights them."""

import math
import re
import threading
import zlib
from collections.abc import Collection, Iterable, Mapping
from functools import cache, lru_cache
from importlib.util import find_spec
from operator import add
from pathlib import Path
from unicodedata import combining, normalize

from snowballstemmer.english_stemmer import EnglishStemmer

from shiguan.errors import ConfigurationError
from shiguan.resources import read_patterns, read_table

STOP_WORDS = frozenset(read_table(Path(__file__).with_name("terms.yaml"))["stop_words"].split())

# Scripts written without spaces between words: Thai and Lao, Burmese, Hangul, Khmer, kana, Han. Hangul has spaces, but
# its particles are attached to the words, and pairs of syllables find a noun with any of them.
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
_FIRST_UNSPACED = UNSPACED[0]
_ENDINGS = frozenset({"s", "t", "d", "m", "re", "ve", "ll"})

# Longer ones are not words (addresses, encoded data); cutting them keeps the stemmer and the cache cheap.
LONGEST_WORD = 64
# Distinct words kept with their terms: about 30 MB at most, more than the vocabulary of a large library.
_CACHED_WORDS = 200_000

# Not the factory of `snowballstemmer`, which uses PyStemmer if that is installed: its version, and so the stems, may
# differ from those of a store.
_stemmer, _stemming = EnglishStemmer(), threading.Lock()


def terms(text: str) -> list[str]:
    """
    Cut a text into the terms that BM25 counts, the same everywhere: governor, 范, 阳, 范阳 for `The governors of 范陽`.

    Characters are folded; a run of a script without spaces gives its characters and pairs, an English word its stem.
    """
    tokens = _ASCII_TOKEN.findall(text.lower()) if text.isascii() else _TOKEN.findall(fold_text(text))
    found: list[str] = []
    for token in tokens:
        if token[0] >= _FIRST_UNSPACED and _RUN.match(token):
            found += token
            found += map(add, token, token[1:])
        else:
            found += _terms_of_word(token[:LONGEST_WORD])
    return found


def term_indices(terms: Iterable[str]) -> list[int]:
    """Return the numbers of terms in sparse vectors: checksums, of which ten pairs in 300,000 terms are equal."""
    return [zlib.crc32(term.encode("utf-8", "surrogatepass")) for term in terms]


@lru_cache(_CACHED_WORDS)
def _terms_of_word(token: str) -> tuple[str, ...]:
    if token[0].isdecimal() and ("," in token or "." in token):
        return (_western_digits(token.replace(",", "")),)
    parts = token.split("'")
    if parts[-1] == "t" and len(parts) == 2 and parts[0].endswith("n"):
        return ()  # all contractions of "not" are function words
    while len(parts) > 1 and parts[-1] in _ENDINGS:
        parts.pop()
    plain = (part if part.isascii() else fold_accents(part) for part in parts)
    content = [part for part in plain if part and part not in STOP_WORDS]
    with _stemming:
        return tuple(_stemmer.stemWord(c) if c.isascii() and not c.isdecimal() else c for c in content)


def fold_text(text: str) -> str:
    """Write a text in lower case, with one form of each character."""
    return normalize("NFKC", text).lower().translate(_folding())


def fold_accents(text: str) -> str:
    """Write a word of any alphabet without accents and vowel points, its digits as western ones."""
    # Combining classes from 10 on are accents and vowel points; lower ones make another letter.
    bare = "".join(c for c in normalize("NFKD", text.casefold()) if combining(c) < 10)
    return _western_digits(normalize("NFC", bare))


def _western_digits(text: str) -> str:
    return text if text.isascii() else "".join(str(int(c)) if c.isdecimal() else c for c in text)


@cache
def _folding() -> dict[int, str | None]:
    """Build the table of folded characters of OpenCC's tables; everyday simplified ones (予) do not change."""
    simplified = {a: b for a, b in _pairs("TSCharacters") if a != b}
    variants = [
        (form, simplified.get(traditional, traditional))
        for name in ("TWVariants", "HKVariants", "JPVariants")
        for traditional, form in _pairs(name)
    ]
    table: dict[int, str | None] = {}
    for form, target in variants:
        if form not in simplified and form != target and not form.encode("gb2312", "ignore"):
            table[ord(form)] = target
    table |= {ord(a): b for a, b in simplified.items()}
    # Some targets are variants themselves; one step must give the last form.
    table = {
        code: table.get(ord(target), target) if target and len(target) == 1 else target
        for code, target in table.items()
    }
    table |= dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"))
    return table | dict.fromkeys(map(ord, "\u2018\u2019\u02bc\uff07"), "'")


def _pairs(name: str) -> list[tuple[str, str]]:
    table = packaged_table("opencc", f"dictionary/{name}.txt", "opencc-python-reimplemented")
    rows = (line.split("\t") for line in table.splitlines() if "\t" in line)
    return [(row[0], row[1].split(" ")[0]) for row in rows if len(row[0]) == 1]


def packaged_table(module: str, name: str, package: str) -> str:
    """Read a table of another package, without importing that."""
    return packaged_path(module, name, package).read_text(encoding="utf-8")


def packaged_path(module: str, name: str, package: str) -> Path:
    """Find a table of another package."""
    spec = find_spec(module)
    path = (Path(spec.origin).parent if spec and spec.origin else Path(module)) / name
    try:
        path.stat()
    except OSError as error:
        raise ConfigurationError(
            f"The table `{name}` could not be read: {error}. It comes with the package `{package}`; install it again "
            f"with `pip install --force-reinstall {package}`."
        ) from error
    return path


_FRAME = read_patterns(Path(__file__).with_name("rarity.yaml"))["frame"]

# 14,019 stems with the rank of their commonest word. The scores of the embedder's tokens do not measure English words:
# they come from a hundred languages, and hardly agree with these ranks (correlation .14).
_RANKS = Path(__file__).with_name("word_ranks.txt")
# The rank of the first whole word in that vocabulary, after signs and letters.
_FIRST_WORD = 1996
_UNKNOWN = 40_000
_FLOOR, _CEILING = 0.5, 4.5
# A single Han character says less than a pair; a grammatical one, or a pair with one, hardly anything.
_SINGLE, _FUNCTION = 0.35, 0.3
_FUNCTION_CHARACTERS = frozenset(
    "的是了在于與与和及而之其也者为為以有这這那被把将將由从從到一个個不所他她它们們就都又并並则則乃"
)
_WIDE = re.compile("[\u2e80-\U0010ffff]")


def is_wide(character: str) -> bool:
    """Return whether a character is of an East Asian script, whose words have no spaces between them and no stems."""
    return character > "\u2e7f"


def size_of(text: str) -> int:
    """Measure a text in Latin characters: a wide character says as much as three."""
    return len(text) + 2 * len(_WIDE.findall(text))


def rarity(term: str) -> float:
    """Weight a term by its rarity in general: the logarithm of its rank, which is its information by Zipf's law."""
    if is_wide(term[0]):
        weight = _SINGLE if len(term) == 1 else 1.0
        return weight if _FUNCTION_CHARACTERS.isdisjoint(term) else weight * _FUNCTION
    rank = _ranks().get(term)
    information = math.log(_UNKNOWN / _FIRST_WORD) + 1 if rank is None else math.log(rank / _FIRST_WORD)
    return (_FLOOR + information) / _CEILING


def question_subject(question: str) -> str:
    """Replace the words that only make a text a question by a space, across which no pair of characters is formed."""
    subject = _FRAME.sub(" ", question)
    return subject if has_subject(question) else question


def has_subject(question: str) -> bool:
    """Return whether a question has any words besides those that only make it a question."""
    return bool(_FRAME.sub(" ", question).strip(" ？?。，,！!"))


def question_weights(question: str) -> dict[str, float]:
    """Weight the words of a question by their rarity."""
    return {word: rarity(word) for word in terms(question_subject(question))}


def covered(weights: Mapping[str, float], words: Collection[str]) -> float:
    """Return the share of the total weight, 0 to 1, that some words cover."""
    total = sum(weights.values())
    return sum(weight for word, weight in weights.items() if word in words) / total if total else 0.0


@cache
def _ranks() -> dict[str, int]:
    lines = _RANKS.read_text(encoding="utf-8").splitlines()[1:]
    return {stem: int(rank) for stem, _, rank in (line.partition(" ") for line in lines)}
