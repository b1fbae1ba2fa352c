"""Which language a text is in: by script, and within the Latin script by its function words."""

import re
from collections import Counter
from pathlib import Path

from shiguan.resources import read_table
from shiguan.text.han import HAN

_SCRIPTS: list[tuple[str, re.Pattern[str]]] = [
    ("ja", re.compile(r"[\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9d]")),
    ("ko", re.compile(r"[\uac00-\ud7af\u1100-\u11ff]")),
    ("zh", re.compile(f"[{HAN}]")),
    ("ar", re.compile(r"[\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff]")),
    ("he", re.compile(r"[\u0590-\u05ff]")),
    ("ru", re.compile(r"[\u0400-\u04ff]")),
    ("el", re.compile(r"[\u0370-\u03ff]")),
    ("hi", re.compile(r"[\u0900-\u097f]")),
    ("th", re.compile(r"[\u0e00-\u0e7f]")),
]
_LATIN_LETTER = re.compile(r"[A-Za-z\u00c0-\u024f]")
_LATIN_WORD = re.compile(r"[a-z\u00df-\u024f]+")

_FUNCTION_WORDS: dict[str, frozenset[str]] = {
    code: frozenset(words.split()) for code, words in read_table(Path(__file__).with_name("languages.yaml")).items()
}

DETECTED = frozenset(code for code, _ in _SCRIPTS) | _FUNCTION_WORDS.keys()
"""The languages that can be told."""

# A text counts as written in a script from this share of its letters on; the rest may be names or quotations.
_SHARE = 0.3
# So much kana beside Han makes a text Japanese: even terse Japanese has more, a Chinese text quoting a name has less.
_KANA_SHARE = 0.18
_SAMPLE = 4000


def detect_language(text: str) -> str:
    """
    Name the language of a question or passage.

    Decides by script, so that one word is enough for Chinese or Arabic; among languages in the Latin script the one
    whose function words are commonest wins, and text without any (a name, a title) counts as English. Classical and
    modern, traditional and simplified Chinese are all `zh`. Only the first 4,000 characters are read.
    """
    sample = text[:_SAMPLE]
    counts = {code: len(pattern.findall(sample)) for code, pattern in _SCRIPTS}
    latin = len(_LATIN_LETTER.findall(sample))
    # A Latin word takes several letters where a Han character is a word by itself.
    letters = sum(counts.values()) + latin / 4
    if letters == 0:
        return "und"
    if counts["ja"] > _KANA_SHARE * (counts["ja"] + counts["zh"]) and counts["ja"] + counts["zh"] >= _SHARE * letters:
        return "ja"
    code = max(counts, key=lambda c: counts[c])
    if _asks_in_latin(sample, counts[code]):
        return _latin_language(sample)
    if code != "ja" and counts[code] >= _SHARE * letters:
        return code
    return _latin_language(sample)


def _asks_in_latin(text: str, characters: int) -> bool:
    """
    Tell a question that quotes another script from one written in it: "Who was 郭子仪?" is English, "什么是 machine
    learning" is not. Two characters make about one word; only a language's own function words show who is speaking.
    """
    words = _LATIN_WORD.findall(text.lower())
    spoken = sum(any(word in table for table in _FUNCTION_WORDS.values()) for word in words)
    return spoken > 0 and len(words) >= characters / 2


def _latin_language(text: str) -> str:
    words = Counter(_LATIN_WORD.findall(text.lower()))
    votes = {code: sum(words[word] for word in table) for code, table in _FUNCTION_WORDS.items()}
    best = max(votes, key=lambda code: votes[code])
    return best if votes[best] > votes["en"] else "en"
