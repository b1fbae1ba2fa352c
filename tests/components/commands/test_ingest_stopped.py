"""Ctrl-C and SIGTERM end an ingest at once, whatever it is doing, and what was written stays."""

import json
import os
from pathlib import Path

import pytest
from tests.doubles.started import Started

from shiguan.engine.library import Library
from shiguan.stores.embedded.shards import close_all_shards

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = Path(__file__).with_name("ingest_and_stop.py")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="sends signals")]


def run(point, signals, *arguments):
    # The stage that was interrupted would hang for ten minutes.
    return Started(SCRIPT, point, signals, *arguments).finished(seconds=300)


def source(data_dir):
    library = Library(data_dir=data_dir)
    found = library.sources(tenant_id="default")
    close_all_shards()
    return found


@pytest.fixture
def book(tmp_path):
    path = tmp_path / "book.txt"
    path.write_text("\n\n".join(f"Chapter {n}. " + f"The garrison marched on day {n}. " * 12 for n in range(20)))
    return path


def test_a_stop_while_reading_leaves_nothing_and_says_so(tmp_path, book):
    done = run("read", "1", "ingest", book, "--data-dir", tmp_path / "data")
    assert done.returncode == 130, done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("shiguan: Stopped by SIGINT: 0 files finished")
    assert source(tmp_path / "data") == []


def test_sigterm_in_the_words_keeps_them_and_exits_143(tmp_path, book):
    done = run("words", "term", "ingest", book, "--data-dir", tmp_path / "data", "--json")
    assert done.returncode == 143, done.stderr
    assert "Stopped by SIGTERM" in json.loads(done.stdout)["error"]
    (entry,) = source(tmp_path / "data")
    assert (entry["words"], entry["vectors"], entry["complete"]) == (entry["units"], 0, False)


def test_ctrl_c_twice_in_the_vectors_keeps_whole_slices_and_resume_makes_the_rest(tmp_path, book):
    data, whole = tmp_path / "data", tmp_path / "whole"
    done = run("vectors", "2", "ingest", book, "--data-dir", data)
    assert done.returncode == 130, done.stderr
    (entry,) = source(data)
    assert (entry["words"], entry["vectors"]) == (entry["units"], 8)

    book.rename(tmp_path / "away.txt")
    done = run("nowhere", "0", "ingest", "--resume", "--data-dir", data, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["vectors"], result["missing"]) == (entry["units"] - 8, 0)

    (tmp_path / "away.txt").rename(book)
    assert run("nowhere", "0", "ingest", book, "--data-dir", whole).returncode == 0
    assert source(data) == source(whole)
    assert source(data)[0]["complete"]
