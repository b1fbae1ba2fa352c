"""The benchmark of token vectors fills a real store and opens it again."""

import json

import pytest

from benchmarks import token_vectors

pytestmark = pytest.mark.transformers


def test_the_whole_benchmark_runs(tmp_path, capsys):
    out = tmp_path / "result.json"
    assert token_vectors.main(["--children", "60", "--out", str(out)]) == 0
    result = json.loads(out.read_text())
    assert result["children"] == 60
    # 100 tokens in the mean, 48 bytes each, and what SQLite adds to so few.
    assert 4.5 < result["kib_per_child"] < 8
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("| 60 children")
    assert lines[2].endswith("| 15 | pass |")
