"""The scores of the retrieval bars, worked out by hand."""

import gzip
import json
import math

import pytest
from evaluation.retrieval_bars import (
    Bar,
    Hit,
    Question,
    Row,
    Scores,
    judge,
    ndcg,
    read_questions,
    recall,
    score,
    table_line,
)

from evaluation import retrieval_bars

GOLD = Question("q", "?", {"a": 1}, {"a": [(10, 20), (50, 60)]})
GRADED = Question("q", "?", {"a": 2, "b": 2, "c": 1}, {})


@pytest.mark.parametrize(
    ("hit", "right"),
    [
        (Hit("a", 0, 10), False),  # ends where the span starts
        (Hit("a", 0, 11), True),
        (Hit("a", 19, 30), True),
        (Hit("a", 20, 50), False),  # between the two spans
        (Hit("a", 12, 13), True),
        (Hit("b", 0, 100), False),
        (Hit(None, 0, 100), False),
    ],
)
def test_a_passage_is_right_if_it_overlaps_a_gold_span(hit, right):
    assert GOLD.document_of(hit) == ("a" if right else None)


def test_recall_counts_gold_documents_among_the_first_k():
    hits = [Hit("c", 0, 1), Hit("a", 0, 1), Hit("a", 1, 2), Hit("x", 0, 1), Hit("y", 0, 1), Hit("b", 0, 1)]
    assert GRADED.gold == {"a", "b"}
    assert [recall(GRADED, hits, k) for k in (1, 5, 10)] == [0.0, 0.5, 1.0]


def test_ndcg_counts_each_document_once_by_its_grade():
    hits = [Hit("c", 0, 1), Hit("a", 0, 1), Hit("a", 1, 2), Hit("b", 0, 1)]
    gained = 1 / 1 + 2 / math.log2(3) + 0 + 2 / math.log2(5)
    ideal = 2 / 1 + 2 / math.log2(3) + 1 / 2
    assert ndcg(GRADED, hits, 10) == pytest.approx(gained / ideal)
    assert ndcg(GRADED, hits, 1) == pytest.approx(1 / 2)
    assert ndcg(GRADED, [Hit("a", 0, 1), Hit("b", 0, 1), Hit("c", 0, 1)], 10) == pytest.approx(1)


def test_score_counts_a_question_without_results_as_zero():
    other = Question("r", "?", {"b": 1}, {})
    scores = score([GOLD, other], {"q": [Hit("a", 10, 20)]})
    assert scores == Scores(questions=2, recall_at_5=0.5, recall_at_10=0.5, ndcg_at_10=0.5)
    assert score([], {}) == Scores()


def _row(recall_at_5, recall_at_10, bm25, vectors, at=5):
    bar = Bar("s", "s", recall_at=at, at_least=0.9)
    return Row(bar, Scores(10, recall_at_5, recall_at_10, 0.8), Scores(10, 0, bm25), Scores(10, 0, vectors))


def test_judge_names_the_bar_and_the_lost_fusion():
    assert judge(_row(0.9, 0.95, 0.95, 0.3)) == []
    assert judge(_row(0.89, 0.95, 0.955, 0.3)) == ["recall@5 0.8900 is below 0.9"]
    assert judge(_row(0.2, 0.9, 0.9, 0.3, at=10)) == []
    assert judge(_row(0.95, 0.95, 0.2, 0.98)) == ["recall@10 0.9500 loses to one retriever alone, 0.9800"]


def test_table_line_shows_the_verdict():
    row = _row(0.89, 0.95, 0.955, 0.3)
    assert table_line(row).endswith("| 0.890 | 0.950 | 0.800 | 0.955 | 0.300 | r@5 ≥ 0.9 | pass |")
    row.misses = judge(row)
    assert "MISS: recall@5" in table_line(row)


def _write(path, rows):
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def test_read_questions_joins_judgements_and_leaves_unjudged_ones_out(tmp_path):
    _write(
        tmp_path / "qrels.jsonl.gz",
        [{"query_id": "q", "doc_id": "a", "score": 2}, {"query_id": "q", "doc_id": "b", "score": 0}],
    )
    gold = [{"doc_id": "a", "start": 3, "end": 5}]
    _write(tmp_path / "queries.jsonl.gz", [{"id": "q", "text": "谁？", "gold": gold}, {"id": "none", "text": "?"}])
    assert read_questions(tmp_path, "queries.jsonl.gz") == [Question("q", "谁？", {"a": 2}, {"a": [(3, 5)]})]


def test_main_without_data_says_what_is_missing(tmp_path, capsys):
    assert retrieval_bars.main(["--data", str(tmp_path), "--sets", "zh_drcd"]) == 2
    assert capsys.readouterr().err.count("zh_drcd is missing") == 1


def test_public_sets_have_gold_documents_for_every_question(public_data):
    for bar in retrieval_bars.BARS:
        questions = read_questions(public_data / bar.folder, bar.queries)
        records = {row["id"] for row in retrieval_bars.read_jsonl(public_data / bar.folder / "corpus.jsonl.gz")}
        assert len(questions) >= 100
        assert all(question.gold <= records for question in questions)
