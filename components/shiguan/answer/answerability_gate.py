"""Passes a question to the model only if something was found, and estimates how likely that holds the answer."""

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any, Final

from haystack import Document, component, logging

from shiguan.answer.question_names import near_names
from shiguan.llm.calls import Outcome
from shiguan.reading.passage import MOST_QUOTED, Passage, highest_cosines
from shiguan.reading.question import Question, read_question
from shiguan.reading.text import read_text
from shiguan.text.dictionary import TRANSLATED, dictionary_words
from shiguan.text.languages import HAN, has_han
from shiguan.text.names import heard_names, sounds_of_text
from shiguan.text.passages import ALL_EMBEDDED
from shiguan.text.terms import covered, fold_text, terms

logger = logging.getLogger(__name__)

# Of .05 to .1 the value that, with the other signals, best predicted whether an answer was shown (docs/quality.md);
# .02 more or less changes little.
_BETWEEN_LANGUAGES = 0.07

# What the judge's log-odds count for, here and in the order of quotations, and those from which on they speak for an
# answer, by the question's language (bench/judge/README.md).
ODDS_SHARE, NEITHER = 0.75, {"en": -1.75, "zh": -0.95}

# How many passages behind the nearest one are what it stands out from; three, or all, tell as much.
_BEHIND = 5

# What a question asks an amount in: "in modern dollars", "how many euros", 折合多少美元.
_ASKED_IN = re.compile(
    rf"\b(?:in|into|how many)((?: [a-z0-9]+){{1,3}})|(?:(?:多少|[几幾])[万萬亿億]?|折合?成?)([{HAN}]+)", re.IGNORECASE
)
_OTHER_WORDS = 3
"""Units of money with no more letters than this are other words more often: won."""

# What a question denies, and what a passage says that can answer it.
_DENIES = re.compile(r"\b(?:not|never|cannot|except)\b|n['’]t\b|\bnon-", re.IGNORECASE)
_DENIED = re.compile(
    r"\b(?:not?|never|cannot|none|neither|nor|without|except|unlike|unable|fail\w*|refus\w*|lack\w*)\b"
    r"|n['’]t\b|\bnon-|[不没沒未非无無]",
    re.IGNORECASE,
)
_MOST_WORDS = 0.8
"""The share of the words of the sentences with most of them that others need to be read as well."""
_NOT_DENIED = 0.1
"""The highest probability where no passage denies what a question denies: about the share of these that are right."""


@dataclass(frozen=True)
class Signals:
    """
    The evidence that passages hold an answer, each signal from 0 to about 1.

    :param cosine: The best cosine of the question and a child in the language of the first passage; .07 more where that
        is not the question's language, because vectors of two languages lie farther apart than their meanings.
    :param coverage: The share of the question's words, weighted by rarity, that the passages have together, as such or
        in translation.
    :param agreement: How near the passage with most of them is by its vectors: its best cosine over the best of all.
    :param chinese: Whether the question is in Han characters, whose words and cosines have a different scale.
    :param same_language: Whether the first passage is in the question's language. What stands behind it in another
        language of the library says nothing.
    :param language_gap: How much higher the best cosine of all languages is than that of the first passage's language:
        what another language of the library has is nearer.
    :param matched_coverage: The share of the question's words that the matched places of the first passage have, in
        translation or, of a name, by sound. It is 0 where that passage is in the question's language.
    :param lead: How much nearer the nearest passage in the language of the first is than the five behind it: where none
        answers, all are about as near. It is 0 where the first passage is in the question's language.
    """

    cosine: float = 0.0
    coverage: float = 0.0
    agreement: float = 0.0
    chinese: float = 0.0
    same_language: float = 0.0
    language_gap: float = 0.0
    matched_coverage: float = 0.0
    lead: float = 0.0


@dataclass(frozen=True)
class Calibration:
    """A logistic model of the signals."""

    bias: float
    weights: Signals

    def probability(self, signals: Signals) -> float:
        """Return the probability, 0 to 1."""
        weights = asdict(self.weights)
        odds = self.bias + sum(weights[name] * value for name, value in asdict(signals).items())
        return 1 / (1 + math.exp(-odds))


# Printed by `python -m bench.quality.calibration`: fitted on public paragraph sets and half of the questions on books;
# in Chinese .2 less, because of what is asked beside the passages of a book in its own words.
FITTED: Final = Calibration(
    bias=-33.951,
    weights=Signals(
        cosine=39.646, coverage=1.216, agreement=1.844, chinese=-0.599, same_language=-2.905, language_gap=-60.078
    ),
)
# The same where the passages have no vectors: the weights are missing, or the passages are not embedded yet.
FITTED_BY_WORDS: Final = Calibration(
    bias=-3.03,
    weights=Signals(coverage=3.03, chinese=1.073, same_language=0.21),
)
# The same where the question is in one of English and Chinese and the first passage in the other, printed by
# `python -m bench.quality.across_calibration`: there the cosine itself says least.
FITTED_ACROSS: Final = Calibration(
    bias=-1.502,
    weights=Signals(language_gap=-18.61, matched_coverage=4.87, lead=32.66),
)


