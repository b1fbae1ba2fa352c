"""The measurement of the list of sources runs on a small library, and says what it found."""

from argparse import Namespace

from bench.speed import sources
from shiguan.stores.embedded.shards import close_all_shards


def test_a_library_is_built_once_and_measured(tmp_path, capsys):
    options = Namespace(parents=60, children=2, files=3, without_server=True)
    for _ in range(2):
        report = sources.measure(options, tmp_path)
        assert (report["parents"], report["children"], report["sources"]) == (60, 120, 3)
    close_all_shards()


def test_the_time_of_a_reply_is_held_against_the_bar():
    times = {"cpu_ms": 180.0, "wall_ms": 300.0}
    report = {
        "parents": 200_000, "children": 200_000, "sources": 400, "after_write": times, "again": times, "date": "2025-01-01",
        "machine": {"cpu": "x", "cores": 2, "memory_gib": 4, "python": "3.11"}, "get": [times, times],
    }  # fmt: skip
    told = sources.lines(report)
    assert told[4] == "| GET, first since the start | 180 | 300 |"
    assert told[6] == "\n- pass: 300 ms after a write, at most 300"
    times["wall_ms"] = 300.6
    assert sources.lines(report)[6] == "\n- MISS: 301 ms after a write, at most 300"
