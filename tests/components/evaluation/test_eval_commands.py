"""The commands as a person types them, over real pipelines and a library of six short texts."""

import json
import shutil

import pytest
from tests.doubles.six_texts import six_texts

from shiguan.cli import main
from shiguan.engine.loading import pipeline_path
from shiguan.evaluation.json_lines import write_json_lines
from shiguan.evaluation.measurement import MeasuredMode

QUESTIONS = {
    "q1": ("When did the capital fall?", "fall"), "q2": ("How many people did the census count?", "census"),
    "q3": ("Who made salt a monopoly?", "salt"), "q4": ("Who held Suiyang?", "siege"),
    "q5": ("Which poet wrote of rivers?", "poet"), "q6": ("安祿山反於何地？", "亂"),
}  # fmt: skip


GOLDEN = [
    {"id": "q1", "question": "When did the capital Chang'an fall to the rebels?", "answers": ["July 756"], "gold": [{"quote": "The capital Chang'an fell"}], "type": "time", "language": "en"},
    {"id": "q2", "question": "Who made salt a monopoly of the state?", "answers": ["Diwu Qi"], "gold": [{"quote": "Diwu Qi made salt"}], "type": "person", "language": "en"},
    {"id": "q3", "question": "安祿山反於何地？", "answers": ["范阳"], "gold": [{"quote": "安祿山反於范陽"}], "type": "place", "language": "zh"},
    {"id": "q4", "question": "Which composer wrote the opera about the phantom of Paris?", "answerable": False, "type": "unanswerable", "language": "en"},
    {"id": "q5", "question": "How many swallows did the astronomers of Samarkand paint?", "answers": ["fifty-two million"], "gold": [{"quote": "The census of 755"}], "type": "number", "language": "en"},
    {"id": "q6", "question": "How long did he hold it?", "answers": ["ten months"], "gold": [{"quote": "for ten months"}], "type": "follow_up", "language": "en",
     "history": [{"role": "user", "content": "Who held the town of Suiyang against the larger army?"}, {"role": "assistant", "content": "Zhang Xun held the town of Suiyang."}]},
]  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = six_texts(tmp_path_factory.mktemp("eval"))
    queries, qrels = [], []
    for name, (text, document) in QUESTIONS.items():
        queries.append({"id": name, "text": text, "meta": {"lang": "zh" if name == "q6" else "en"}})
        qrels.append({"query_id": name, "doc_id": document, "score": 1})
    for name, rows in (("queries", queries), ("qrels", qrels), ("golden", GOLDEN)):
        write_json_lines(folder / f"{name}.jsonl", rows)
    return folder


@pytest.fixture(scope="module")
def library(place):
    return ["--data-dir", str(place / "library")]


def files(place):
    return [word for name in ("corpus", "queries", "qrels") for word in (f"--{name}", str(place / f"{name}.jsonl"))]


def test_a_run_that_was_stopped_goes_on_and_is_measured_whole(place, monkeypatch, capsys):
    shutil.copy(pipeline_path("embedded", "simple"), place / "own.yml")
    command = ["eval", "retrieval", *files(place), "--mode", str(place / "own.yml"), "--output", str(place / "run")]
    asked, ask = [], MeasuredMode.ask

    def counted(self, question):
        if stops and len(asked) == 2:
            raise KeyboardInterrupt
        asked.append(question.id)
        return ask(self, question)

    monkeypatch.setattr(MeasuredMode, "ask", counted)
    stops = True
    assert main(command) == 130
    assert not (place / "run" / "results.json").exists()
    stops = False
    assert main(command) == 0
    assert asked == list(QUESTIONS)
    out = capsys.readouterr().out
    assert "Recall@5 1.000 0.541 to 1.000 6 " in " ".join(out.split())  # Clopper and Pearson, six of six
    assert "language: en" in out
    results = json.loads((place / "run" / "results.json").read_text(encoding="utf-8"))
    assert [row["metrics"]["context_recall"] for row in results["questions"]] == [1.0] * 6
    assert {"code", "commit", "pipelines", "prompts", "models", "data", "versions", "machine"} <= set(results["run"])
    assert (place / "run" / "report.html").is_file() and (place / "run" / "report.md").is_file()

    monkeypatch.setattr(MeasuredMode, "ask", lambda self, question: pytest.fail("asked again"))
    assert main([*command, "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["metrics"]["recall@5"]["value"] == 1.0
    assert summary["output"] == str(place / "run")

    assert main([*command, "--limit", "3"]) == 2
    assert "another configuration" in capsys.readouterr().err


def test_answers_are_measured(place, library, capsys):
    command = ["eval", "answers", "--golden", str(place / "golden.jsonl"), "--mode", "precise", *library]
    assert main([*command, "--output", str(place / "answered")]) == 0
    out = capsys.readouterr().out
    assert "Of 1 question that went wrong" in out
    results = json.loads((place / "answered" / "results.json").read_text(encoding="utf-8"))
    by_id = {row["id"]: row["metrics"] for row in results["questions"]}
    assert [row["correct"] for row in by_id.values()] == [1, 1, 1, 1, 0, 1]
    assert by_id["q4"]["correct_refusal"] == 1
    assert results["metrics"]["llm_calls"]["value"] == 0
    assert "citation_precision" not in by_id["q1"]
    assert "Where it was lost" in (place / "answered" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["answers", "--golden", "golden.jsonl", "--tenant", "nobody"], "has nothing in this library"),
        (["golden"], "none is configured"),
    ],
)
def test_what_cannot_be_measured_is_refused(place, library, monkeypatch, capsys, command, told):
    monkeypatch.chdir(place)
    assert main(["eval", *command, *library, "--output", "none"]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.usefixtures("endpoint")
def test_golden_questions_are_made_with_one(place, library, capsys):
    assert main(["eval", "golden", *library, "--output", str(place / "made")]) == 1
    out = capsys.readouterr().out
    assert "0 questions accepted" in out
    assert "3 left out" in out
