"""What readers said: whose it is, what replaces what, and what is kept of it."""

import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from tests.doubles.receipts import receipt

from shiguan.engine.feedback import LONGEST_NOTE, FeedbackFile
from shiguan.errors import RefusedError, StoreError


@pytest.fixture
def file(tmp_path):
    return FeedbackFile(tmp_path)


def entries(file, tenant):
    """Read a tenant's judgements, the newest first, as docs/feedback.md says."""
    with closing(sqlite3.connect(file.path)) as database:
        rows = database.execute("SELECT content FROM feedback WHERE tenant = ? ORDER BY number DESC", (tenant,))
        return [json.loads(content) for (content,) in rows]


def test_a_judgement_is_kept_with_what_it_is_about_for_its_tenant_alone(file):
    one = receipt("a", "Who rose?", quotes=["An Lushan rose.", "An Lushan rose.", "He took Luoyang."])
    given = file.give(one, "wrong_citation", "another year", reader="k1")
    (entry,) = entries(file, "a")
    assert entry == given
    assert (entry["receipt"], entry["kind"]) == (one.id, "wrong_citation")
    assert (entry["query"], entry["status"], entry["note"]) == ("Who rose?", "answered", "another year")
    assert entry["citations"] == [
        {"source": "tang.epub", "quote": "An Lushan rose."},
        {"source": "tang.epub", "quote": "He took Luoyang."},
    ]
    assert entries(file, "b") == []
    assert file.path.stat().st_mode & 0o777 == 0o600


def test_the_same_reader_on_the_same_receipt_replaces_and_another_reader_adds(file):
    one = receipt()
    for kind, reader in (("right", "k1"), ("wrong", "k1"), ("missing", "k2")):
        file.give(one, kind, reader=reader)
    assert [entry["kind"] for entry in entries(file, "a")] == ["missing", "wrong"]


def test_the_oldest_of_a_tenant_go_and_nobody_elses(tmp_path, monkeypatch):
    monkeypatch.setattr("shiguan.engine.feedback._MOST", 2)
    file = FeedbackFile(tmp_path)
    file.give(receipt("b"), "right", reader="k")
    for number in range(4):
        file.give(receipt("a", f"Question {number}?"), "right", reader="k")
    assert [entry["query"] for entry in entries(file, "a")] == ["Question 3?", "Question 2?"]
    assert len(entries(file, "b")) == 1


def _aged(file, number, written):
    with sqlite3.connect(file.path) as database:
        database.execute(
            "UPDATE feedback SET content = json_set(content, '$.written', ?) WHERE number = ?", (written, number)
        )
    database.close()


def test_judgements_are_forgotten_by_receipt_and_by_age_for_their_tenant_alone(file):
    assert file.forget("a", days=1) == 0
    one, other = receipt("a", "Who rose?"), receipt("a", "Who fell?")
    for reader in ("k1", "k2"):
        file.give(one, "right", reader=reader)
    file.give(other, "right", reader="k1")
    assert (file.forget("b", receipt=one.id), file.forget("a", receipt=one.id)) == (0, 2)
    assert [entry["query"] for entry in entries(file, "a")] == ["Who fell?"]
    assert file.forget("a", days=10**9) == 0
    _aged(file, 3, "2020-01-01T00:00:00+00:00")
    assert (file.forget("b", days=365), file.forget("a", days=365)) == (0, 1)
    assert entries(file, "a") == []


def test_a_note_becomes_one_line_that_steers_no_terminal_and_a_long_answer_is_kept_in_short(file):
    given = file.give(receipt(answer="a" * 9_000, quotes=[f"{n}" * 900 for n in range(9)]), "right", reader="k")
    assert (len(given["answer"]), [len(one["quote"]) for one in given["citations"]]) == (4_000, [500] * 5)
    given = file.give(receipt(), "wrong", "one\n two\x1b[2J\u202e three \ud800", reader="k")
    assert given["note"] == "one two three ?"
    assert file.give(receipt(), "wrong", "史" * LONGEST_NOTE, reader="k")["note"] == "史" * LONGEST_NOTE


@pytest.mark.parametrize(("kind", "note", "told"), [
    ("good", "", "`good` is not a kind of feedback. Expected right, wrong, wrong_citation, missing."),
    ("wrong", "x" * 2_001, "The note has 2,001 characters. Expected at most 2,000"),
])  # fmt: skip
def test_what_is_outside_the_limits_is_refused_and_nothing_is_made(file, kind, note, told):
    with pytest.raises(RefusedError, match=told.replace(".", r"\.")):
        file.give(receipt(), kind, note, reader="k")
    assert not file.path.exists()


def test_a_file_that_is_no_database_is_told_and_left_alone(file):
    file.path.write_text("not a database, " * 100)
    with pytest.raises(StoreError, match=r"feedback\.sqlite cannot be used"):
        file.give(receipt(), "right", reader="k")
    assert file.path.read_text().startswith("not a database")


def test_readers_who_are_the_first_at_once_are_all_kept(tmp_path):
    with ThreadPoolExecutor(8) as threads:
        for number in range(5):
            file = FeedbackFile(tmp_path / str(number))
            list(threads.map(lambda reader, file=file: file.give(receipt(), "right", reader=str(reader)), range(8)))
            assert len(entries(file, "a")) == 8
