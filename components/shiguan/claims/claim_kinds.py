"""Separates clauses that state something from those that talk to the reader, ask, or admit a gap."""

import re
from functools import cache, partial
from pathlib import Path
from typing import Literal

from shiguan.claims.claims import COMMA, Claim, ClaimedText, clause_spans, split_claims
from shiguan.claims.talk import is_about_writing
from shiguan.llm.prompts import modes_with_sentence, not_found_sentence
from shiguan.reading.text import ContentWord, read_text
from shiguan.resources import read_patterns
from shiguan.text.languages import fold_han
from shiguan.text.quantities import Quantity, quantities
from shiguan.text.terms import terms

ClaimKind = Literal["statement", "silence", "talk", "question", "heading"]

# A question mark inside quotation marks belongs to somebody else's question.
_QUESTION = re.compile(r"[?？][)）*_]{0,4}\s*$")
# Headings, heads of tables, and lines that only announce what follows.
_HEADING = re.compile(r"^#{1,6}\s|^\||[:：][*_\s]*$")
# A line in bold is a heading; one that ends as a sentence does only if it is no more than a word.
_BOLD = re.compile(r"^\*\*([^*\n]+?)([.。!！]?)\*\*[:：]?$")
_AFTER_LABEL = re.compile(r"[*_ ]*[:：|][*_ ]*[^\s|]")
_LANGUAGES = ("en", "zh")
# A clause must have at least this many content words and numbers to count on its own.
_FEWEST_WORDS = 2
# A sentence with more clauses is cut into at most this many groups of clauses.
_MOST_CLAUSES = 60
# The most content words of the label of a column.
_LONGEST_LABEL = 3
_DATES = {"year", "month", "day"}
_patterns = partial(read_patterns, Path(__file__).with_name("claim_kinds.yaml"))


def claim_kind(sentence: str) -> ClaimKind:
    """Return what a sentence of an answer does."""
    plain = fold_han(sentence.strip().replace("’", "'"))
    if _QUESTION.search(plain):
        return "question"
    if _patterns()["silence"].search(plain) and not _patterns()["but_for"].search(plain):
        return "silence"
    if _patterns()["talk"].search(plain):
        return "talk"
    bold = _BOLD.search(plain)
    is_title = bold and not (bold[2] and (len(read_text(bold[1]).content_words()) > 1 or quantities(bold[1])))
    return "heading" if is_title or _HEADING.search(plain) else "statement"


def admitted_gap(sentence: str) -> str:
    """Return the words in which a sentence admits a gap: `不明` of 原因仍然不明; empty if it does not."""
    found = _patterns()["silence"].search(fold_han(sentence.replace("’", "'")))
    return found[0].strip("。.!！ ") if found else ""


def clauses(sentence: str) -> list[tuple[int, int, ClaimKind]]:
    """Cut a sentence where a clause that states something meets one that talks to the reader or admits a gap."""
    if sentence.startswith("|"):
        return [(0, len(sentence), "heading")]
    found: list[tuple[int, int, ClaimKind]] = []
    for start, end in clause_spans(sentence, COMMA, _patterns()["turn"]):
        kind = claim_kind(sentence[start:end])
        if kind == "statement" and is_label(sentence, end) and _is_empty(sentence[start:end], ":"):
            kind = "talk"
        if found:
            previous_start, previous_end, previous = found[-1]
            follows = previous == "silence" and not _patterns()["turn"].match(sentence, previous_end)
            if follows or (kind == "statement") == (previous == "statement"):
                found[-1] = (previous_start, end, previous)
                continue
        found.append((start, end, kind))
    if len(found) < 2 or not {"talk", "silence"} & {kind for _, _, kind in found}:
        return [(0, len(sentence), claim_kind(sentence))]
    return found


