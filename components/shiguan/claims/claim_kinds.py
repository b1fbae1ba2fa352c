"""Tells clauses that state something from those that talk to the reader, ask, or admit not to know."""

import re
from functools import cache
from pathlib import Path
from typing import Any, Literal

from shiguan.claims.claims import COMMA, clause_spans, split_claims
from shiguan.llm.prompts import modes_with_sentence, not_found_sentence
from shiguan.resources import read_patterns, read_table
from shiguan.text.content_words import ContentWord, content_words
from shiguan.text.quantities import quantities
from shiguan.text.terms import terms

ClaimKind = Literal["statement", "silence", "talk", "question", "heading"]

# One within quotation marks is what somebody else asked.
_QUESTION = re.compile(r"[?？][)）*_]{0,4}\s*$")
# Headings, lines in bold, and lines that only announce what follows.
_HEADING = re.compile(r"^#{1,6}\s|^\*\*[^*\n]+\*\*[:：]?$|[:：][*_\s]*$")
_AFTER_LABEL = re.compile(r"[*_ ]*[:：|][*_ ]*[^\s|]")
_LANGUAGES = ("en", "zh")
# A clause of its own has at least so many words or numbers that tell something.
_FEWEST_WORDS = 2
# A sentence of more clauses is cut into as many pieces of several.
_MOST_CLAUSES = 60
_DATES = {"year", "month", "day"}


@cache
def _patterns() -> dict[str, Any]:
    return read_patterns(Path(__file__).with_name("claim_kinds.yaml"))


@cache
def _meta() -> frozenset[str]:
    table = read_table(Path(__file__).with_name("claim_kinds.yaml"))
    return frozenset(terms(table["meta"])) | frozenset(table["meta_zh"].split())


def claim_kind(sentence: str) -> ClaimKind:
    """Name what a sentence of an answer does."""
    plain = sentence.strip().replace("’", "'")
    if _QUESTION.search(plain):
        return "question"
    if _patterns()["silence"].search(plain):
        return "silence"
    if _patterns()["talk"].search(plain):
        return "talk"
    return "heading" if _HEADING.search(plain) else "statement"


def clauses(sentence: str) -> list[tuple[int, int, ClaimKind]]:
    """Cut a sentence where a clause that states something meets one that talks to the reader or admits a gap."""
    found: list[tuple[int, int, ClaimKind]] = []
    for start, end in clause_spans(sentence, COMMA, _patterns()["turn"]):
        kind = claim_kind(sentence[start:end])
        if kind == "statement" and is_label(sentence, end) and _is_idle(sentence[start:end]):
            kind = "talk"
        if found:
            before, at, other = found[-1]
            follows = other == "silence" and not _patterns()["turn"].match(sentence, at)
            if follows or (kind == "statement") == (other == "statement"):
                found[-1] = (before, end, other)
                continue
        found.append((start, end, kind))
    if len(found) < 2 or not {"talk", "silence"} & {kind for _, _, kind in found}:
        return [(0, len(sentence), claim_kind(sentence))]
    return found


def whole_clauses(sentence: str, *between: re.Pattern[str]) -> list[tuple[int, int]]:
    """Cut a sentence into clauses: a lone word goes with what is before it, a date with what follows."""
    found: list[tuple[int, int]] = []
    is_open = False
    spans = clause_spans(sentence, *between)
    size = -(-len(spans) // _MOST_CLAUSES)
    spans = [(spans[at][0], spans[at : at + size][-1][1]) for at in range(0, len(spans), size or 1)]
    for first, end in spans:
        start = found.pop()[0] if is_open else first
        words, numbers = content_words(sentence[start:end]), quantities(sentence[start:end])
        is_small = len(words) + len(numbers) < _FEWEST_WORDS and not is_label(sentence, end)
        is_date = {number.kind for number in numbers} <= _DATES and all(len(word.text) == 1 for word in words)
        is_open = bool(numbers) and is_date and end != spans[-1][1]
        if is_small and found and not is_open:
            start = found.pop()[0]
        elif is_small:
            is_open = True
        found.append((start, end))
    return found


def stated_part(sentence: str) -> str:
    """Leave out what stands before a statement, or behind it, and states nothing: "In short", "as the source says"."""
    return str(_patterns()["tail"].sub("", _patterns()["lead"].sub("", sentence.replace("’", "'")))).strip(" \t\n,，、")


def is_label(sentence: str, end: int) -> bool:
    """Tell whether the clause that ends here stands before a colon, or in a cell of a table with others behind it."""
    return bool(_AFTER_LABEL.match(sentence, end))


def _is_idle(clause: str) -> bool:
    """Tell `Key points:` and the like from a clause that states something, and from what only leads to one."""
    words = content_words(stated_part(f"{clause}:"))
    return all(map(is_about_writing, words)) and not quantities(clause)


def telling_words(stated: str, *, translated: bool = True) -> list[ContentWord]:
    """Give the words of a claim that are not about the writing, in translation too."""
    return [word for word in content_words(stated, translated=translated) if not is_about_writing(word)]


def is_about_writing(word: ContentWord) -> bool:
    """Tell whether a word is of those in which anybody speaks of an answer and its sources."""
    return word.text in _meta() or _meta().issuperset(word.characters or word.text.split())


def is_not_found(text: str) -> bool:
    """Tell whether a text only says that there is no answer, in the sentence of a mode or in its own words."""
    parts = split_claims(text)
    if is_not_found_sentence(parts.text):
        return True
    kinds = {kind for claim in parts.claims for _, _, kind in clauses(claim.text)}
    return "silence" in kinds and kinds <= {"silence", "talk", "question"}


def is_not_found_sentence(text: str) -> bool:
    """Tell whether a text without marks is the not-found sentence of a mode."""
    return tuple(terms(text)) in _sentences()


@cache
def _sentences() -> frozenset[tuple[str, ...]]:
    sentences = (not_found_sentence(mode, language) for mode in modes_with_sentence() for language in _LANGUAGES)
    return frozenset(tuple(terms(sentence)) for sentence in sentences)
