"""Two folders of prompts held against each other: the same questions, answered with each."""

import json

import pytest
from tests.doubles.stand_in_llm import StandInLlm

from shiguan.cli import main

TEXT = "# Reform\n\nYang Yan proposed the two-tax reform in 780. It was collected in summer and autumn.\n"
PROMPT = '{{% message role="user" %}}{manner}\n{{{{ context }}}}\n{{{{ query }}}}{{% endmessage %}}'


@pytest.fixture
def files(tmp_path):
    (tmp_path / "reform.md").write_text(TEXT, encoding="utf-8")
    row = {"id": "q1", "question": "Who proposed the two-tax reform?", "answers": ["Yang Yan"]}
    (tmp_path / "golden.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    for name, manner in (("terse", "Say it in a word."), ("whole", "Say it in a sentence.")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "simple.jinja").write_text(PROMPT.format(manner=manner), encoding="utf-8")
    return tmp_path


def test_the_answers_of_two_folders_are_compared(files, monkeypatch, capsys):
    arguments = ["eval", "compare", "simple", "simple", "--json", "--gate", "none"]
    arguments += ["--prompts", str(files / "terse"), str(files / "whole"), "--golden", str(files / "golden.jsonl")]
    arguments += ["--corpus", str(files / "reform.md"), "--output", str(files / "out")]
    with StandInLlm(
        [("in a sentence", "Yang Yan proposed the two-tax reform in 780. [1]")], default="Nobody. [1]"
    ) as llm:
        monkeypatch.setenv("OPENAI_BASE_URL", llm.url)
        assert main(arguments) == 0
    asked = [prompt for prompt in llm.prompts if "two-tax reform?" in prompt]
    assert [("in a word" in one, "in a sentence" in one) for one in asked] == [(True, False), (False, True)]
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    [correct] = [row for row in told["differences"] if row["metric"] == "correct"]
    assert (correct["before"], correct["after"], correct["verdict"]) == (0.0, 1.0, "better")
    runs = [json.loads((files / "out" / label / "results.json").read_text()) for label in "ab"]
    assert runs[0]["run"]["prompts"] != runs[1]["run"]["prompts"]


def test_folders_without_two_runs_are_refused(files, capsys):
    (files / "results.json").write_text("{}", encoding="utf-8")
    folders = [str(files / "terse"), str(files / "whole")]
    golden = ["--golden", str(files / "golden.jsonl"), "--corpus", str(files / "reform.md")]
    assert main(["eval", "compare", str(files / "results.json"), "simple", "--prompts", *folders, *golden]) == 2
    assert "`--prompts` takes two runs" in capsys.readouterr().err