def whole_clauses(sentence: str, *between: re.Pattern[str]) -> list[tuple[int, int]]:
    """Cut a sentence into clauses; a lone word joins the clause before it, a date the clause after it."""
    found: list[tuple[int, int]] = []
    is_open = False
    spans = clause_spans(sentence, *between)
    size = -(-len(spans) // _MOST_CLAUSES)
    spans = [(spans[at][0], spans[at : at + size][-1][1]) for at in range(0, len(spans), size or 1)]
    words, numbers = set[str](), list[Quantity]()
    for first, end in spans:
        start = found.pop()[0] if is_open else first
        words, numbers = (words, numbers) if is_open else (set(), [])
        words.update(word.text for word in read_text(sentence[first:end]).content_words())
        numbers += quantities(sentence[first:end])
        is_small = len(words) + len(numbers) < _FEWEST_WORDS and not is_label(sentence, end)
        is_date = {number.kind for number in numbers} <= _DATES and all(len(word) == 1 for word in words)
        is_open = bool(numbers) and is_date and end != spans[-1][1]
        if is_small and found and not is_open:
            start = found.pop()[0]
        elif is_small:
            is_open = True
        found.append((start, end))
    return found


def stated_part(sentence: str) -> str:
    """Remove what leads to a statement or trails it and states nothing: "In short", "as the source says"."""
    return str(_patterns()["tail"].sub("", _patterns()["lead"].sub("", sentence.replace("’", "'")))).strip(" \t\n,，、")


def is_label(sentence: str, end: int) -> bool:
    """Return whether the clause that ends here comes before a colon, or is a table cell followed by others."""
    return bool(_AFTER_LABEL.match(sentence, end))


def is_table_head(sentence: str) -> bool:
    """Return whether a claim is the head of a table, with no more than a label in each cell."""
    return sentence.startswith("|") and not any(
        len(read_text(cell).content_words()) > _LONGEST_LABEL or quantities(cell) for cell in sentence.split("|")
    )


def _is_empty(clause: str, sign: str) -> bool:
    """Return whether what stands before a sign, such as `Key points:`, states nothing of its own."""
    words = read_text(stated_part(f"{clause}{sign}")).content_words()
    return all(map(is_about_writing, words)) and not quantities(clause)


def subject_words(stated: str, *, translated: bool = True) -> list[ContentWord]:
    """Return the content words of a claim, with translations, except those about the writing itself."""
    return [word for word in read_text(stated).content_words(translated=translated) if not is_about_writing(word)]


def is_not_found(answer: str | ClaimedText) -> bool:
    """Return whether an answer only says that there is none, in a mode's not-found sentence or in its own words."""
    if not isinstance(answer, str) and not any(claim.numbers for claim in answer.claims):
        answer = answer.text  # whole sentences say more than the clauses that they were cut into
    parts = split_claims(answer) if isinstance(answer, str) else answer
    if is_not_found_sentence(parts.text):
        return True
    kinds = {kind for claim in parts.claims for kind in _kinds(claim)}
    return "silence" in kinds and kinds <= {"silence", "talk", "question", "about"}


def _kinds(claim: Claim) -> set[str]:
    """Return the kinds of a sentence's clauses; what it cites something for counts as a statement."""
    patterns = _patterns()
    text = patterns["quoted"].sub("", fold_han(claim.text))
    if claim.numbers:
        return {claim_kind(text[start:end]) for start, end in clause_spans(text, COMMA, patterns["turn"])}
    if lead := patterns["about"].match(text):
        _, *rest = clause_spans(text, COMMA, patterns["turn"], patterns["also"])
        who = lead["en"] or lead["zh"]
        return {"about", *(_uncited_kind(f"{who} {text[slice(*at)]}") for at in rest)}
    spans = clauses(text)
    if (
        len(spans) == 1
        and spans[0][2] == "statement"
        and (patterns["gap"].match(text) or patterns["looked"].match(text))
    ):
        spans = [(*at, _uncited_kind(text[slice(*at)])) for at in clause_spans(text, COMMA, patterns["turn"])]
    found: set[str] = set()
    for (start, end, _), (_, _, following) in zip(spans, [*spans[1:], (0, 0, "")], strict=True):
        clause = text[start:end]
        kind = _uncited_kind(clause)
        is_open = following == "silence" and (patterns["open"].search(clause) or patterns["looked"].match(clause))
        is_empty = not is_label(text, end) and _is_empty(clause, "，")
        is_about = "silence" in found and patterns["about"].match(clause)
        found.add("talk" if kind == "statement" and (is_open or is_empty or is_about) else kind)
    return found


def _uncited_kind(clause: str) -> ClaimKind:
    kind = claim_kind(clause)
    if kind != "statement" or not _patterns()["gap"].search(clause) or _patterns()["but_for"].search(clause):
        return kind
    return "statement" if quantities(clause) else "silence"


def is_not_found_sentence(text: str) -> bool:
    """Return whether a text without marks is the not-found sentence of a mode."""
    return tuple(terms(text)) in _sentences()


@cache
def _sentences() -> frozenset[tuple[str, ...]]:
    sentences = (not_found_sentence(mode, language) for mode in modes_with_sentence() for language in _LANGUAGES)
    return frozenset(tuple(terms(sentence)) for sentence in sentences)
