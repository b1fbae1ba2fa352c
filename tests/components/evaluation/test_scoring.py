"""Haystack's evaluators as they are asked here, against values worked out by hand."""

import math

import pytest
from haystack import Document
from hypothesis import given
from hypothesis import strategies as st

from shiguan.evaluation.questions import GoldPassage, Question
from shiguan.evaluation.scoring import context_metrics, judged, ndcg, ranking_metrics, recall, reciprocal_rank

GOLD = Question("q", "?", (GoldPassage(source="a", spans=((10, 20), (50, 60))),))


def graded(**grades):
    return Question("q", "?", tuple(GoldPassage(source=name, grade=grade) for name, grade in grades.items()))


GRADED = graded(a=2.0, b=2.0, c=1.0)


def passage(record_id, *pieces):
    kept = list(pieces) or [(0, 1)]
    return Document(meta={"record_id": record_id, "start": 0, "end": kept[-1][1], "kept": kept})


def passages(names):
    return judged(GRADED, [passage(name) for name in names])


def part(start, end, **kept):
    return Document(meta={"record_id": "a", "start": start, "end": end, **kept})


@pytest.mark.parametrize(
    ("hit", "right"),
    [
        (passage("a", (0, 10)), False),  # ends where the place starts
        (passage("a", (0, 11)), True), (passage("a", (19, 30)), True),
        (passage("a", (20, 50)), False),  # between the two places
        (passage("a", (0, 5), (52, 55)), True),  # a later piece of a passage with gaps
        (passage("b", (0, 100)), False), (passage(None, (0, 100)), False), (part(0, 10), False), (part(15, 17), True),
        (part(5, 30, cut=(0, 5)), False),  # code points of the passage, not of the record
        (part(5, 30, cut=(0, 6)), True), (part(5, 60, kept=[(0, 2), (15, 40)]), False),
        (part(5, 60, kept=[(0, 2), (15, 46)]), True),
    ],
)  # fmt: skip
def test_a_passage_is_right_if_what_was_kept_of_it_overlaps_a_place_of_the_answer(hit, right):
    assert judged(GOLD, [hit]) == (["a"] if right else [None])


def test_ndcg_takes_grades_as_gains_and_counts_a_document_once():
    gained = 1 / 1 + 2 / math.log2(3) + 0 + 2 / math.log2(5)
    ideal = 2 / 1 + 2 / math.log2(3) + 1 / 2
    assert ndcg(GRADED, passages("caab"), 10) == pytest.approx(gained / ideal)
    assert ndcg(GRADED, passages("abc"), 10) == pytest.approx(1)
    # The ideal order is as long as what is looked at.
    many = graded(**{f"d{n}": 1.0 for n in range(12)})
    assert ndcg(many, [f"d{n}" for n in range(10)], 10) == pytest.approx(1)


def test_recall_and_the_reciprocal_rank_know_the_best_documents_only():
    assert GRADED.gold_documents == {"a", "b"}
    assert [recall(GRADED, passages("caaxyb"), k) for k in (1, 5, 6)] == [0.0, 0.5, 1.0]
    assert reciprocal_rank(GRADED, passages("cxba"), 10) == pytest.approx(1 / 3)
    assert reciprocal_rank(GRADED, passages("cxyzb"), 4) == 0


def test_all_metrics_of_a_question_stand_together():
    gain = (2 / math.log2(3)) / (2 + 2 / math.log2(3) + 0.5)
    assert ranking_metrics(GRADED, passages("xa")) == pytest.approx({
        "recall@1": 0, "recall@5": 0.5, "recall@10": 0.5, "recall@20": 0.5, "ndcg@10": gain, "mrr@10": 0.5, "all_gold@10": 0
    })  # fmt: skip


def test_nothing_found_is_zero_and_nothing_gold_is_no_score():
    assert set(ranking_metrics(GRADED, []).values()) == {0.0}
    with pytest.raises(ValueError, match="without a gold document"):
        ndcg(Question("q", "?"), [None], 10)


def test_a_context_is_scored_by_places_and_tokens():
    parts = [passage("a", (0, 5), (15, 30)), passage("b", (0, 9)), passage("a", (60, 90)), passage("x", (0, 9))]
    read = judged(GOLD, parts)
    assert context_metrics(GOLD, read, 300) == {"context_recall": 1, "context_precision": 0.25, "context_tokens": 300}
    assert context_metrics(GOLD, [], 0) == {"context_recall": 0, "context_precision": 0, "context_tokens": 0}


@given(st.lists(st.sampled_from("abcxyz"), max_size=25))
def test_no_ranking_scores_outside_of_zero_to_one_and_a_deeper_look_finds_no_less(names):
    values = ranking_metrics(GRADED, passages(names))
    assert all(0 <= value <= 1 + 1e-9 for value in values.values())
    depths = [values[f"recall@{k}"] for k in (1, 5, 10, 20)]
    assert depths == sorted(depths)
