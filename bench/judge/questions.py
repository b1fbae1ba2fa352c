"""Makes examples of questions: a passage that answers them, and passages that do not."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from random import Random

from bench.judge import sets
from bench.judge.changes import (
    ANSWERED,
    HAN,
    NOT_ANSWERED,
    Claim,
    Example,
    falsehoods,
    frequent_han_names,
    latin_names,
    names_in,
    rewritings,
)
from bench.judge.retellings import questions_of
from shiguan.text.names import SURNAMES
from shiguan.text.sentences import sentence_spans

MOST = {"jaquad": 16_000}
_OTHERS, _NEAR, _WINDOWS = 2, 12, 4
_MOST_ASKED = 8
LONGEST, LONGEST_HAN = 1_200, 420
"""Characters of the longest windows, some 290 tokens: what is quoted of a passage has 125 to 300."""
_FEW = 0.25
"""How often a window is short."""


def asked(folder_questions: Iterable[sets.Question]) -> Iterator[Example]:
    """
    Make examples of each passage with questions.

    One is a window with an answer and one without, each with the questions of the passage, answered there or not, with
    questions of other passages that share words with it, and with a question that one change keeps from being answered.
    """
    of_passage: dict[tuple[str, str], list[sets.Question]] = defaultdict(list)
    made: Counter[str] = Counter()
    for one in folder_questions:
        if made[one.set] < MOST.get(one.set, 10**6):
            made[one.set] += 1
            of_passage[one.set, one.passage].append(one)
    near = _Near({name: [q for (n, _), qs in of_passage.items() if n == name for q in qs] for name in made})
    for (name, passage), some in of_passage.items():
        chance = sets.seeded(passage)
        spans = sentence_spans(passage)
        names = sorted(frequent_han_names(passage * 2, SURNAMES)) if HAN.search(passage) else latin_names(passage)
        group = f"asked_{name[:2] if name.startswith('xq') else name}"
        for one in chance.sample(some, min(1 if name == "jaquad" else _WINDOWS, len(some))):
            for holds in (True, False):
                if not (place := _window(spans, one, chance, holds=holds)):
                    continue
                start, end = place
                shown = passage[start:end]
                others = [q for q in some if q != one]
                claims = []
                for question in [one, *chance.sample(others, min(3, len(others)))]:
                    answer = passage[question.start : question.end]
                    if question.end and start <= question.start and question.end <= end:
                        inside = (question.start - start, question.end - start)
                        claims.append(Claim(question.text, ANSWERED, None, answer=inside))
                    elif not question.end or answer not in shown:
                        claims.append(Claim(question.text, NOT_ANSWERED, None))
                if one.parallel:
                    claims += _translated(one, near.parallel, chance, start if holds else None)
                if holds and one.end and not name.startswith(("xq", "jaquad")):
                    for example in _changed(claims[0], shown, names, group, chance):
                        if example.passage == shown:
                            claims += example.claims
                        else:
                            yield example
                claims += near.unanswered(one, shown, chance)
                yield Example(group, shown, tuple(claims[:_MOST_ASKED]))


def _changed(question: Claim, shown: str, names: Sequence[str], group: str, chance: Random) -> Iterator[Example]:
    """
    Ask with one change for what the passage does not say.

    Sometimes the passage is changed too, and answers it: what the question alone looks like must tell nothing.
    """
    for other in falsehoods(question.text, shown, names_in(question.text, names), names, chance)[:1]:
        unanswered = Claim(other.text, NOT_ANSWERED, None)
        yield Example(group, shown, (unanswered,))
        (a, b), *more = other.was or ((0, 0),)
        (c, d), *_ = other.wrong or ((0, 0),)
        word, by = question.text[a:b], other.text[c:d]
        start, end = question.answer
        if more or not word or not by or word not in shown or word in shown[start:end] or chance.random() < 0.4:
            continue
        before, answer = shown[:start].replace(word, by), shown[start:end]
        text = before + answer + shown[end:].replace(word, by)
        place = (len(before), len(before) + len(answer))
        yield Example(
            group,
            text,
            (Claim(other.text, ANSWERED, None, answer=place), replace(question, label=NOT_ANSWERED, answer=(0, 0))),
        )


def _window(
    spans: Sequence[tuple[int, int]], one: sets.Question, chance: Random, *, holds: bool
) -> tuple[int, int] | None:
    """Choose sentences that hold an answer, or do not: some few, and as many as a quotation of the product has."""
    inside = [n for n, (a, b) in enumerate(spans) if b > one.start and a < one.end] if one.end else []
    if holds and inside:
        first, last = inside[0], inside[-1]
        least, most = 0, len(spans) - 1
    else:
        free = [n for n in range(len(spans)) if n not in inside]
        if not free or (holds and one.end):
            return None
        first = last = chance.choice(free)
        least = max((n + 1 for n in inside if n < first), default=0)
        most = min((n - 1 for n in inside if n > first), default=len(spans) - 1)
    longest = LONGEST_HAN if HAN.search(one.passage) else LONGEST
    length = longest * (chance.uniform(0, 0.25) if chance.random() < _FEW else chance.uniform(0.3, 1))
    while first > least or last < most:
        before = first > least and (last == most or chance.random() < 0.5)
        start, end = (first - 1, last) if before else (first, last + 1)
        if spans[end][1] - spans[start][0] > length:
            break
        first, last = start, end
    return spans[first][0], spans[last][1]


class _Near:
    """Finds questions that share words with a passage that does not answer them."""

    def __init__(self, questions: dict[str, list[sets.Question]]) -> None:
        self.questions = questions
        self.parallel: dict[str, list[sets.Question]] = defaultdict(list)
        self._of_word: dict[tuple[str, str], list[int]] = defaultdict(list)
        for name, some in questions.items():
            for number, one in enumerate(some):
                if one.parallel:
                    self.parallel[one.parallel].append(one)
                for word in _words(one.text):
                    self._of_word[name, word].append(number)

    def unanswered(self, one: sets.Question, shown: str, chance: Random) -> list[Claim]:
        """Choose some of the nearest questions of other passages."""
        counts: Counter[int] = Counter()
        for word in _words(shown):
            found = self._of_word.get((one.set, word), ())
            for number in found[:400]:
                counts[number] += 1 / (5 + len(found))
        some = self.questions[one.set]
        nearest = [some[number] for number, _ in counts.most_common(_NEAR + 20)]
        usable = [
            q for q in nearest if q.passage != one.passage and not (q.end and q.passage[q.start : q.end] in shown)
        ][:_NEAR]
        return [Claim(q.text, NOT_ANSWERED, None) for q in chance.sample(usable, min(_OTHERS, len(usable)))]


def _words(text: str) -> set[str]:
    if HAN.search(text):
        return {text[at : at + 2] for at in range(len(text) - 1)}
    return {word[:6] for word in re.findall(r"\w{4,}", text.lower())}


def _translated(
    one: sets.Question, parallel: dict[str, list[sets.Question]], chance: Random, start: int | None
) -> Iterator[Claim]:
    others = [q for q in parallel.get(one.parallel, ()) if q.set != one.set]
    likely = [q for q in others if q.set in ("xq_en", "xq_zh")] or others
    for question in chance.sample(likely, min(1, len(likely))) + chance.sample(others, min(1, len(others))):
        if start is None:
            yield Claim(question.text, NOT_ANSWERED, None)
        else:
            yield Claim(question.text, ANSWERED, None, answer=(one.start - start, one.end - start))


def repeated(questions: Iterable[sets.Question], most: int) -> Iterator[Example]:
    """Make examples of passages that only ask the question again, with another one: they do not answer it."""
    asked = [one.text for one in questions if one.end]
    chance = sets.seeded("repeated")
    chance.shuffle(asked)
    for number in range(0, min(3 * most, len(asked) - 2), 3):
        one, other, third = asked[number : number + 3]
        passage = chance.choice((one, f"{one} {one}", f"{one} {other}", f"{other} {one}"))
        yield Example("asked_repeated", passage, tuple(Claim(text, NOT_ANSWERED, None) for text in (one, third)))


def of_clauses(text: sets.Text, names: Sequence[str], chance: Random, most: int) -> Iterator[Example]:
    """Make examples of questions about short clauses of a text, beside the clause's passage and one without it."""
    made = 0
    for paragraph in chance.sample(text.paragraphs, len(text.paragraphs)):
        spans = sentence_spans(paragraph)
        for at, (start, end) in enumerate(spans):
            if end - start > 160:
                continue
            found = list(questions_of(paragraph[start:end], paragraph, names, chance))
            if not found:
                continue
            (questions, unanswered), first = found[0], max(0, at - chance.randrange(3))
            place = (start - spans[first][0], end - spans[first][0])
            claims = [Claim(question, ANSWERED, None, answer=place) for question in questions[:2]]
            claims += [Claim(question, NOT_ANSWERED, None) for question in unanswered[:2]]
            name = "asked_told_zh" if HAN.search(paragraph) else "asked_told_en"
            yield Example(name, paragraph[spans[first][0] : end], tuple(claims))
            if at + 2 < len(spans):
                others = paragraph[spans[at + 1][0] : spans[min(len(spans) - 1, at + chance.randint(1, 3))][1]]
                yield Example(name, others, tuple(Claim(q, NOT_ANSWERED, None) for q in questions[:2]))
            made += 1
            break
        if made >= most:
            return