CLOSEST_BELOW = 0.33
"""The probability below which passages are shown as the closest ones, because it is doubtful that they answer."""
NOTHING_BELOW = 0.03
"""The probability below which nothing is near. docs/quality.md shows how many answerable questions each costs."""


def probability(question: str, documents: Sequence[Document], nearest: Sequence[Document]) -> float:
    """Return the probability, 0 to 1, that the first passages hold an answer to a question."""
    if not documents:
        return 0.0
    # If the first passage is not among the nearest and others wait for their vectors, it may have none yet: then what
    # is nearest says nothing about it. Where all have theirs it is far from the question, which says much.
    waiting = not (nearest and nearest[0].meta.get(ALL_EMBEDDED))
    if waiting and all(documents[0].id != Passage(child).parent_id for child in nearest):
        fitted = FITTED_BY_WORDS.probability(signals_of(question, documents, []))
    else:
        across = {read_text(question).language, Passage(documents[0]).language} == TRANSLATED
        signals = signals_of(question, documents, nearest)
        # Of other pairs of languages nothing was learned, so that being in another language speaks for no passage.
        fitted = FITTED_ACROSS.probability(signals) if across else FITTED.probability(replace(signals, same_language=1))
    return min(fitted, highest_probability(question, documents))


def read_probability(likely: float, question: str, documents: Sequence[Document], odds: Sequence[float]) -> float:
    """Return the probability that passages hold an answer, by the retrieval and by the judge's odds of quotations."""
    if not odds or not 0 < likely < 1:
        return likely
    both = math.log(likely / (1 - likely)) + ODDS_SHARE * (max(odds) - NEITHER[read_text(question).language])
    return min(1 / (1 + math.exp(-both)), highest_probability(question, documents))


def highest_probability(question: str, documents: Sequence[Document]) -> float:
    """Return the highest probability that the rules allow, whatever the signals are."""
    if _asks_in_other_money(question, documents):
        return 0.0
    return _NOT_DENIED if _denies_alone(question, documents) else 1.0


def signals_of(question: str, documents: Sequence[Document], nearest: Sequence[Document]) -> Signals:
    """Read the signals from the passages, best first, and from the children nearest by their vectors."""
    asked = read_question(question)
    weights, language = asked.weights, asked.language
    shown = [Passage(document) for document in documents[:MOST_QUOTED]]
    first = shown[0].language if shown else language
    across = first != language
    cosines: dict[str, float] = {}
    within: dict[str, float] = {}
    in_first: dict[str, float] = {}
    for (parent, child_language), near in highest_cosines(nearest).items():
        cosines[parent] = max(cosines.get(parent, 0.0), near)
        within[child_language] = max(within.get(child_language, 0.0), near)
        if across and child_language == first:
            in_first[parent] = max(in_first.get(parent, 0.0), near)
    highest = max(cosines.values(), default=0.0)
    cosine = within.get(first, highest)
    words = [passage.words for passage in shown]
    known = set[str]().union(*words)
    for other in {passage.language for passage in shown} - {language}:
        known = asked.with_translated(known, other)
    widest = max(range(len(shown)), key=lambda at: covered(weights, words[at]), default=0)
    return Signals(
        cosine=cosine + _BETWEEN_LANGUAGES if cosine and across else cosine,
        coverage=covered(weights, known),
        agreement=cosines.get(shown[widest].document.id, 0.0) / highest if shown and highest else 0.0,
        chinese=float(has_han(question)),
        same_language=float(bool(shown) and not across),
        language_gap=highest - within.get(first, highest),
        matched_coverage=matched_coverage(asked, shown[0], first) if across else 0.0,
        lead=_lead(in_first.values()),
    )


def matched_coverage(question: Question, passage: Passage, language: str) -> float:
    """Return the share of a question's words that the matched places of a passage in a language have."""
    text = _matched_text(passage)
    heard = heard_names(question.string, frozenset(sounds_of_text(text)))
    known = question.with_translated({*terms(text), *(term for name in heard for term in terms(name))}, language)
    return covered(question.weights, known)


def _matched_text(passage: Passage) -> str:
    """Return the places of a passage that the retrieval matched; the whole passage where it did not say."""
    text = passage.text.string
    places = (text[max(0, start) : max(0, end)] for start, end, _ in passage.matches)
    return "\n".join(filter(None, places)) or text


