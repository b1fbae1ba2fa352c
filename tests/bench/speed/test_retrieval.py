"""The retrieval benchmark compares like with like, on a library that is the same every time."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from bench.speed.measuring import machine
from bench.speed.synthetic import SyntheticLibrary
from bench.speed.systems import SYSTEMS, TENANT

from bench.speed import retrieval
from shiguan.query import e5_text_embedder

CHILDREN = 80
_PACKAGES = {"llamaindex": "llama_index.retrievers.bm25", "by_hand": "tantivy"}


@pytest.fixture(scope="module")
def parents():
    return list(SyntheticLibrary(CHILDREN).parents())


def test_machine_names_no_computer():
    assert set(machine()) == {"cpu", "cores", "memory_gib", "python"}


def _numbers(cpu, wall, embedder, memory):
    clock = {"cpu_ms": cpu, "wall_ms": wall, "wall_p95_ms": wall}
    return {
        "label": "x",
        "query": clock,
        "embedder": {"cpu_ms": embedder, "wall_ms": embedder, "wall_p95_ms": embedder},
        "recall": 0.99,
        "memory_mib": memory,
        "open": {"wall_s": 0.5, "cpu_s": 0.5},
        "build": {"wall_s": 3.0, "cpu_s": 3.0},
    }


def test_ratios_and_verdicts():
    systems = {
        "shiguan": _numbers(20, 25, 10, 100),
        "haystack": _numbers(2_410, 2_000, 10, 400),
        "llamaindex": _numbers(600, 500, 10, 50),
    }
    ratios = retrieval.compare(systems)
    assert ratios["haystack_cpu_ms"] == 120.5
    assert ratios["haystack_cpu_ms_without_embedder"] == 240
    assert ratios["haystack_memory"] == 4
    assert ratios["llamaindex_wall_ms"] == 20
    assert [line.split(":")[0] for line in retrieval.verdicts(systems, ratios, 100_000)] == [
        "pass",
        "MISS",
        "pass",
        "pass",
        "pass",
    ]
    assert retrieval.compare({"haystack": systems["haystack"]}) == {}


def test_recall_is_the_share_of_the_exact_searchs_children():
    assert retrieval.recall([["a", "b"], ["c", "d"]], [["b", "a"], ["c", "x"]]) == 0.75
    assert retrieval.recall([[]], [[]]) == 1.0


@pytest.mark.parametrize("name", ["shiguan", "haystack", "by_hand", pytest.param("llamaindex", marks=pytest.mark.slow)])
def test_every_system_finds_the_passage_and_keeps_to_the_tenant(name, tmp_path, parents, monkeypatch):
    if name in _PACKAGES:
        pytest.importorskip(_PACKAGES[name], reason='pip install "shiguan[benchmark]"')
    (tmp_path / name).mkdir()
    retrieval.build(name, tmp_path / name, CHILDREN)
    system = SYSTEMS[name](tmp_path / name)
    system.prepare()
    system.open()
    try:
        wanted = next(parent for parent in parents[2:] if parent.tenant == TENANT and parent.number % 2 == 0)
        child = wanted.children[5]
        # The library's vectors are random; so that words and vectors agree, the question has the vector of its child.
        known = SimpleNamespace(embed=lambda texts, kind: np.array([child.embedding]))
        monkeypatch.setattr(e5_text_embedder, "engine", lambda: known)
        found = system.search(child.text[:300])
        nearest = system.nearest(child.text[:300])
    finally:
        system.close()
    assert found[0] == f"parent-{wanted.number}"
    assert nearest[0] == f"child-{child.number}"
    assert len(nearest) == 10
    own = {f"parent-{parent.number}" for parent in parents if parent.tenant == TENANT}
    assert set(found) <= own
    assert len(found) == len(set(found))


@pytest.mark.slow
def test_the_whole_benchmark_runs_and_writes_its_result(tmp_path, monkeypatch, capsys):
    def run_here(name, folder, children, queries):
        return retrieval.build(name, folder, children) | retrieval.search(name, folder, children, queries)

    monkeypatch.setattr(retrieval, "run_system", run_here)
    out = tmp_path / "result.json"
    arguments = ["--children", str(CHILDREN), "--queries", "2", "--systems", "shiguan", "--out", str(out)]
    assert retrieval.main(arguments) == 0
    result = json.loads(out.read_text())
    assert result["children"] == CHILDREN
    assert result["systems"]["shiguan"]["query"]["cpu_ms"] > 0
    assert 0 < result["systems"]["shiguan"]["parents_found"] <= 10
    printed = capsys.readouterr().out
    assert "Shiguan `simple`" in printed
    retrieval.main(["--table", str(out)])
    assert capsys.readouterr().out == printed
