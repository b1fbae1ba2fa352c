"""`eval answers`, `eval golden` and `why` as a person types them, over a library of six short texts."""

import json
import re

import pytest

from shiguan.cli import main
from shiguan.evaluation.measurement import MeasuredMode

TEXTS = {
    "fall": "The capital Chang'an fell to the rebels in July 756, and the emperor fled to Shu.",
    "census": "The census of 755 counted fifty-two million people in the whole empire.",
    "salt": "In 758 Diwu Qi made salt a monopoly of the state to pay for the war.",
    "siege": "Zhang Xun held the town of Suiyang for ten months against a far larger army.",
    "poet": "Du Fu wrote of a broken country whose mountains and rivers remain.",
    "亂": "天寶十四載，安祿山反於范陽。",
}
ROWS = [
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
    folder = tmp_path_factory.mktemp("answers")
    for name, rows in (
        ("corpus", [{"id": name, "title": "", "text": text} for name, text in TEXTS.items()]),
        ("golden", ROWS),
    ):
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def library(place):
    assert main(["ingest", str(place / "corpus.jsonl"), "--data-dir", str(place / "library"), "--json"]) == 0
    return ["--data-dir", str(place / "library")]


def test_answers_are_measured_and_a_stopped_run_goes_on(place, library, monkeypatch, capsys):
    command = ["eval", "answers", "--golden", str(place / "golden.jsonl"), "--mode", "precise", *library]
    command += ["--output", str(place / "run")]
    asked, ask = [], MeasuredMode.ask

    def counted(self, question):
        if stops and len(asked) == 2:
            raise KeyboardInterrupt
        asked.append(question.id)
        return ask(self, question)

    monkeypatch.setattr(MeasuredMode, "ask", counted)
    stops = True
    assert main(command) == 130
    stops = False
    assert main(command) == 0
    assert asked == ["q1", "q2", "q3", "q4", "q5", "q6"]
    out = capsys.readouterr().out
    assert "Of 1 question that went wrong" in out
    results = json.loads((place / "run" / "results.json").read_text(encoding="utf-8"))
    by_id = {row["id"]: row["metrics"] for row in results["questions"]}
    assert [row["correct"] for row in by_id.values()] == [1, 1, 1, 1, 0, 1]
    assert by_id["q4"]["correct_refusal"] == 1
    assert results["metrics"]["llm_calls"]["value"] == 0
    assert "citation_precision" not in by_id["q1"]
    page = (place / "run" / "report.html").read_text(encoding="utf-8")
    assert "Where it was lost" in page


def test_a_tenant_without_documents_is_refused(place, library, capsys):
    command = ["eval", "answers", "--golden", str(place / "golden.jsonl"), *library, "--tenant", "nobody"]
    assert main([*command, "--output", str(place / "none")]) == 2
    assert "has nothing in this library" in capsys.readouterr().err


def told(capsys, *words):
    assert main(["why", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_why_follows_a_passage_that_is_cited(library, capsys):
    found = told(capsys, "Who made salt a monopoly of the state?", "--expected", "made salt a monopoly", *library)
    assert found["stage"] == "nothing_lost"
    assert found["ranks"]["bm25"] == found["ranks"]["context"] == 1
    assert [passage["source"] for passage in found["passages"]] == ["corpus.jsonl"]


def test_why_takes_the_id_of_a_passage_and_works_in_a_mode_that_loops(library, capsys):
    first = told(capsys, "Who made salt a monopoly of the state?", "--expected", "made salt a monopoly", *library)
    found = told(
        capsys, "Who made salt a monopoly of the state?", "--expected", first["passages"][0]["id"], "--mode", "precise", *library
    )  # fmt: skip
    assert found["stage"] == "nothing_lost"
    assert found["ranks"]["vectors"] == 1


@pytest.mark.parametrize(
    ("question", "expected", "stage"),
    [
        ("Who made salt a monopoly of the state?", "copper was mined in Shu", "never_ingested"),
        ("安祿山反於何地？", "Zhang Xun held the town", "not_used"),
        ("Who made salt a monopoly of the state?", "Du Fu wrote of a broken country", "not_used"),
        ("Which composer wrote the opera about the phantom of Paris?", "Du Fu wrote of a broken country", "refused"),
    ],
)
def test_why_names_the_stage(question, expected, stage, library, capsys):
    assert told(capsys, question, "--expected", expected, *library)["stage"] == stage


def test_why_is_pleasant_to_read(library, capsys):
    assert main(["why", "安祿山反於何地？", "--expected", "Zhang Xun held the town", *library]) == 0
    out = capsys.readouterr().out
    assert "✗ found by words" in out
    assert re.search(r"✗ found by words +not among 1\n  ✓ found by vectors +number \d of 6\n", out)
    assert "Lost: read and not used." in out


def test_why_and_the_answer_say_by_which_other_names_the_library_was_searched(tmp_path, capsys):
    (tmp_path / "poets.txt").write_text("杜甫，字子美，襄阳人。\n\n乾元二年，杜甫弃官，流寓秦州。\n", encoding="utf-8")
    library = ["--data-dir", str(tmp_path / "library")]
    assert main(["ingest", str(tmp_path / "poets.txt"), *library]) == 0
    warning = "Also searched for “杜甫”: the library says that it is another name of “子美”."
    question = "子美弃官后去了哪里？"
    capsys.readouterr()
    assert told(capsys, question, "--expected", "流寓秦州", *library)["warnings"] == [warning]
    assert main(["why", question, "--expected", "流寓秦州", *library]) == 0
    assert f"  {warning}\n" in capsys.readouterr().out
    assert main(["ask", question, "--json", *library]) == 0
    assert json.loads(capsys.readouterr().out)["metadata"]["warnings"] == [warning]


def test_why_names_few_of_the_passages_that_have_a_common_word(library, capsys):
    assert main(["why", "Who made salt a monopoly of the state?", "--expected", "the", *library]) == 0
    out = capsys.readouterr().out
    assert out.count("  expected  ") == 3
    assert "and 1 more with these words" in out  # fall, census, salt and siege have it


def test_why_without_words_is_refused(library, capsys):
    assert main(["why", "Who?", "--expected", " ", *library]) == 2
    assert "`--expected` is empty" in capsys.readouterr().err


def test_golden_questions_take_a_model(library, capsys):
    assert main(["eval", "golden", *library]) == 2
    assert "none is configured" in capsys.readouterr().err


def test_golden_questions_are_made_with_one(place, library, stand_in_llm, monkeypatch, capsys):
    monkeypatch.setenv("OPENAI_BASE_URL", stand_in_llm.url)
    assert main(["eval", "golden", *library, "--output", str(place / "made")]) == 1
    out = capsys.readouterr().out
    assert "0 questions accepted" in out
    assert "3 left out" in out
