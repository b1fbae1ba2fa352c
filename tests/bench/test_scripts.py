"""Every benchmark finds what it imports and says what it measures; the golden set asks fair questions."""

import importlib
import json
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[2] / "bench"
GOLDEN = BENCH / "quality" / "golden"
SCRIPTS = sorted(f"bench.{path.parent.name}.{path.stem}" for path in BENCH.glob("[qs]*/*.py"))


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_finds_what_it_imports(script):
    assert importlib.import_module(script).__doc__


def test_every_expansion_belongs_to_a_question_and_gives_no_answer_away():
    rows = {row["id"]: row for row in map(json.loads, (GOLDEN / "sample_book.jsonl").read_text().splitlines())}
    expansions = [json.loads(line) for line in (GOLDEN / "expansions.jsonl").read_text().splitlines()]
    assert len(expansions) >= 60
    for entry in expansions:
        question = rows[entry["id"]]["question"].lower()
        answers = [answer.lower() for answer in rows[entry["id"]]["answers"] if answer.lower() not in question]
        assert entry["queries"]
        assert not [query for query in entry["queries"] for answer in answers if answer in query.lower()]
