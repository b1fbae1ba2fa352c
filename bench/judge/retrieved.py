"""Makes examples of what would be quoted for a question: passages that were found with it, and not chosen for it."""

import re
from collections.abc import Iterable, Iterator, Sequence

from bench.judge.changes import ANSWERED, HAN, NOT_ANSWERED, Claim, Example
from bench.judge.questions import LONGEST, LONGEST_HAN
from bench.quality.answer_bench import READ, Bench

from bench.judge import sets
from shiguan.answer.quotations import quotations
from shiguan.evaluation.provenance import TENANT
from shiguan.text.sentences import sentence_spans

_TOGETHER = 10
"""Passages of a file."""
_ASKED = {
    "nq": 2, "en_squad2": 1, "zh_cmrc2018": 1, "zh_drcd": 1, "written_en": 1, "written_zh": 1, "written_across": 1,
    "read_en": 3, "read_zh": 3, "read_across": 3,
}  # fmt: skip
"""How many questions of a passage of each set, of those that it answers, and of those that it does not."""
_READ_WHOLE, _NOT_ANSWERED = 4, 3
"""Passages found that are read whole, beside what is quoted, and how much without an answer is kept."""


def retrieved(questions: Iterable[sets.Question], bench: Bench) -> Iterator[Example]:
    """
    Ask over all passages of the questions, and make examples of the quotations and of the passages quoted.

    One that has the sentence with the answer answers. One that has the answer's words elsewhere is left out, and so is
    what another passage says of a question that its own does not answer.
    """
    of_passage: dict[tuple[str, str], list[sets.Question]] = {}
    for one in questions:
        if one.set in _ASKED:
            of_passage.setdefault((one.set, one.passage), []).append(one)
    folder = bench.keep / "passages"
    folder.mkdir(parents=True, exist_ok=True)
    passages = list(of_passage)
    files = []
    for at in range(0, len(passages), _TOGETHER):
        text = "\n\n".join([f"# {at // _TOGETHER + 1}", *(passage for _, passage in passages[at : at + _TOGETHER])])
        files.append(folder / f"{at // _TOGETHER + 1}.md")
        files[-1].write_text(text + "\n", encoding="utf-8")
    with bench.mode(files) as runner:
        for one in _drawn(of_passage):
            found = runner.trace(one.text[:2000], tenant_id=TENANT, outputs=[READ])["outputs"]
            documents = found[READ] or []
            shown = [(q.document.content or "")[slice(*q.window)] for q in quotations(documents, one.text)]
            for document in documents[:_READ_WHOLE]:
                shown += _stretches(document.content or "")
            judged = [(text, claim) for text in shown if (claim := _claim(one, text))]
            others = [pair for pair in judged if pair[1].label == NOT_ANSWERED]
            left_out = sets.seeded(one.text).sample(others, max(0, len(others) - _NOT_ANSWERED))
            for text, claim in judged:
                if (text, claim) not in left_out:
                    yield Example(f"quoted_{one.set}", text, (claim,))


def _stretches(text: str) -> Iterator[str]:
    """Divide a passage into stretches of whole sentences, as long as what is read at once."""
    longest = LONGEST_HAN if HAN.search(text) else LONGEST
    start = end = 0
    for a, b in sentence_spans(text):
        if b - start > longest and end > start:
            yield text[start:end]
            start = a
        end = b
    yield text[start:end]


def _drawn(of_passage: dict[tuple[str, str], list[sets.Question]]) -> Iterator[sets.Question]:
    for (name, passage), some in of_passage.items():
        chance = sets.seeded(passage)
        for has_answer in (True, False):
            usable = [one for one in some if bool(one.end) == has_answer]
            yield from chance.sample(usable, min(_ASKED[name], len(usable)))


def _claim(one: sets.Question, shown: str) -> Claim | None:
    if not one.end:
        return Claim(one.text, NOT_ANSWERED, None) if any(_holds(shown, s) for s in _sentences(one.passage)) else None
    answer = one.passage[one.start : one.end]
    spans = [(a, b) for a, b in sentence_spans(one.passage) if a < one.end and b > one.start]
    start, end = spans[0][0], spans[-1][1]
    if (place := _place(shown, one.passage[start:end].strip())) is not None:
        at = _place(shown[slice(*place)], answer)
        inside = place if at is None else (place[0] + at[0], place[0] + at[1])
        return Claim(one.text, ANSWERED, None, answer=inside)
    return None if _holds(shown, answer) else Claim(one.text, NOT_ANSWERED, None)


def _sentences(text: str) -> Sequence[str]:
    return [text[a:b].strip() for a, b in sentence_spans(text)]


def _holds(text: str, part: str) -> bool:
    return _place(text, part) is not None


def _place(text: str, part: str) -> tuple[int, int] | None:
    """Find a part of a text, whatever its white space."""
    match = re.search(r"\s*".join(map(re.escape, part.split())), text, re.IGNORECASE) if part.strip() else None
    return match.span() if match else None
