"""Recognises what a writer says about the answer, whoever asks and itself, in place of an answer."""

import re
from functools import cache, partial
from pathlib import Path

from shiguan.reading.text import ContentWord, read_text
from shiguan.resources import read_patterns, read_table
from shiguan.text.quantities import quantities
from shiguan.text.terms import terms

_TABLE = Path(__file__).with_name("talk.yaml")
_AROUND = re.compile(r"^[\s>#*_•·-]+|(?<=[^\s])\s?(?:\[\d{1,3}\])+|(?<![\s*_])[\s*_]+$")
# What stands behind such a sign is not a part of the remark.
_APART = re.compile(r"[:：;；]|\s[—–-]\s|——")
# What is quoted is said by somebody else.
_QUOTED = re.compile(r"[\"“”「」『』]")
# A remark is short; what is longer is read as a statement.
_LONGEST = 400
_patterns = partial(read_patterns, _TABLE)


@cache
def _words() -> tuple[frozenset[str], frozenset[str]]:
    """Return the words used to speak about an answer and its sources, and with them those of remarks."""
    table = read_table(_TABLE)
    meta = frozenset(terms(table["meta"])) | frozenset(table["meta_zh"].split())
    return meta, meta | frozenset(terms(table["chat"])) | frozenset(table["chat_zh"].split())


def is_about_writing(word: ContentWord) -> bool:
    """Return whether a word is one used to speak about an answer and its sources."""
    return _is_among(word, _words()[0])


def _is_among(word: ContentWord, known: frozenset[str]) -> bool:
    return word.text in known or known.issuperset(word.characters or word.text.split())


def without_self(sentence: str) -> str:
    """Remove from the beginning of a sentence what the model says of itself: "As of my last update, ..."."""
    plain = sentence.replace("’", "'")
    lead = None if _patterns()["unable"].match(plain) else _patterns()["self"].match(plain)
    rest = sentence[lead.end() :] if lead else sentence
    return rest[:1].upper() + rest[1:] if lead else rest


def is_talk(sentence: str, question: str = "") -> bool:
    """Return whether a sentence is a remark to whoever asks, that brings nothing beyond the words of the question."""
    plain = _AROUND.sub("", sentence.replace("’", "'")).strip()
    patterns = _patterns()
    if not plain or len(plain) > _LONGEST or plain.endswith((":", "：")) or _QUOTED.search(plain):
        return False
    if any(patterns[name].search(plain) for name in ("courtesy", "model", "unable")):
        return True
    if quantities(plain):
        return False
    if patterns["offer"].match(plain):
        return not _APART.search(plain)
    if patterns["denies"].search(plain) or not patterns["addresses"].search(plain):
        return False
    asked, known = frozenset(terms(question)), _words()[1]
    return all(_is_among(word, known) or word.said_by(asked) for word in read_text(plain).content_words())
