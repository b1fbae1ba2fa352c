"""Sums up for a report where the questions of a run lost their passages."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from shiguan.evaluation.attribution import LABELS, Attribution, attribute, first_loss
from shiguan.evaluation.expected_passage import ExpectedPassage, ExpectedPassages
from shiguan.evaluation.golden_set import GoldenQuestion, GoldPassage
from shiguan.evaluation.question import Question
from shiguan.evaluation.stage_trace import StageTrace

HEADING = "Where it was lost"


def expected_of(golden: GoldenQuestion, library: ExpectedPassages) -> list[ExpectedPassage]:
    """Look up what a question of a golden set needs."""
    return [library.of_gold(gold) for gold in golden.gold]


def expected_of_question(question: Question, library: ExpectedPassages) -> list[ExpectedPassage]:
    """
    Look up what a question of a retrieval set needs: its gold documents, at the answer's places where they are marked.
    """
    found = []
    for document in sorted(question.gold):
        places: list[tuple[int | None, int | None]] = [*question.spans.get(document, [])] or [(None, None)]
        # Several places in one document are alternatives, so that a passage with any of them will do.
        passages = [library.of_gold(GoldPassage(source=document, start=start, end=end)) for start, end in places]
        parents = {parent.id: parent for passage in passages for parent in passage.parents}
        children = frozenset[str]().union(*(passage.children for passage in passages))
        found.append(ExpectedPassage("", tuple(parents.values()), children))
    return found


def loss_of(trace: StageTrace, expected: Sequence[ExpectedPassage]) -> Attribution | None:
    """Say where a question lost the first of its passages."""
    return first_loss([attribute(trace, passage) for passage in expected])


def lost_section(stages: Iterable[str]) -> dict[str, Any]:
    """Sum up the losses of a run."""
    counts = Counter(stages)
    total = counts.total()
    if not total:
        return {}
    rows = [
        [label, f"{counts[stage]}", f"{counts[stage] / total:.2f}"] for stage, label in LABELS.items() if counts[stage]
    ]
    told = ", ".join(f"{counts[stage]} {label}" for stage, label in LABELS.items() if counts[stage])
    return {
        HEADING: {
            "text": f"Of {total} question{'' if total == 1 else 's'} that went wrong: {told}.",
            "columns": ["where", ">questions", ">share"],
            "rows": rows,
        }
    }
