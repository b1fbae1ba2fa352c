"""Judges the claims of an answer against its passages: each gets a score, a verdict, a span and a reason."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from shiguan.claims.evidence import Reading
from shiguan.text.terms import STOP_WORDS

Verdict = Literal["supported", "partial", "unsupported", "contradicted"]

# Scores from which a claim counts as supported, and as supported in part.
SUPPORTED, PARTIAL = 0.62, 0.42


@dataclass(frozen=True)
class Weights:
    """What a claim's own score is made of."""

    shares: tuple[float, float, float]
    alignment: float
    unrelated: float
    same: float


FITTED = Weights(shares=(0.3, 0.3, 0.4), alignment=0.6, unrelated=0.3, same=1.0)
"""Fitted by `python -m bench.quality.groundedness --fit` on half A of WiCE and MT-RAG."""

# Deducted for each number and each name that no passage has, at most two of each.
_NUMBER_COST, _NAME_COST = 0.15, 0.1
# A short claim offers few words to judge by, so the mean of its answer counts with the weight of this many words.
_LEANING = 2.0
# The verdict does not use that mean: a short sentence about something else must not pass on its neighbours' merit. It
# needs a higher score of the claim's own, and for full support most of its words close together.
_SURE_PARTIAL, _SURE_WORDS = 0.5, 0.65
_WORDS_ALONE = (SUPPORTED - 0.01 - _SURE_PARTIAL) / (1 - _SURE_PARTIAL)
# The share of a claim's words, names and numbers aside, that must occur close together near its names: of a whole
# claim, of a clause, and where the passages are classical Chinese.
_LEAST_CONTENT, _LEAST_IN_CLAUSE, _LEAST_CLASSICAL = 0.4, 0.34, 0.22
# A passage says a claim in other words from this alignment on or, where there is none, from these shares of the
# claim's words: all, and without its names and numbers, which an invention about the same persons has too.
_ALIGNED, _SAME_MATTER, _OTHER_WORDS = 0.54, 0.45, 0.25
# The score of an answer before anything is known about it, and its weight.
_PRIOR, _PRIOR_WEIGHT = 0.75, 1.0
# The share of its score that a contradicted claim keeps, so that it stays below one that is supported in part.
_CONTRADICTED_SHARE = 0.55
# A modern retelling keeps less than half of a classical sentence's characters: measured on pairs of the Tang histories,
# .29 of them in three sentences correspond to .42 of the weight between modern texts, and .43 to .62.
_CLASSICAL_SCALE = 1.45
_EMPHASIS = re.compile(r"\*+|`+|^#+\s+")
_LABEL = re.compile(r"^\s*\*\*([^*]{1,60})\*\*\s*[:：]?|^\s*\*\*([^*]{1,60}[:：])\*\*")
_TITLE, _WORD = re.compile(r"^\s*(?:#{1,6}\s|\*\*[^*]+\*\*[:：]?\s*$)"), re.compile(r"[^\W\d_]+")
# The number of the next item of a list; behind a colon only the first: in `2019: 12.` it is what is counted.
_NEXT_ITEM = re.compile(r"(?:(?<=[.!?。！？;；])\s+\d{1,2}|(?<=[:：])\s+1)[.)]\s*$")


@dataclass(frozen=True)
class Support:
    """How far the passages support a claim."""

    score: float
    verdict: Verdict
    reason: str
    passage: int = -1
    start: int = 0
    end: int = 0
    similarity: float = 0.0
    """The share of the claim's words that the span has, 0 to 1."""
    foreign: bool = False
    """Whether no passage is in the claim's language, so that its words could not be compared."""
    exact: bool = False
    """Whether it rests on words, numbers or names compared directly, so that no further judgement is needed."""
    same_words: bool = False
    """Whether the span has the words of the claim, but nobody has judged whether it says the same."""
    differs: str = ""
    """The words of the passage that contradict the claim."""
    instead_of: str = ""
    """The words of the claim in whose place the passage has these, if it has any in their place."""


def plain_claim(sentence: str) -> str:
    """Remove the Markdown from a sentence, so that a label in bold is not mistaken for a name."""
    label = _LABEL.match(sentence)
    if _TITLE.match(sentence) and all(w[0].isupper() or w in STOP_WORDS for w in _WORD.findall(sentence)):
        sentence = sentence.lower()  # Where Every Word Is Capitalised, capitals do not show names
    elif label:
        name = (label[1] or label[2]).rstrip(":：")
        sentence = f"{name.lower()}: {sentence[label.end() :].strip()}"
    return _NEXT_ITEM.sub("", _EMPHASIS.sub("", sentence)).strip()


def judge(readings: Sequence[Reading], alignments: Sequence[float | None], weights: Weights = FITTED) -> list[Support]:
    """Score the claims of one answer; the shorter a claim, the more the mean of all counts for it."""
    own = [_own(reading, aligned, weights) for reading, aligned in zip(readings, alignments, strict=True)]
    weight = sum(reading.weight for reading in readings)
    mean = sum(score * reading.weight for score, reading in zip(own, readings, strict=True))
    mean = (mean + _PRIOR * _PRIOR_WEIGHT) / (weight + _PRIOR_WEIGHT)
    return [_judged(*one, mean) for one in zip(readings, alignments, own, strict=True)]


