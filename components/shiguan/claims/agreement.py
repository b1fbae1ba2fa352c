"""Checks locally whether a passage supports a claim: shared words, numbers, dates, names and negation."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from shiguan.claims.verbatim import find_verbatim, substitutes
from shiguan.text.name_clues import foreign_names
from shiguan.text.negation import negations
from shiguan.text.quantities import Quantity, quantities
from shiguan.text.sentences import sentence_spans
from shiguan.text.terms import terms

Verdict = Literal["supported", "partial", "unsupported", "contradicted"]

# Scores from which a claim counts as supported, and as supported in part.
SUPPORTED, PARTIAL = 0.6, 0.3
# A number or a name that the passage does not have takes this much; a claim with one is never more than partial.
_FOREIGN_COST = 0.35
# So similar are a claim and a span that say the same about something, so that a difference is a contradiction.
_SAME_MATTER = 0.55
_SAME_SENTENCE = 0.8
_SAME_LENGTH = 1.4
_WINDOW = 3
# What a longer span must gain to be preferred.
_LENGTH_COST = 0.04
_SINGLE = 0.35
# A pair with one of these characters is hardly a word.
_FUNCTION_CHARACTERS = frozenset("的是了在于与和及而之其也者为以有这那被把将由从到一个不所他她它们就都又并则乃")
_FUNCTION_PAIR = 0.3
_NUMBER_WEIGHT = 1.5


@dataclass(frozen=True)
class Agreement:
    """How a passage stands to a claim."""

    score: float
    similarity: float
    start: int
    end: int
    verdict: Verdict
    reason: str


@dataclass(frozen=True)
class _Passage:
    text: str
    spans: tuple[tuple[int, int], ...]
    words: tuple[frozenset[str], ...]
    numbers: tuple[tuple[Quantity, ...], ...]


@lru_cache(maxsize=256)
def _passage(text: str) -> _Passage:
    spans = sentence_spans(text)
    sentences = [text[start:end] for start, end in spans]
    return _Passage(
        text,
        tuple(spans),
        tuple(frozenset(terms(sentence)) for sentence in sentences),
        tuple(tuple(quantities(sentence)) for sentence in sentences),
    )


def agreement(claim: str, passage: str) -> Agreement:
    """
    Check one claim against one passage.

    The best span is the window of up to three neighbouring sentences that has most of the claim's words, weighted by
    their rarity in the passage; words that the passage does not have weigh most. Numbers, dates and names of the claim
    that are not there cost, and where the span speaks of the same matter with another number, with another name, or
    with the opposite sign, it contradicts.
    """
    known = _passage(passage)
    claimed = quantities(claim)
    # Numbers are compared by value, not by spelling.
    asked = list(dict.fromkeys(terms(_without(claim, claimed))))
    if not known.spans or not (asked or claimed):
        return Agreement(0.0, 0.0, 0, 0, "unsupported", "there is nothing to compare")
    verbatim = find_verbatim(claim, passage)
    if verbatim:
        start, end = _whole_sentences(known.spans, verbatim)
        return Agreement(1.0, 1.0, start, end, "supported", "the passage says so word for word")
    weights = _weights(asked, known.words)
    first, last, similarity = _best_window(weights, known, claimed)
    start, end = known.spans[first][0], known.spans[last][1]
    span = passage[start:end]
    whole = max(similarity, _covered(weights, frozenset().union(*known.words)))
    # What other sentences of the passage add counts half: a claim may sum up what stands further apart.
    score = similarity + 0.4 * (whole - similarity)

    said = [number for sentence in known.numbers for number in sentence]
    near = [number for sentence in known.numbers[first : last + 1] for number in sentence]
    foreign = [number for number in claimed if not any(number.agrees_with(other) for other in said)]
    names = foreign_names(claim, passage)
    matter = _matter(weights, names, frozenset().union(*known.words[first : last + 1]))
    if matter >= _SAME_SENTENCE:
        # A sentence told nearly word for word takes its numbers from the span, not from elsewhere in the passage.
        foreign = foreign or [number for number in claimed if not any(number.agrees_with(other) for other in near)]
    names = names or substitutes(claim, span, passage)
    if foreign and matter >= _SAME_MATTER and _rivals(foreign, claimed, near):
        return Agreement(
            min(score, PARTIAL) * 0.5,
            similarity,
            start,
            end,
            "contradicted",
            f"the passage has another number than {_shown(claim, foreign)}",
        )
    if names and matter >= _SAME_MATTER and foreign_names(span, claim):
        return Agreement(
            min(score, PARTIAL) * 0.5,
            similarity,
            start,
            end,
            "contradicted",
            f"the passage does not name {', '.join(names[:3])}",
        )
    if (
        similarity >= _SAME_SENTENCE
        and negations(claim) % 2 != _nearest_negations(claim, weights, known, first, last) % 2
    ):
        return Agreement(
            min(score, PARTIAL) * 0.5, similarity, start, end, "contradicted", "only one of the two denies it"
        )
    score -= _FOREIGN_COST * bool(foreign) + _FOREIGN_COST * bool(names)
    score = max(0.0, min(1.0, score))
    if foreign or names:
        missing = [*(claim[q.start : q.end] for q in foreign), *names]
        verdict: Verdict = "partial" if score >= PARTIAL else "unsupported"
        return Agreement(score, similarity, start, end, verdict, f"the passage does not have {', '.join(missing[:3])}")
    if score >= SUPPORTED:
        return Agreement(score, similarity, start, end, "supported", "the passage says so")
    if score >= PARTIAL:
        return Agreement(score, similarity, start, end, "partial", "the passage says only a part of it")
    return Agreement(score, similarity, start, end, "unsupported", "the passage does not say so")


def _whole_sentences(spans: Sequence[tuple[int, int]], found: tuple[int, int]) -> tuple[int, int]:
    touched = [span for span in spans if span[0] < found[1] and found[0] < span[1]]
    return touched[0][0], touched[-1][1]


def _best_window(weights: dict[str, float], known: _Passage, claimed: Sequence[Quantity]) -> tuple[int, int, float]:
    total = sum(weights.values())
    number_weight = max(_NUMBER_WEIGHT, total / len(weights)) if weights else 1.0
    best = (0, 0, 0.0)
    best_value = -1.0
    for first in range(len(known.words)):
        words: frozenset[str] = frozenset()
        numbers: list[Quantity] = []
        for last in range(first, min(first + _WINDOW, len(known.words))):
            words |= known.words[last]
            numbers.extend(known.numbers[last])
            held = sum(any(number.agrees_with(other) for other in numbers) for number in claimed)
            covered = (_covered(weights, words) * total + number_weight * held) / (total + number_weight * len(claimed))
            value = covered - _LENGTH_COST * (last - first)
            if value > best_value + 1e-9:
                best, best_value = (first, last, covered), value
    return best


def _weights(asked: Sequence[str], sentences: Sequence[frozenset[str]]) -> dict[str, float]:
    frequency = Counter(word for sentence in sentences for word in sentence)
    total = len(sentences)
    return {word: math.log((total + 2) / (frequency[word] + 0.5)) * _share(word) for word in asked}


def _share(word: str) -> float:
    if ord(word[0]) <= 0x2E7F:
        return 1.0
    if not _FUNCTION_CHARACTERS.isdisjoint(word):
        return _FUNCTION_PAIR * (_SINGLE if len(word) == 1 else 1.0)
    return _SINGLE if len(word) == 1 else 1.0


def _without(claim: str, numbers: Sequence[Quantity]) -> str:
    pieces = list(claim)
    for number in numbers:
        pieces[number.start : number.end] = " " * (number.end - number.start)
    return "".join(pieces)


def _covered(weights: dict[str, float], words: frozenset[str]) -> float:
    total = sum(weights.values())
    return sum(weight for word, weight in weights.items() if word in words) / total if total else 0.0


def _matter(weights: dict[str, float], names: Sequence[str], words: frozenset[str]) -> float:
    """Tell how much of what a claim says, its foreign names aside, a span says too."""
    named = {word for name in names for word in terms(name)}
    rest = {
        word: weight
        for word, weight in weights.items()
        # A pair that straddles the name's edge goes with the name.
        if word not in named and not (len(word) == 2 and ord(word[0]) > 0x2E7F and not named.isdisjoint(word))
    }
    return _covered(rest, words)


def _rivals(foreign: Sequence[Quantity], claimed: Sequence[Quantity], near: Sequence[Quantity]) -> bool:
    """Tell whether the span has another number of the same kind in place of one of the claim."""
    spare = [number for number in near if not any(number.agrees_with(other) for other in claimed)]
    return any(number.comparable_with(other) for number in foreign for other in spare)


def _nearest_negations(claim: str, weights: dict[str, float], known: _Passage, first: int, last: int) -> int:
    """Count negations in the one sentence of the span that is most like the claim."""
    best = max(range(first, last + 1), key=lambda at: _covered(weights, known.words[at]))
    start, end = known.spans[best]
    sentence = known.text[start:end]
    if len(sentence) > _SAME_LENGTH * len(claim):
        # A long sentence may deny something else.
        return negations(claim)
    return negations(sentence)


def _shown(claim: str, numbers: Sequence[Quantity]) -> str:
    return ", ".join(re.sub(r"\s+", " ", claim[number.start : number.end]) for number in numbers[:3])
