"""Makes examples of what would be quoted for a question: passages that were found with it, and not chosen for it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from bench.judge import sets
from bench.judge.changes import ANSWERED, HAN, NOT_ANSWERED, Claim, Example
from bench.judge.questions import LONGEST, LONGEST_HAN
from bench.quality.answer_bench import READ, Bench
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
"""Passages found that are read whole, beside what is quoted, and how much without an answer is kept beside answers."""


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
    passages = [passage for _, passage in of_passage]
    together = {f"{at}": passages[at : at + _TOGETHER] for at in range(0, len(passages), _TOGETHER)}
    with bench.mode(chapter_files(bench.keep / "passages", together)) as runner:
        for one in _drawn(of_passage):
            found = runner.trace(one.text[:2000], tenant_id=TENANT, outputs=[READ])["outputs"]
            documents = found[READ] or []
            shown = [(q.document.content or "")[slice(*q.window)] for q in quotations(documents, one.text)]
            for document in documents[:_READ_WHOLE]:
                shown += _stretches(document.content or "")
            judged = [(text, claim) for text in dict.fromkeys(shown) if (claim := _claim(one, text))]
            answering = [pair for pair in judged if pair[1].label == ANSWERED]
            others = [pair for pair in judged if pair[1].label == NOT_ANSWERED]
            most = min(len(others), _NOT_ANSWERED if answering else 1)
            for text, claim in [*answering, *sets.seeded(one.text).sample(others, most)]:
                yield Example(f"quoted_{one.set}", text, (claim,))


def chapter_files(folder: Path, chapters: Mapping[str, Iterable[str]]) -> list[Path]:
    """Write the passages of each chapter as a Markdown file with its name."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, passages in chapters.items():
        text = "\n\n".join([f"# {name}", *dict.fromkeys(passages)])
        (folder / f"{name}.md").write_text(text + "\n", encoding="utf-8")
    return [folder / f"{name}.md" for name in chapters]


def sentences_around(passage: str, start: int, end: int) -> str:
    """Return the sentences of a passage that an answer stands in."""
    spans = [(a, b) for a, b in sentence_spans(passage) if a < end and b > start]
    return passage[spans[0][0] : spans[-1][1]].strip()


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
    if (place := _place(shown, sentences_around(one.passage, one.start, one.end))) is not None:
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
