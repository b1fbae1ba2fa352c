"""Scores the sentences of numbered sources by how likely each answers a question, with words alone."""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from shiguan.answer.answerability import Grounds, log_odds
from shiguan.answer.sentence_match import sentence_matches
from shiguan.llm.source_blocks import SourceBlock
from shiguan.text.han import fold_han, has_han, is_wide
from shiguan.text.question_shapes import Shape, has_shape, question_shapes, question_subject
from shiguan.text.rarity import covered, rarity
from shiguan.text.sentences import sentence_spans
from shiguan.text.terms import terms

# A single Han character says less than a pair of neighbours or a Latin word.
_SINGLE = 0.35
# A capitalised word that does not open the question.
_NAME = re.compile(r"(?<!^)(?<![.?!]\s)\b[A-Z][\w'’.-]*")


@dataclass(frozen=True)
class Candidate:
    """One sentence that may answer the question."""

    number: int
    position: int
    start: int
    end: int
    text: str
    features: tuple[float, ...]
    together: float
    bonus: float = 0.0
    weights: tuple[float, ...] = ()

    @property
    def score(self) -> float:
        """How likely the sentence answers; only comparable within and across questions, about -2 to 12."""
        return (
            sum(weight * value for weight, value in zip(self.weights or WEIGHTS, self.features, strict=True))
            + self.bonus
        )

    @property
    def key(self) -> tuple[int, int]:
        """Its place among the sources: number and position."""
        return (self.number, self.position)


# What a sentence is judged by: the share of the question's weight that it has itself, that its neighbours and headings
# add, that the rest of the passage adds; the share of the question's word pairs; the kind of answer asked for first,
# and any other; the passage's rank; the share of words that the question does not have; shortness; opening a passage;
# its BM25 score against the best one's; the share of the question's rarity in writing at large; the noun asked for
# ("which river", "what kind of rock").
FEATURES = (
    "own", "near", "passage", "phrase", "shape", "other_shape", "rank", "news", "short", "opening", "match", "rarity",
    "noun",
)  # fmt: skip
# Fitted by conditional logit (which sentence of five passages overlaps the marked answer or is the human evidence),
# rounded. For questions in Han characters on half of SQuAD 2, CMRC 2018 and DRCD together; for others on half of SQuAD
# 2 and the English ExpMRC, where the last three tell what the share alone does not.
WEIGHTS = (8.0, 3.6, -1.0, 1.0, 1.4, 0.1, 1.9, -2.9, 0.2, 0.5, 0.0, 0.0, 0.0)
_OTHER_WEIGHTS = (6.6, 3.3, 0.7, 1.5, 0.6, 1.7, 2.3, 3.0, -0.3, -0.3, 2.6, 1.2, 1.4)
_NOUN = re.compile(r"\b(?:what|which|whose|how many|how much)\s+((?:[a-z-]+\s+){0,2}?[a-z-]+)\b", re.IGNORECASE)
# What a sentence gains that introduces the very thing that is asked about, and one that at least opens with it.
_INTRODUCES, _OPENS = 2.0, 1.0
# What a row of a table loses: a year and a name in cells cover a question well and say little.
_ROW, _ROW_COST = re.compile(r"\S \| \S"), 1.0
# A question of so few words is answered only where most of their weight stands close together: of two words, one alone
# says nothing. (Nearly all short questions put to a book about something else fail this, 1.5 % of the answerable do.)
_FEW, _TOGETHER = 3, 0.55
# A note that the converter has put into the running text: read as sentences of its own, and left out of the one around.
_NOTE = re.compile(r"\[(?:Note|脚注)[:：]\s*([^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*)\]")
_GAP = "\u200b"
# A sentence whose subject stands in the one before it: "It is 5,464 kilometres long."
_POINTS_BACK = re.compile(
    r"^[\s\"'“”‘’「『(（]*(?:(?:he|she|it|they|his|her|its|their|this|these|that|those|such|the (?:former|latter))\b"
    r"|[他她它牠祂其此这這该該]|于是|於是|因此|所以|后来|後來|然而|但|同年|是年|是岁|是歲)",
    re.IGNORECASE,
)
# The one thing that a question asks to introduce, and how a sentence does so.
_THING = re.compile(
    r"^(?:who|what) (?:is|was|are|were) (?:(?:the|an?) )?([^?]{2,60}?)\s*\?*$"
    r"|^([^，,的]{1,12}?)(?:是谁|是誰|是何人|是什么人?|是什麼人?|何许人也|何許人也)[？?]*$"
    r"|^(?:什么是|什麼是|何谓|何謂)([^，,的]{1,12}?)[？?]*$",
    re.IGNORECASE,
)
_INTRODUCTION = (
    r"\bNAME(?:\s?\([^)]*\))?(?:,? (?:who|which))?,? (?:is|was|are|were|means|refers to) (?:an?|the|one)\b"
    r"|^(?:the |an? )?NAME, (?:an?|the|who)\b"
    r"|NAME(?:（[^）]*）)?(?:，|者，)?(?:字[^，。]{1,4}，)?(?:[^，。]{1,12}(?:人|也|之子|子)也?[，。；]|(?:是|为|乃|即|指|系)(?!所))"
)


