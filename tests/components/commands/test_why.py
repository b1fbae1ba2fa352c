"""`shiguan why` as a person types it, over a library of six short texts."""

import json
import re

import pytest
from tests.doubles.six_texts import six_texts

from shiguan.cli import main

SALT = "Who made salt a monopoly of the state?"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return ["--data-dir", str(six_texts(tmp_path_factory.mktemp("why")) / "library")]


def told(capsys, *words):
    assert main(["why", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_why_follows_a_passage_that_is_cited_by_its_words_or_its_id_also_in_a_mode_that_loops(library, capsys):
    first = told(capsys, SALT, "--expected", "made salt a monopoly", *library)
    assert [passage["source"] for passage in first["passages"]] == ["corpus.jsonl"]
    assert first["ranks"]["bm25"] == first["ranks"]["context"] == 1
    found = told(capsys, SALT, "--expected", first["passages"][0]["id"], "--mode", "precise", *library)
    assert (first["stage"], found["stage"], found["ranks"]["vectors"]) == ("nothing_lost", "nothing_lost", 1)


@pytest.mark.parametrize(("question", "expected", "stage"), [
    (SALT, "copper was mined in Shu", "never_ingested"),
    ("安祿山反於何地？", "Zhang Xun held the town", "not_used"),
    (SALT, "Du Fu wrote of a broken country", "not_used"),
    ("Which composer wrote the opera about the phantom of Paris?", "Du Fu wrote of a broken country", "refused"),
])  # fmt: skip
def test_why_names_the_stage(question, expected, stage, library, capsys):
    assert told(capsys, question, "--expected", expected, *library)["stage"] == stage


def test_why_is_pleasant_to_read(library, capsys):
    assert main(["why", "安祿山反於何地？", "--expected", "Zhang Xun held the town", *library]) == 0
    out = capsys.readouterr().out
    assert re.search(r"✗ found by words +not among 1\n  ✓ found by vectors +number \d of 6\n", out)
    assert "Lost: read and not used." in out


def test_why_and_the_answer_say_by_which_other_names_the_library_was_searched(tmp_path, capsys):
    (tmp_path / "poets.txt").write_text("杜甫，字子美，襄阳人。\n\n乾元二年，杜甫弃官，流寓秦州。\n", encoding="utf-8")
    library = ["--data-dir", str(tmp_path / "library")]
    assert main(["ingest", str(tmp_path / "poets.txt"), *library]) == 0
    warning = "也按“杜甫”检索：据书库，这是“子美”的别名。"
    question = "子美弃官后去了哪里？"
    capsys.readouterr()
    assert told(capsys, question, "--expected", "流寓秦州", *library)["warnings"] == [warning]
    assert main(["why", question, "--expected", "流寓秦州", *library]) == 0
    assert f"  {warning}\n" in capsys.readouterr().out
    assert main(["ask", question, "--json", *library]) == 0
    assert json.loads(capsys.readouterr().out)["metadata"]["warnings"] == [warning]


def test_why_names_few_of_the_passages_that_have_a_common_word(library, capsys):
    assert main(["why", SALT, "--expected", "the", *library]) == 0
    out = capsys.readouterr().out
    assert out.count("  expected  ") == 3
    assert "and 1 more with these words" in out  # fall, census, salt and siege have it
