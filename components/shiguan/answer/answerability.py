"""Tells from words alone how likely some passages answer a question at all; where they do not, nothing is quoted."""

from collections.abc import Sequence
from dataclasses import dataclass

from shiguan.text.han import has_han
from shiguan.text.rarity import covered, rarity

# What speaks for an answer: the best sentence's score; pairs of the question's words in it; the share of words that no
# passage has; the share of the question's rarity in the sentence with its neighbours, and in its whole passage; how far
# that passage stands out from the others; the rarest word that it lacks; the number of words (up to twelve); the share
# of names near the sentence. Fitted by logistic regression, own questions against those of another set, every set with
# the same weight: English on one half (by the CRC-32 of the question's id) of SQuAD 2, ExpMRC, HotpotQA and MuSiQue,
# Chinese on one half of CMRC 2018, DRCD and ExpMRC; rounded. Questions whose answer stood in the foreign passages by
# chance were left out. bench/quality/answer_bars.py reports the other half. Chinese terms are characters and pairs of
# them and English ones words, so that the same share does not mean the same: hence two rows.
_FEATURES = ("score", "phrase", "unsaid", "near", "passage", "stands_out", "rarest", "length", "names")
_HAN_WEIGHTS = (0.2, 2.9, -4.8, 3.9, 3.3, 0.0, 0.0, 2.0, 0.0)
_OTHER_WEIGHTS = (0.4, 0.0, -3.5, 4.1, 4.8, -4.2, 1.6, 2.8, 2.0)
# Where the line is drawn: about one answerable question in fifteen falls below it.
_HAN_BIAS, _OTHER_BIAS = -4.8, -6.4
# What stands for the share of names where the question has none, and for standing out where there is one passage.
_NO_NAMES, _ALONE = 0.75, 0.3
_MOST_WORDS = 12


@dataclass(frozen=True)
class Grounds:
    """What a judgement rests on; all words are search terms."""

    asked: Sequence[str]
    names: Sequence[str]
    score: float
    phrase: float
    near: frozenset[str]
    passage: frozenset[str]
    others: Sequence[frozenset[str]]


def log_odds(grounds: Grounds) -> float:
    """Judge whether the passages answer."""
    if not grounds.asked:
        return float(min(_HAN_BIAS, _OTHER_BIAS))
    weights = {word: rarity(word) for word in grounds.asked}
    passage = covered(weights, grounds.passage)
    others = [covered(weights, words) for words in grounds.others]
    said = grounds.passage.union(*grounds.others)
    content = [word for word in grounds.asked if len(word) > 1 or not has_han(word)] or grounds.asked
    values = (
        grounds.score,
        grounds.phrase,
        sum(word not in said for word in grounds.asked) / len(grounds.asked),
        covered(weights, grounds.near),
        passage,
        passage - sum(others) / len(others) if others else _ALONE,
        max((weight for word, weight in weights.items() if word not in grounds.passage), default=0.0),
        min(len(content), _MOST_WORDS) / _MOST_WORDS,
        sum(word in grounds.near for word in grounds.names) / len(grounds.names) if grounds.names else _NO_NAMES,
    )
    han = any(has_han(word) for word in grounds.asked)
    chosen, bias = (_HAN_WEIGHTS, _HAN_BIAS) if han else (_OTHER_WEIGHTS, _OTHER_BIAS)
    return bias + sum(weight * value for weight, value in zip(chosen, values, strict=True))
