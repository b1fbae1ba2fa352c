"""Makes examples of questions: a passage that answers them, and passages that do not."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from random import Random

from bench.judge.changes import ANSWERED, HAN, NOT_ANSWERED, Claim, Example
from bench.judge.retellings import questions_of

from bench.judge import sets
from shiguan.text.sentences import sentence_spans

MOST = {"jaquad": 2600, "qamr": 1500, "nq": 2600}
_OTHERS, _NEAR = 2, 12


def asked(folder_questions: Iterable[sets.Question]) -> Iterator[Example]:
    """
    Make two examples of each passage with questions.

    One is a window with an answer and one without, each with the questions of the passage, answered there or not, and
    with questions of other passages that share words with it.
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
        for one in chance.sample(some, min(2, len(some))):
            for holds in (True, False):
                if not (place := _window(spans, one, chance, holds=holds)):
                    continue
                start, end = place
                shown = passage[start:end]
                claims = []
                for question in chance.sample(some, min(5, len(some))):
                    answer = passage[question.start : question.end]
                    if not question.end:
                        claims.append(Claim(question.text, NOT_ANSWERED, None))
                    elif start <= question.start and question.end <= end:
                        claims.append(Claim(question.text, ANSWERED, None))
                    elif answer not in shown:
                        claims.append(Claim(question.text, NOT_ANSWERED, None))
                claims += near.unanswered(one, shown, chance)
                if one.parallel:
                    claims += _translated(one, near.parallel, chance, answered=holds)
                if claims:
                    yield Example(f"asked_{name[:2] if name.startswith('xq') else name}", shown, tuple(claims[:7]))


def _window(
    spans: Sequence[tuple[int, int]], one: sets.Question, chance: Random, *, holds: bool
) -> tuple[int, int] | None:
    """Choose one to four sentences that hold an answer, or do not."""
    inside = [n for n, (a, b) in enumerate(spans) if b > one.start and a < one.end] if one.end else []
    size = chance.choice((1, 2, 2, 3, 4))
    if holds and inside:
        first = max(0, inside[0] - chance.randrange(size))
        last = max(inside[-1], min(len(spans) - 1, first + size - 1))
        return spans[first][0], spans[last][1]
    starts = [n for n in range(len(spans)) if not any(n <= at < n + size for at in inside)]
    if not starts or (holds and one.end):
        return None
    first = chance.choice(starts)
    return spans[first][0], spans[min(len(spans) - 1, first + size - 1)][1]


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
    one: sets.Question, parallel: dict[str, list[sets.Question]], chance: Random, *, answered: bool
) -> Iterator[Claim]:
    others = [q for q in parallel.get(one.parallel, ()) if q.set != one.set]
    likely = [q for q in others if q.set in ("xq_en", "xq_zh")] or others
    for question in chance.sample(likely, min(1, len(likely))) + chance.sample(others, min(1, len(others))):
        yield Claim(question.text, ANSWERED if answered else NOT_ANSWERED, None)


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
            claims = [Claim(question, ANSWERED, None) for question in questions[:2]]
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


_ACTS = re.compile(
    "(?:派|命|令|任|率|攻|杀|打|请|劝|说|问|告诉|上奏|向|对|被|担任|是|去世|死|投降|反叛|逃|献|奉命|带|领)"
)


def about_persons(rows: Sequence[tuple[str, str, tuple[int, int]]], names: Sequence[str]) -> Iterator[Example]:
    """Ask who does what a modern sentence begins with; the classical passage that it retells answers."""
    for number, (sentence, passage, (start, end)) in enumerate(rows):
        question = who(sentence, names)
        if not question:
            continue
        chance = sets.seeded(sentence)
        spans = sentence_spans(passage)
        inside = [n for n, (a, b) in enumerate(spans) if b > start and a < end]
        if not inside:
            continue
        others = [q for k in (1, 2, 5, 40) if (q := who(rows[(number + k) % len(rows)][0], names)) and q != question]
        claims = [Claim(question, ANSWERED, None), *(Claim(q, NOT_ANSWERED, None) for q in others[:2])]
        yield Example("asked_tang", passage[spans[inside[0]][0] : spans[inside[-1]][1]], tuple(claims))
        far = [n for n in range(len(spans)) if n not in inside]
        if far:
            at = chance.choice(far)
            yield Example("asked_tang", passage[slice(*spans[at])], (Claim(question, NOT_ANSWERED, None),))


def who(sentence: str, names: Sequence[str]) -> str | None:
    """Ask for the person with whom a modern sentence begins."""
    name = next((name for name in names if sentence.startswith(name)), None)
    if not name or not _ACTS.match(sentence, len(name)):
        return None
    rest = re.split("[，。；：]", sentence[len(name) :], maxsplit=1)[0]
    return f"谁{rest}？" if 3 <= len(rest) <= 25 else None
