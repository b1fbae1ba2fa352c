"""Each question is asked once, and its one record holds all that is scored."""

import pytest

from shiguan.engine.loading import pipeline_path
from shiguan.engine.runner import Runner
from shiguan.engine.why import TracedMode
from shiguan.evaluation.json_lines import read_json_lines, write_json_lines
from shiguan.evaluation.measurement import Plan, measure
from shiguan.evaluation.provenance import TENANT, ingest_corpus
from shiguan.evaluation.questions import read_golden_set

TEXTS = {f"d{number}": f"In {700 + number} the garrison of town {number} held out against the rebels." for number in range(30)}  # fmt: skip
ROWS = [
    {"id": "q1", "question": "When did town 7 hold out?", "answers": ["707"], "gold": [{"quote": "In 707 the garrison", "source": "d7"}]},
    {"id": "q2", "question": "When did town 9 hold out?", "answers": ["709"], "gold": [{"quote": "In 709 the garrison"}]},
    {"id": "q3", "question": "Who composed the opera of Paris?", "answerable": False},
]  # fmt: skip


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("measurement")
    write_json_lines(folder / "corpus.jsonl", [{"id": name, "title": "", "text": text} for name, text in TEXTS.items()])
    write_json_lines(folder / "golden.jsonl", ROWS)
    ingest_corpus([folder / "corpus.jsonl"], deployment="embedded", data_dir=folder / "library")
    return folder


def plan(library, output):
    questions = read_golden_set(library / "golden.jsonl")
    return Plan("golden", questions, mode="precise", tenant_id=TENANT, output=output, data_dir=library / "library")


def test_every_question_is_asked_once_and_scored_for_ranking_and_answer(library, tmp_path, monkeypatch):
    asked = []
    trace = Runner.trace

    def counted(self, query, **options):
        asked.append(query)
        return trace(self, query, **options)

    monkeypatch.setattr(Runner, "trace", counted)
    results, _ = measure(plan(library, tmp_path))
    assert asked == [row["question"] for row in ROWS]
    first, _, third = (question.metrics for question in results.questions)
    assert (first["recall@1"], first["context_recall"], first["tenant_kept"], first["correct"]) == (1, 1, 1, 1)
    assert (third["correct_refusal"], third["correct"]) == (1, 1)
    assert "recall@1" not in third  # nothing is judged where nothing answers
    records = [record for _, record in read_json_lines(tmp_path / "questions.jsonl")]
    assert [record["id"] for record in records] == ["q1", "q2", "q3"]
    assert len(records[0]["found"]) == 20


@pytest.mark.parametrize("mode", ["simple", "advanced", "precise"])
def test_the_ranking_beyond_what_is_read_is_that_of_a_deeper_question(mode, library):
    with Runner("embedded", mode, data_dir=library / "library", outputs=["documents"]) as runner:
        asked = runner.trace(ROWS[0]["question"], tenant_id=TENANT, outputs=["documents"], top_k=20)
        deep = [document.id for document in asked["outputs"]["documents"]]
        run = TracedMode(runner).ask(ROWS[0]["question"], tenant_id=TENANT, depth=20)
        assert len(run.traced["first"]["documents"]) < len(deep) == 20
        assert [document.id for document in run.found] == deep


def test_a_file_whose_top_k_is_another_stages_is_asked_again(library, tmp_path):
    own = tmp_path / "own.yml"
    text = pipeline_path("embedded", "simple").read_text(encoding="utf-8")
    own.write_text(text.replace("  top_k: [parent_fetcher.top_k]", "  top_k: [joiner.top_k]"), encoding="utf-8")
    with Runner("embedded", own, data_dir=library / "library", outputs=["documents"]) as runner:
        run = TracedMode(runner).ask(ROWS[0]["question"], tenant_id=TENANT, depth=8, top_k=3)
        assert (len(run.traced["first"]["documents"]), len(run.found)) == (3, 8)