def candidates(question: str, sources: Sequence[SourceBlock]) -> list[Candidate]:
    """
    Describe every sentence of the sources with respect to a question.

    The question's words weigh by their rarity among the sentences at hand; words that no sentence has weigh most, so
    that a question about something else is covered badly by every sentence.
    """
    asked = list(dict.fromkeys(terms(question_subject(question))))
    shapes = question_shapes(question)
    read = [_sentences(source.text) for source in sources]
    words = [[terms(text) for _, _, text in sentences] for sentences in read]
    weights = _weights(asked, [set(sentence) for passage in words for sentence in passage])
    pairs = set(pairwise(asked))
    content = {word for word in asked if not _is_single(word)}
    chosen = WEIGHTS if has_han(question) else _OTHER_WEIGHTS
    matches = iter(sentence_matches(terms(question), [sentence for passage in words for sentence in passage]))
    rare = {word: rarity(word) for word in asked}
    noun = _NOUN.search(question)
    sought = set(terms(noun[1])) if noun else set()
    found = []
    for rank, (source, sentences, passage) in enumerate(zip(sources, read, words, strict=True)):
        about = set(terms(f"{source.title} {source.section}"))
        whole = about.union(*passage)
        for position, (start, end, text) in enumerate(sentences):
            own, match = set(passage[position]), next(matches)
            if not own:
                continue
            near = own.union(*passage[max(0, position - 1) : position + 2], about)
            meant = own.union(passage[position - 1]) if position and points_back(text) else own
            share, wider = covered(weights, meant), covered(weights, near)
            features = (
                share,
                wider - share,
                covered(weights, whole) - wider,
                _phrases(pairs, passage[position]),
                *_shape_features(text, shapes, question),
                1 / (1 + rank),
                len(own - set(asked)) / len(own),
                1.0 if len(own) < 6 else 0.0,
                1.0 if position == 0 else 0.0,
                match,
                covered(rare, own),
                len(sought & own) / len(sought) if sought else 0.0,
            )
            bonus = _introduction(question, asked, text) if "definition" in shapes[:1] else 0.0
            bonus -= _ROW_COST if _ROW.search(text) else 0.0
            together = max(wider, len(content & near) / len(content)) if content else wider
            found.append(Candidate(source.number, position, start, end, text, features, together, bonus, chosen))
    return found


def points_back(text: str) -> bool:
    """Tell whether a sentence says who or what it is about only by pointing to the one before it."""
    return bool(_POINTS_BACK.match(text))


def answerability(question: str, sources: Sequence[SourceBlock], best: Candidate) -> float:
    """Tell how likely the sources answer a question at all."""
    asked = list(dict.fromkeys(terms(question_subject(question))))
    content = [word for word in asked if not _is_single(word)]
    if len(content) <= _FEW and best.together < _TOGETHER:
        return -math.inf
    passages = {source.number: frozenset(_all_terms(source)) for source in sources}
    source = next(source for source in sources if source.number == best.number)
    around = _sentences(source.text)[max(0, best.position - 1) : best.position + 2]
    near = frozenset(terms(" ".join([source.title, source.section, *(text for _, _, text in around)])))
    return log_odds(
        Grounds(
            asked=asked,
            names=[word for name in _NAME.findall(question) for word in terms(name)],
            # By the same weights for every script: those that choose best among sentences tell less here.
            score=replace(best, weights=WEIGHTS).score,
            phrase=best.features[FEATURES.index("phrase")],
            near=near,
            passage=passages[best.number],
            others=[words for number, words in passages.items() if number != best.number],
        )
    )


def _all_terms(source: SourceBlock) -> list[str]:
    return terms(f"{source.title} {source.section} {source.text}")


def _sentences(text: str) -> list[tuple[int, int, str]]:
    """Cut a text into sentences, with the notes in it taken out of theirs and put at the end."""
    notes = [(match.start(1), match.end(1)) for match in _NOTE.finditer(text)]
    if not notes:
        return [(start, end, text[start:end]) for start, end in sentence_spans(text)]
    running = _NOTE.sub(lambda match: _GAP * len(match[0]), text)
    found = [(start, end, running[start:end].replace(_GAP, "")) for start, end in sentence_spans(running)]
    for start, end in notes:
        found.extend((start + a, start + b, text[start + a : start + b]) for a, b in sentence_spans(text[start:end]))
    return found


def _introduction(question: str, asked: Sequence[str], text: str) -> float:
    thing = _THING.search(question.strip())
    if thing:
        name = re.escape(fold_han(next(group for group in thing.groups() if group).strip()))
        if re.search(_INTRODUCTION.replace("NAME", name), fold_han(text), re.IGNORECASE):
            return _INTRODUCES
    return _OPENS if _opens_with(asked, text) else 0.0


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
    return len(word) == 1 and is_wide(word)


def _phrases(pairs: set[tuple[str, str]], words: Sequence[str]) -> float:
    if not pairs:
        return 0.0
    return len(pairs & set(pairwise(words))) / len(pairs)