def with_gaps(text: sets.Text, names: Sequence[str], chance: Random, most: int) -> Iterator[Example]:
    """Ask for a name or a number of a sentence of a book, beside its neighbours and beside what comes after."""
    flat = [(p, spans, at) for p in text.paragraphs for spans in [sentence_spans(p)] for at in range(len(spans))]
    for paragraph, spans, at in chance.sample(flat, min(most, len(flat))):
        sentence = paragraph[slice(*spans[at])]
        if not (found := gap(sentence, names_in(sentence, names), chance)):
            continue
        question, answer = found
        group = "asked_gap_zh" if HAN.search(sentence) else "asked_gap_en"
        size = chance.choice((2, 3, 4))
        first = max(0, at - chance.randrange(size))
        start, end = spans[first][0], spans[min(len(spans) - 1, first + size - 1)][1]
        place = paragraph.index(answer, spans[at][0]) - start
        said = chance.choice([question, *rewritings(question, chance)])
        claim = Claim(said, ANSWERED, None, answer=(place, place + len(answer)))
        for example in _changed(claim, paragraph[start:end], names, group, chance):
            yield replace(example, claims=(claim, *example.claims)) if len(example.claims) == 1 else example
        if (after := at + chance.randint(1, 3)) < len(spans):
            rest = paragraph[spans[after][0] : spans[min(len(spans) - 1, after + size - 1)][1]]
            if answer not in rest:
                yield Example(group, rest, (Claim(said, NOT_ANSWERED, None),))


