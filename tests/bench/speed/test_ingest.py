"""The ingest benchmark runs the real index pipeline on a book that is the same every time."""

import json

import pytest

from bench.speed import ingest

MACHINE = {"cpu": "x", "cores": 2, "memory_gib": 4, "python": "3.11"}


def test_table_compares_all_but_the_embedding_with_the_embedding():
    result = {
        "stages_s": {"embedder": 10.0, "splitter": 0.6, "pipeline": 0.3, "router": 0.01},
        "others_s": 0.91,
        "words_s": 0.9,
        "characters": 60_000,
        "children": 5,
        "book": "a book",
        "date": "2025-01-01",
        "machine": MACHINE,
    }
    lines = ingest.table(result).splitlines()
    assert lines[2:6] == [
        "| embedder | 10.00 | 100.0% |",
        "| splitter | 0.60 | 6.0% |",
        "| pipeline | 0.30 | 3.0% |",
        "| others together | 0.01 | 0.1% |",
    ]
    assert "pass: searchable by words after 0.9 s of CPU, 15.0 s a million characters" in "\n".join(lines)
    assert "pass: all but the embedding took 0.9 s, 9.1% of it" in "\n".join(lines)
    slow = ingest.table({**result, "others_s": 1.6, "words_s": 1.5})
    assert slow.count("MISS") == 2


@pytest.mark.slow
def test_the_whole_benchmark_runs(tmp_path, capsys):
    out = tmp_path / "result.json"
    assert ingest.main(["--words", "800", "--out", str(out)]) == 0
    result = json.loads(out.read_text())
    assert result["children"] > 10
    assert result["stages_s"].keys() >= {
        "epub_converter",
        "splitter",
        "embedder",
        "vector_writer",
        "passage_writer",
        "pipeline",
    }
    assert sum(result["stages_s"].values()) == pytest.approx(result["total_s"])
    printed = capsys.readouterr().out
    assert result["stages_s"]["embedder"] > 0
    ingest.main(["--table", str(out)])
    assert capsys.readouterr().out == printed