def _own(reading: Reading, aligned: float | None, weights: Weights) -> float:
    if reading.verbatim:
        return 1.0
    if reading.classical:
        words = min(1.0, _CLASSICAL_SCALE * reading.window)
    else:
        shares = (reading.sentence, reading.window, reading.passages)
        words = sum(part * share for part, share in zip(weights.shares, shares, strict=True))
    if aligned is not None:
        nearness = (aligned - weights.unrelated) / (weights.same - weights.unrelated)
        words += weights.alignment * (max(0.0, min(1.0, nearness)) - words)
    words -= _NUMBER_COST * min(2, len(reading.foreign_numbers)) + _NAME_COST * min(2, len(reading.foreign_names))
    return max(0.0, min(1.0, words))


def _judged(reading: Reading, aligned: float | None, own: float, mean: float) -> Support:
    if not reading.windows:
        return Support(0.0, "unsupported", "there is no passage to compare with")
    best = reading.windows[0]
    span = (best.passage, best.start, best.end, reading.window)
    if reading.verbatim:
        how = "word for word" if reading.word_for_word else "in nearly the same words"
        return Support(1.0, "supported", f"a passage says so {how}", *span, exact=True)
    score = (own * reading.weight + mean * _LEANING) / (reading.weight + _LEANING)
    against, differs, instead_of = _contradiction(reading)
    if against:
        score = min(score * _CONTRADICTED_SHARE, PARTIAL - 0.01)
        return Support(score, "contradicted", against, *span, exact=True, differs=differs, instead_of=instead_of)
    missing = missing_content(reading)
    if reading.foreign_numbers or reading.foreign_names:
        # A number is a fact of its own: where no passage has it, the claim cannot be supported.
        exact = bool(reading.foreign_numbers)
        return Support(min(score, SUPPORTED - 0.01), "unsupported", missing, *span, exact=exact)
    if aligned is None:
        same_matter = reading.window >= _SAME_MATTER and reading.content >= _OTHER_WORDS
    else:
        same_matter = aligned >= _ALIGNED
    same_matter = same_matter and not reading.stray_numbers
    if missing and not same_matter:
        return Support(_unchecked(score), "unsupported", missing, *span)
    if reading.comparison.differences:
        difference = reading.comparison.differences[0]
        instead = f"where the claim has “{difference.claimed}”" if difference.kind == "word" else "before it"
        doubt = f"the passage has “{difference.found}” {instead}"
        # A claim whose other words are all there is supported in part.
        verdict: Verdict = "partial" if own >= _SURE_PARTIAL else "unsupported"
        return Support(_unchecked(score), verdict, doubt, *span)
    if reading.doubted:
        doubt = "a passage has these words, but may not state them"
        return Support(_unchecked(score), "partial", doubt, *span, same_words=True)
    if own >= SUPPORTED and (reading.classical or reading.window >= _SURE_WORDS):
        # Words do not show who did what to whom: that takes a judge that reads both.
        return Support(_unchecked(score), "partial", "the same words, not checked further", *span, same_words=True)
    if own >= _SURE_PARTIAL and not missing:
        return Support(_unchecked(score), "partial", "the passages say only a part of it", *span)
    if same_matter:
        told = "a passage speaks of this in other words, not checked further"
        return Support(max(_unchecked(score), PARTIAL), "partial", told, *span)
    return Support(_unchecked(score), "unsupported", "the passages do not say so", *span)


def _unchecked(score: float) -> float:
    """Keep the score of a claim that only shares words below that of a supported one, in the same order."""
    return score if score < _SURE_PARTIAL else _SURE_PARTIAL + (score - _SURE_PARTIAL) * _WORDS_ALONE


def missing_content(reading: Reading, *, in_clause: bool = False) -> str:
    """Describe what of a claim the passages lack, or have only near other matters; empty if nothing is missing."""
    if missing := [*reading.foreign_numbers, *reading.foreign_names]:
        return f"no passage has {', '.join(missing[:3])}"
    least = _LEAST_CLASSICAL if reading.classical else _LEAST_IN_CLAUSE if in_clause else _LEAST_CONTENT
    if reading.content < least:
        return "the passages do not say so"
    strays = reading.stray_numbers
    return f"the passages have {', '.join(strays[:3])} only in another context" if strays else ""


def _contradiction(reading: Reading) -> tuple[str, str, str]:
    """Return why the passages contradict a claim, their words that do, and those of the claim that these replace."""
    for difference in reading.comparison.differences:
        if difference.kind == "negation":
            return "only one of the two denies it", difference.found, ""
        if difference.kind not in ("word", "limit"):
            reason = f"the passage has “{difference.found}” where the claim has “{difference.claimed}”"
            return reason, difference.found, difference.claimed
    found = reading.rival.partition(": ")[2]
    return (f"the passage has {reading.rival}", found, reading.rival_of) if reading.rival else ("", "", "")