_NUMBER = re.compile(
    r"\b\d[\d,]*\b|\b(?:two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|thirty|forty|fifty)\b|"
    "[一二三四五六七八九十百千万]+(?=[人年月日户里骑戶裡騎])"
)
_CLAUSES = re.compile("[^，。；：！？“”「」]+")


def gap(sentence: str, names: Sequence[str], chance: Random) -> tuple[str, str] | None:
    """Put a word that asks in the place of a name or a number; give the question and what it asks for."""
    is_han = bool(HAN.search(sentence))
    found = [(sentence.index(name), name) for name in names]
    found += [(match.start(), match[0]) for match in _NUMBER.finditer(sentence)]
    if not found:
        return None
    at, answer = chance.choice(found)
    number = _NUMBER.fullmatch(answer) is not None or (is_han and not answer.strip("一二三四五六七八九十百千万"))
    if is_han:
        parts = [match.span() for match in _CLAUSES.finditer(sentence)]
        here = next((n for n, (a, b) in enumerate(parts) if a <= at < b), None)
        if here is None:
            return None
        last = min(len(parts) - 1, here + chance.randrange(2))
        word = "多少" if number else "谁"
        text = sentence[parts[here][0] : at] + word + sentence[at + len(answer) : parts[last][1]] + "？"
        return (text, answer) if 8 <= len(text) <= 50 else None
    before = sentence[:at].split()[-1:]
    place = before and before[0].lower() in ("in", "at", "from", "to", "near")
    word = "how many" if number else "what place" if place else "who"
    text = sentence[:at] + word + sentence[at + len(answer) :].rstrip(' .;,!?”"') + "?"
    return (text[0].upper() + text[1:], answer) if 5 <= len(text.split()) <= 30 else None


def of_retellings(rows: Sequence[tuple[str, str, tuple[int, int]]], names: Sequence[str]) -> Iterator[Example]:
    """Ask for a name or a number of modern sentences; the classical passages that they retell answer."""
    for number, (sentence, passage, (start, end)) in enumerate(rows):
        chance = sets.seeded(sentence)
        found = gap(sentence, names_in(sentence, names), chance)
        spans = sentence_spans(passage)
        inside = [n for n, (a, b) in enumerate(spans) if b > start and a < end]
        if not found or not inside:
            continue
        question, answer = found
        first, last = max(0, inside[0] - chance.randrange(2)), min(len(spans) - 1, inside[-1] + chance.randrange(2))
        shown = passage[spans[first][0] : spans[last][1]]
        place = shown.find(answer)
        whole = (spans[inside[0]][0] - spans[first][0], spans[inside[-1]][1] - spans[first][0])
        claim = Claim(question, ANSWERED, None, answer=(place, place + len(answer)) if place >= 0 else whole)
        near = [rows[(number + ahead) % len(rows)][0] for ahead in (1, 2, 5)]
        others = [gap(other, names_in(other, names), chance) for other in near]
        claims = [claim, *(Claim(other[0], NOT_ANSWERED, None) for other in others if other and other[1] != answer)]
        changed = _changed(claim, shown, names, "asked_tang", chance)
        claims += [example.claims[0] for example in changed if example.passage == shown]
        yield Example("asked_tang", shown, tuple(claims))
        far = [n for n in range(len(spans)) if n not in inside]
        if far:
            at = chance.choice(far)
            rest = passage[spans[at][0] : spans[min(len(spans) - 1, at + 1)][1]]
            if answer not in rest:
                yield Example("asked_tang", passage[slice(*spans[at])], (Claim(question, NOT_ANSWERED, None),))