def _lead(cosines: Iterable[float]) -> float:
    """Return how much higher the highest cosine is than the mean of the next ones; 0 if there is only one."""
    nearest = sorted(cosines, reverse=True)[: 1 + _BEHIND]
    return nearest[0] - fmean(nearest[1:]) if len(nearest) > 1 else 0.0


def _denies_alone(question: str, documents: Sequence[Document]) -> bool:
    """Return whether a question denies something, and no two sentences with most of its words deny anything."""
    if not _DENIES.search(question):
        return False
    weights, pairs = read_question(question).weights, dict[str, float]()
    for text in (document.content or "" for document in documents[:MOST_QUOTED]):
        spans = read_text(text).sentences
        for (start, _), (_, end) in zip(spans, spans[1:] or spans, strict=False):
            pairs[text[start:end]] = covered(weights, terms(text[start:end]))
    most = _MOST_WORDS * max(pairs.values(), default=0.0)
    return not any(_DENIED.search(pair) for pair, share in pairs.items() if share >= most)


def _asks_in_other_money(question: str, documents: Sequence[Document]) -> bool:
    """Return whether a question asks for an amount in money that no passage mentions, so that none can answer it."""
    asked = " ".join(map("".join, _ASKED_IN.findall(question))).lower().split()
    looked_up = ((word, one) for word in asked for one in dictionary_words(word, translated=True))
    for written, (parts, meanings) in looked_up:
        forms = ["".join(parts) if has_han(written) else written.removesuffix("s"), *map(str.lower, meanings)]
        signs = {unit: sign for unit in " ".join(forms).split() if (sign := _money_sign(unit))}
        if signs:
            text = "\n".join(fold_text(document.content or "") for document in documents)
            return not any(form in text for form in (*forms, *signs, *signs.values()))
    return False


def _money_sign(unit: str) -> str:
    """Return the sign of a unit of money, by Unicode's names; empty if it is none."""
    try:
        sign = unicodedata.lookup(f"{unit} sign")
    except KeyError:
        return ""
    return sign if unicodedata.category(sign) == "Sc" and len(unit) > _OTHER_WORDS else ""


@component
class AnswerabilityGate:
    """
    Asks no model where nothing was found, and estimates how likely the passages hold an answer.

    It comes before the context. Where no passage was found the answer is the mode's not-found sentence, status
    `not_found`, and no model is asked: an `Outcome` goes to `CitationExtractor`, which writes every answer. Otherwise
    the passages go on: whether they answer is decided by the model that reads them. The probability, computed from what
    the retrieval found and calibrated on public question sets (docs/quality.md shows how good it is), is for
    `CitationExtractor`, which decides by it what to quote where there is no model, and for a caller who only wants
    answers above a threshold.

    Example:
    ```python
    gate = AnswerabilityGate()
    gate.run(documents, query="Where did An Lushan rise?", nearest=children)["confidence"]  # 0.83
    gate.run([], query="Where did An Lushan rise?")["outcome"].reason  # "nothing_found"
    ```
    """

    def __init__(self, *, needs_documents: bool = True) -> None:
        """
        Set what is refused.

        :param needs_documents: Whether to stop where nothing was found; False for a mode that can search elsewhere.
        """
        self.needs_documents = needs_documents

    @component.output_types(documents=list[Document], outcome=Outcome, confidence=float, warnings=list[str])
    def run(
        self,
        documents: list[Document],
        query: str,
        *,
        nearest: list[Document] | None = None,
        confidence_threshold: float | None = None,
    ) -> dict[str, Any]:
        """
        Decide whether the passages go on to the model.

        :param documents: The passages, best first.
        :param query: The standalone question.
        :param nearest: The children nearest by their vectors, with cosines as score or, where that is scaled, as
            `meta.raw_score`; None where there are no vectors.
        :param confidence_threshold: The probability below which this question is not answered. It is ignored for
            passages that passed the gate before, which have a number.
        :returns: `confidence`, the probability, 0 to 1, and either `documents`, unchanged, or `outcome`, that nothing
            was found or that it is below the threshold; `warnings` that suggest a name of the passages for a name of
            the question that none of them has, and that name dates of the question which do not exist.
        """
        confidence = round(probability(query, documents, nearest or []), 4)
        warnings = near_names(query, documents)
        warnings += [f"{date.label} does not exist: {date.fault}." for date in read_question(query).dates if date.fault]
        logger.debug("The passages answer with probability {confidence}", confidence=confidence)
        read = any("number" in document.meta for document in documents)
        unlikely = confidence_threshold is not None and confidence < confidence_threshold and not read
        if (documents or not self.needs_documents) and not unlikely:
            return {"documents": documents, "confidence": confidence, "warnings": warnings}
        ended = Outcome("not_found", "below_threshold" if documents else "nothing_found", documents=tuple(documents))
        return {"outcome": ended, "confidence": confidence, "warnings": warnings}
