"""The scores of the retrieval bars, worked out by hand."""

import json

import pytest
from bench.quality.book_questions import ACROSS, FOLLOW_UPS, OWN, read_book_questions, share_within
from bench.quality.retrieval_bars import (
    BM25,
    FUSED,
    NDCG,
    R5,
    R10,
    VECTORS,
    Bar,
    Row,
    read_questions,
    score,
    table_line,
)
from haystack import Document

from bench.quality import retrieval_bars
from shiguan.evaluation.questions import GoldPassage, Question

GOLD = Question("q", "?", (GoldPassage(source="a"),))


def test_score_counts_a_question_without_results_as_zero():
    other = Question("r", "?", (GoldPassage(source="b"),))
    assert score([GOLD, other], [["a"], []]) == {R5: 0.5, R10: 0.5, NDCG: 0.5}


def _row(recall_at_5, recall_at_10, bm25, vectors, **bars):
    fused = {R5: recall_at_5, R10: recall_at_10, NDCG: 0.8}
    alone = {BM25: {R10: bm25}, VECTORS: {R10: vectors}}
    return Row(Bar("s", "s", bars or {R5: 0.9}), 10, {FUSED: fused, **alone})


def test_row_names_the_missed_bars_and_the_lost_fusion():
    assert _row(0.9, 0.95, 0.95, 0.3).misses == []
    assert _row(0.89, 0.95, 0.955, 0.3).misses == ["recall@5 0.8900 is below 0.9"]
    assert _row(0.2, 0.9, 0.9, 0.3, **{R10: 0.9}).misses == []
    assert _row(0.95, 0.95, 0.2, 0.98).misses == ["recall@10 0.9500 loses to one retriever alone, 0.9800"]
    assert _row(0.9, 0.95, 0.95, 0.3, **{R5: 0.91, NDCG: 0.81}).misses == [
        "recall@5 0.9000 is below 0.91",
        "ndcg@10 0.8000 is below 0.81",
    ]


def test_table_line_shows_the_verdict():
    assert table_line(_row(0.9, 0.95, 0.955, 0.3)).endswith(
        "| 0.900 | 0.950 | 0.800 | 0.955 | 0.300 | recall@5 ≥ 0.9 | pass |"
    )
    assert "MISS: recall@5" in table_line(_row(0.89, 0.95, 0.955, 0.3))


def test_public_sets_have_gold_documents_for_every_question(public_data):
    for bar in retrieval_bars.BARS:
        # Reading refuses a judgement of a document that is not there, and a question without one.
        assert len(read_questions(public_data / bar.folder, bar)) >= 100


@pytest.fixture
def questions(tmp_path):
    rows = [
        {"id": "one", "gold": [{"quote": "sat on the mat"}, {"quote": "lay on the mat"}]},
        {"id": "both", "gold": [{"quote": "a red hat", "side": 1}, {"quote": "a blue hat", "side": 2}]},
        {"id": "across", "gold": [{"quote": "x"}], "cross": True},
        {"id": "follow", "gold": [{"quote": "x"}], "history": [{"role": "user", "content": "Who wore the red hat?"}]},
        {"id": "none", "gold": [], "answerable": False},
    ]
    common = {"book": "b.epub", "question": "And where?", "language": "en", "answerable": True, "cross": False}
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps({**common, **row}) + "\n" for row in rows))
    return {question.id: question for question in read_book_questions(path)}


def _passages(*texts, source="b.epub"):
    return [Document(content=text, meta={"source": source}) for text in texts]


def test_book_questions_have_groups_and_follow_ups_are_searched_with_their_history(questions):
    groups = {name: question.group for name, question in questions.items()}
    assert groups == {"one": OWN, "both": OWN, "across": ACROSS, "follow": FOLLOW_UPS}
    assert questions["one"].query == "And where?"
    assert "hat" in questions["follow"].query


def test_rank_needs_one_quote_of_each_side_whatever_the_white_space(questions):
    assert questions["one"].rank(_passages("a dog", "it lay on\n the  mat.")) == 2
    assert questions["one"].rank(_passages("a dog")) is None
    assert questions["one"].rank(_passages("it sat on the mat", source="other.epub")) is None
    assert questions["both"].rank(_passages("a red hat", "none", "a blue hat")) == 3
    assert questions["both"].rank(_passages("a red hat", "none")) is None


def test_share_within_counts_the_questions_that_the_first_passages_answer():
    assert share_within([1, 5, 6, None], 5) == 0.5
    assert share_within([1, 5, 6, None], 10) == 0.75
    assert share_within([], 5) == 0.0
