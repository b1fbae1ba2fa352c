"""The scores of the retrieval bars, worked out by hand."""

import gzip
import json

from evaluation.retrieval_bars import (
    Bar,
    Row,
    Scores,
    judge,
    read_questions,
    score,
    table_line,
)

from evaluation import retrieval_bars
from shiguan.evaluation.questions import Question
from shiguan.evaluation.retrieval_metrics import Passage

GOLD = Question("q", "?", {"a": 1}, {"a": [(10, 20), (50, 60)]})


def test_score_counts_a_question_without_results_as_zero():
    other = Question("r", "?", {"b": 1}, {})
    scores = score([GOLD, other], {"q": [Passage("a", [(10, 20)])]})
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


def test_read_questions_joins_the_three_files_of_a_set(tmp_path):
    _write(tmp_path / "corpus.jsonl.gz", [{"id": "a", "text": "唐代宗李豫"}, {"id": "b", "text": "?"}])
    _write(
        tmp_path / "qrels.jsonl.gz",
        [{"query_id": "q", "doc_id": "a", "score": 2}, {"query_id": "q", "doc_id": "b", "score": 0}],
    )
    gold = [{"doc_id": "a", "start": 3, "end": 5}]
    _write(tmp_path / "queries.jsonl.gz", [{"id": "q", "text": "谁？", "gold": gold}])
    assert read_questions(tmp_path, "queries.jsonl.gz") == [Question("q", "谁？", {"a": 2}, {"a": [(3, 5)]})]


def test_main_without_data_says_what_is_missing(tmp_path, capsys):
    assert retrieval_bars.main(["--data", str(tmp_path), "--sets", "zh_drcd"]) == 2
    assert capsys.readouterr().err.count("zh_drcd is missing") == 1


def test_public_sets_have_gold_documents_for_every_question(public_data):
    for bar in retrieval_bars.BARS:
        # Reading refuses a judgement of a document that is not there, and a question without one.
        assert len(read_questions(public_data / bar.folder, bar.queries)) >= 100
