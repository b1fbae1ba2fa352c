"""Golden questions of what readers said."""

import json

import pytest

from shiguan.errors import RefusedError
from shiguan.evaluation.golden_maker import feedback_rows, review_feedback
from shiguan.evaluation.questions import GoldPassage, read_golden_set

QUOTE = {"source": "tang.epub", "quote": "An Lushan rose."}


def said(kind, query="Who rose?", *, status="answered", citations=(QUOTE,), note=""):
    return {
        "number": 1, "receipt": "ab", "kind": kind, "note": note, "written": "2026-01-01", "query": query,
        "mode": "simple", "status": status, "conversation_id": None, "answer": "…", "citations": list(citations),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("entries", "answerable", "gold"),
    [
        ([said("right")], True, [QUOTE]),
        ([said("right", status="not_found", citations=())], False, []),
        ([said("right", status="recalled", citations=())], True, []),
        ([said("wrong")], True, []),
        ([said("missing", status="not_found", citations=())], True, []),
        ([said("right"), said("wrong_citation")], True, []),
        ([said("wrong"), said("right")], True, []),
        ([said("right"), said("right", "Who  rose?\n", citations=())], True, [QUOTE]),
    ],
)
def test_only_what_all_call_right_has_gold_before_it_is_reviewed(entries, answerable, gold):
    (row,) = feedback_rows(entries)
    assert (row["person"], row["question"], row["language"]) == ("", "Who rose?", "en")
    assert (row["answerable"], row["gold"], row["answers"]) == (answerable, gold, [])
    assert row["given"] == "…"
    assert [one["kind"] for one in row["said"]] == [entry["kind"] for entry in entries]


def edit(folder, **values):
    review = folder / "feedback_review.jsonl"
    rows = [json.loads(line) | values for line in review.read_text(encoding="utf-8").splitlines()]
    review.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def test_what_a_person_wrote_stays_and_new_questions_come_behind(tmp_path):
    assert review_feedback([said("wrong", "谁反了？")], tmp_path) == {"new": 1, "open": 1, "accepted": 0}
    edit(tmp_path, person="Accept", answers=["安禄山"])
    more = [said("right", "Who fell?"), said("right", "谁反了？")]
    assert review_feedback(more, tmp_path) == {"new": 1, "open": 1, "accepted": 1}
    (question,) = read_golden_set(tmp_path / "feedback_golden.jsonl").questions
    assert (question.text, question.answers, question.language) == ("谁反了？", ["安禄山"], "zh")
    edit(tmp_path, person="reject")
    assert review_feedback(more, tmp_path) == {"new": 0, "open": 0, "accepted": 0}
    assert (tmp_path / "feedback_golden.jsonl").read_text() == ""


def test_an_accepted_question_keeps_the_quotes_that_were_right(tmp_path):
    review_feedback([said("right")], tmp_path)
    edit(tmp_path, person="accept")
    review_feedback([], tmp_path)
    (question,) = read_golden_set(tmp_path / "feedback_golden.jsonl").questions
    assert question.gold == (GoldPassage("An Lushan rose.", "tang.epub"),)
    (row,) = map(json.loads, (tmp_path / "feedback_golden.jsonl").read_text().splitlines())
    assert not {"person", "given", "said"} & row.keys()


@pytest.mark.parametrize(
    ("edited", "told"),
    [
        ({"person": "yes"}, "`person` must be accept, reject or empty, got `yes`"),
        ({"person": "accept"}, "has neither answers nor gold passages"),
        ({"person": "accept", "answers": "An"}, "`answers` must be a list of texts"),
        ({"id": None}, "has no `id`"),
    ],
)
def test_a_line_that_cannot_be_used_is_named_and_nothing_is_written(tmp_path, edited, told):
    review_feedback([said("wrong")], tmp_path)
    edit(tmp_path, **edited)
    before = (tmp_path / "feedback_review.jsonl").read_bytes()
    with pytest.raises(RefusedError, match=f"feedback_review.jsonl, line 1.*{told}"):
        review_feedback([said("wrong", "Another?")], tmp_path)
    assert (tmp_path / "feedback_review.jsonl").read_bytes() == before
