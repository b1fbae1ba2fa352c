"""Scores the sentences of numbered sources by how likely each answers a question, with words alone."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from shiguan.support.question_shapes import Shape, has_shape, question_shapes, question_subject
from shiguan.support.sentences import sentence_spans
from shiguan.support.source_blocks import SourceBlock
from shiguan.support.terms import terms

# A single Han character says less than a pair of neighbours or a Latin word.
_SINGLE = 0.35
# A capitalised word that does not open the question.
_NAME = re.compile(r"(?<!^)(?<![.?!]\s)\b[A-Z][\w'’.-]*")


@dataclass(frozen=True)
class Candidate:
    """
    One sentence that may answer the question.

    :param number: The source's number.
    :param position: Which sentence of the source it is, from 0.
    :param start: Where it starts in the source's text, in code points.
    :param end: Where it ends.
    :param text: The sentence.
    :param features: What `FEATURES` names, each about 0 to 1.
    :param bonus: What a rule adds to the score.
    """

    number: int
    position: int
    start: int
    end: int
    text: str
    features: tuple[float, ...]
    bonus: float = 0.0

    @property
    def score(self) -> float:
        """How likely the sentence answers; only comparable within and across questions, about -2 to 12."""
        return sum(weight * value for weight, value in zip(WEIGHTS, self.features, strict=True)) + self.bonus

    @property
    def key(self) -> tuple[int, int]:
        """Its place among the sources: number and position."""
        return (self.number, self.position)


# What a sentence is judged by: the share of the question's weight that it has itself, that its neighbours and headings
# add, that the rest of the passage adds; the share of the question's word pairs; the kind of answer asked for first,
# and any other; the passage's rank; the share of words that the question does not have; shortness; opening a passage.
FEATURES = ("own", "near", "passage", "phrase", "shape", "other_shape", "rank", "news", "short", "opening")
# Fitted once by conditional logit (which sentence of five passages overlaps the marked answer) on half of the public
# SQuAD 2, CMRC 2018 and DRCD questions together, so that no language and no single set decides; rounded.
WEIGHTS = (8.0, 3.6, -1.0, 1.0, 1.4, 0.1, 1.9, -2.9, 0.2, 0.5)
# A sentence that opens with the very thing that is to be defined or introduced.
_INTRODUCES = 1.5


def candidates(question: str, sources: Sequence[SourceBlock]) -> list[Candidate]:
    """
    Describe every sentence of the sources with respect to a question.

    The question's words weigh by their rarity among the sentences at hand; words that no sentence has weigh most, so
    that a question about something else is covered badly by every sentence.

    :param question: The question.
    :param sources: The sources, best first.
    :returns: The sentences in the order of the sources.
    """
    subject = question_subject(question)
    asked = list(dict.fromkeys(terms(subject)))
    shapes = question_shapes(question)
    split = [(source, sentence_spans(source.text)) for source in sources]
    words = [[terms(source.text[start:end]) for start, end in spans] for source, spans in split]
    weights = _weights(asked, [set(sentence) for passage in words for sentence in passage])
    pairs = set(pairwise(asked))
    found = []
    for rank, ((source, spans), passage) in enumerate(zip(split, words, strict=True)):
        about = set(terms(f"{source.title} {source.section}"))
        whole = about.union(*passage)
        for position, (start, end) in enumerate(spans):
            own = set(passage[position])
            near = own.union(*passage[max(0, position - 1) : position + 2], about)
            text = source.text[start:end]
            if not own:
                continue
            found.append(
                Candidate(
                    source.number,
                    position,
                    start,
                    end,
                    text,
                    (
                        share := _covered(weights, own),
                        (wider := _covered(weights, near)) - share,
                        _covered(weights, whole) - wider,
                        _phrases(pairs, passage[position]),
                        *_shape_features(text, shapes, question),
                        1 / (1 + rank),
                        len(own - set(asked)) / len(own),
                        1.0 if len(own) < 6 else 0.0,
                        1.0 if position == 0 else 0.0,
                    ),
                    _INTRODUCES if "definition" in shapes[:1] and _opens_with(asked, text) else 0.0,
                )
            )
    return found


def missing(question: str, sources: Sequence[SourceBlock]) -> tuple[float, bool]:
    """
    Tell how much of a question no source mentions at all.

    :param question: The question.
    :param sources: The sources.
    :returns: The share of the question's search terms that no source has, and whether a name is among them.
    """
    said = set[str]().union(*(terms(f"{source.title} {source.section} {source.text}") for source in sources))
    asked = set(terms(question_subject(question)))
    names = [word for name in _NAME.findall(question) for word in terms(name)]
    share = sum(word not in said for word in asked) / len(asked) if asked else 1.0
    return share, any(word not in said for word in names)


def _opens_with(asked: Sequence[str], text: str) -> bool:
    opening = terms(text[: 3 * sum(len(word) for word in asked[:3]) + 8])[: 2 * len(asked)]
    return bool(asked) and sum(word in opening for word in asked) >= 0.6 * len(asked)


def _shape_features(text: str, shapes: Sequence[Shape], question: str) -> tuple[float, float]:
    if not shapes:
        return (0.5, 0.0)
    first = 1.0 if has_shape(text, shapes[0], question) else 0.0
    other = 1.0 if any(has_shape(text, shape, question) for shape in shapes[1:]) else 0.0
    return (first, other)


def _weights(asked: Sequence[str], sentences: Sequence[set[str]]) -> dict[str, float]:
    frequency = Counter(word for sentence in sentences for word in sentence if word in set(asked))
    total = len(sentences)
    return {
        word: math.log((total + 1) / (frequency[word] + 0.5)) * (_SINGLE if _is_single(word) else 1.0) for word in asked
    }


def _is_single(word: str) -> bool:
    return len(word) == 1 and ord(word) > 0x2E7F


def _covered(weights: dict[str, float], words: set[str]) -> float:
    total = sum(weights.values())
    return sum(weight for word, weight in weights.items() if word in words) / total if total else 0.0


def _phrases(pairs: set[tuple[str, str]], words: Sequence[str]) -> float:
    if not pairs:
        return 0.0
    return len(pairs & set(pairwise(words))) / len(pairs)
