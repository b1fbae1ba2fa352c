"""The answers of a run in the fields of Ragas."""

import json
import sys
from types import SimpleNamespace

import pytest

from shiguan.errors import RefusedError
from shiguan.evaluation.ragas_samples import ragas_dataset, ragas_samples
from shiguan.evaluation.results import QuestionResult, Results, RunStore

RECORD = {"status": "answered", "answer": "In 755. [1]", "documents": [{"number": 1, "content": "He rose in 755."}]}
SAMPLE = {"user_input": "When did he rise?", "response": "In 755.", "retrieved_contexts": ["He rose in 755."]}


@pytest.fixture
def folder(tmp_path):
    store = RunStore(tmp_path / "run", {"kind": "answers"})
    details = {"question": SAMPLE["user_input"]}
    questions = [
        QuestionResult("a", {"correct": 1.0}, details={**details, "gold": ["755", "天宝十四载"]}),
        QuestionResult("b", {"correct": 0.0}, details=details),
        QuestionResult("c", {"correct": 0.0}, details=details),
    ]
    for name, status in (("a", "answered"), ("b", "not_found"), ("c", "quoted")):
        store.add(name, {**RECORD, "status": status})
    results = Results("answers", {}, questions).to_json()
    (tmp_path / "run" / "results.json").write_text(json.dumps(results), encoding="utf-8")
    return tmp_path / "run"


def test_answers_have_the_fields_of_ragas_and_refusals_are_left_out(folder):
    assert ragas_samples(folder) == [{**SAMPLE, "reference": "755; 天宝十四载"}, SAMPLE]


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(RefusedError, match="cannot be read"):
        ragas_samples(tmp_path)


def test_the_dataset_is_made_by_ragas(folder, monkeypatch):
    made = SimpleNamespace(EvaluationDataset=SimpleNamespace(from_list=lambda rows: ("dataset", len(rows))))
    monkeypatch.setitem(sys.modules, "ragas", made)
    assert ragas_dataset(folder) == ("dataset", 2)
