"""The commands as a person types them, over real pipelines and a library of six short texts."""

import json

import pytest

from shiguan.cli import main
from shiguan.engine.loading import pipeline_path
from shiguan.evaluation.measurement import MeasuredMode

TEXTS = {
    "fall": "The capital Chang'an fell to the rebels in July 756, and the emperor fled to Shu.",
    "census": "The census of 755 counted fifty-two million people in the whole empire.",
    "salt": "In 758 Diwu Qi made salt a monopoly of the state to pay for the war.",
    "siege": "Zhang Xun held the town of Suiyang for ten months against a far larger army.",
    "poet": "Du Fu wrote of a broken country whose mountains and rivers remain.",
    "亂": "天寶十四載，安祿山反於范陽。",
}
QUESTIONS = {
    "q1": ("When did the capital fall?", "fall"),
    "q2": ("How many people did the census count?", "census"),
    "q3": ("Who made salt a monopoly?", "salt"),
    "q4": ("Who held Suiyang?", "siege"),
    "q5": ("Which poet wrote of rivers?", "poet"),
    "q6": ("安祿山反於何地？", "亂"),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("eval")
    rows = {
        "corpus": [{"id": name, "title": "", "text": text} for name, text in TEXTS.items()],
        "queries": [
            {"id": name, "text": text, "meta": {"lang": "zh" if name == "q6" else "en"}}
            for name, (text, _) in QUESTIONS.items()
        ],
        "qrels": [{"query_id": name, "doc_id": doc, "score": 1} for name, (_, doc) in QUESTIONS.items()],
    }
    for name, lines in rows.items():
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return folder


def files(place):
    return [word for name in ("corpus", "queries", "qrels") for word in (f"--{name}", str(place / f"{name}.jsonl"))]


def test_a_run_that_was_stopped_goes_on_and_is_measured_whole(place, monkeypatch, capsys):
    command = ["eval", "retrieval", *files(place), "--output", str(place / "run")]
    asked = []
    ask = MeasuredMode.ask

    def stopped_at_the_third(self, question):
        if len(asked) == 2:
            raise KeyboardInterrupt
        asked.append(question.id)
        return ask(self, question)

    monkeypatch.setattr(MeasuredMode, "ask", stopped_at_the_third)
    assert main(command) == 130
    assert not (place / "run" / "results.json").exists()

    def counted(self, question):
        asked.append(question.id)
        return ask(self, question)

    monkeypatch.setattr(MeasuredMode, "ask", counted)
    assert main(command) == 0
    assert asked == list(QUESTIONS)
    out = capsys.readouterr().out
    assert "Recall@5            1.000   0.541 to 1.000" in out  # Clopper and Pearson, six of six
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


def test_a_pipeline_file_of_ones_own_is_compared_and_a_loss_shuts_the_gate(place, capsys):
    simple = pipeline_path("embedded", "simple").read_text(encoding="utf-8")
    broken = place / "broken.yml"
    # Whatever is asked, it reads the passage whose id comes first, which answers one question of the six.
    ranker = "components:\n  by_name:\n    type: haystack.components.rankers.meta_field.MetaFieldRanker\n"
    ranker += "    init_parameters: {meta_field: parent_id, sort_order: ascending, top_k: 1}\n"
    broken.write_text(simple.replace("components:\n", ranker, 1).replace(
        "{sender: language_balancer.documents, receiver: parent_fetcher.documents}",
        "{sender: language_balancer.documents, receiver: by_name.documents}\n"
        "  - {sender: by_name.documents, receiver: parent_fetcher.documents}",
    ))  # fmt: skip
    for mode, side in (("simple", "a"), (str(broken), "b")):
        assert main(["eval", "retrieval", "--mode", mode, *files(place), "--output", str(place / side)]) == 0
    both = [str(place / side) for side in "ab"]
    capsys.readouterr()
    command = ["eval", "compare", *both, "--output", str(place / "compared")]
    assert main(command) == 1
    out = capsys.readouterr().out
    assert "Gate: Recall@5 went from 1.000 to 0.167" in out
    assert (place / "compared" / "comparison.html").is_file()
    assert main([*command, "--gate", "none"]) == 0
    capsys.readouterr()

    assert main(["eval", "compare", *both, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert {d["metric"]: d["verdict"] for d in found["differences"]}["recall@5"] == "worse"
    assert main(["eval", "compare", both[0], both[0]]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "nowhere.json", "simple.json"], "nowhere.json cannot be read"),
        (["retrieval", "--corpus", "no", "--queries", "no", "--qrels", "no"], "no does not exist"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_a_sentence(arguments, message, capsys):
    assert main(["eval", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_library_of_other_documents_is_not_measured_on(place, tmp_path, capsys):
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "something").write_text("else")
    code = main(
        ["eval", "retrieval", *files(place), "--output", str(tmp_path / "run"), "--data-dir", str(tmp_path / "library")]
    )
    assert code == 2
    assert "holds a library that was not made by an evaluation" in capsys.readouterr().err
