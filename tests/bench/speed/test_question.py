"""The benchmark of whole questions asks each once and judges what they cost."""

import socket

import pytest

from bench.speed import question


@pytest.mark.slow
def test_every_row_is_measured_on_the_sample_book(capsys, monkeypatch):
    monkeypatch.setattr(question, "WARM_UP", 1)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    question.main(["--questions", "1", "--port", str(port)])
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    named = [row.split("|")[1].strip() for row in rows[1:]]
    assert named == ["simple, without a model", question.PRECISE, question.CLUSTER]
    assert all(float(row.split("|")[2]) > 0 for row in rows[1:])


def test_a_missed_bar_is_named_and_ends_with_one(capsys, monkeypatch):
    monkeypatch.setattr(question, "in_embedded", lambda *_: [(question.PRECISE, 200.04), ("simple", 1.0)])
    monkeypatch.setattr(question, "in_cluster", lambda *_: [(question.CLUSTER, 35.1)])
    assert question.main([]) == 1
    printed = capsys.readouterr().out
    assert f"- pass: {question.PRECISE}, 200.0 ms" not in printed
    assert f"- MISS: {question.CLUSTER}, 35.1 ms, at most 35" in printed
    monkeypatch.setattr(question, "in_cluster", lambda *_: [(question.CLUSTER, 35.0)])
    monkeypatch.setattr(question, "in_embedded", lambda *_: [(question.PRECISE, 200.0)])
    assert question.main([]) == 0
