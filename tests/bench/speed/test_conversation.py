"""The benchmark of long conversations asks follow-ups and judges what they cost."""

import socket

import pytest

from bench.speed import conversation

RESULT = {
    "turns": 1_000,
    "questions": 30,
    "children": 2_000,
    "cpu_ms": {"question in it": 60.04, "the conversation's": 20.1},
    "cached_tokens": None,
    "machine": {"cpu": "X", "cores": 2, "memory_gib": 8, "python": "3.12"},
    "date": "2026-11-22",
}


def test_a_table_says_whether_the_bar_is_reached():
    told = conversation.table(RESULT)
    assert "| question in it | 60.0 |" in told
    assert "- MISS: the conversation adds 20.1 ms, at most 20\n- the endpoint tells no cached tokens" in told
    better = {**RESULT, "cpu_ms": {"the conversation's": 19.9}, "cached_tokens": 512.0}
    assert "- pass: the conversation adds 19.9 ms" in conversation.table(better)
    assert "512 cached tokens a prompt" in conversation.table(better)


@pytest.mark.slow
def test_a_small_run(tmp_path, monkeypatch):
    for name in ("SHIGUAN_PIPELINES_DIR", "OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    result = conversation.measure(tmp_path, turns=12, questions=5, children=80, port=port)
    assert {"question alone", "question in it", "of it reading the conversation", "summary, after the answer"} <= set(
        result["cpu_ms"]
    )
