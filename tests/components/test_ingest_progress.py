import re
from argparse import Namespace
from pathlib import Path

import pytest

from shiguan.commands.options import print_result
from shiguan.commands.terminal import IngestProgress, source_lines
from shiguan.engine.library import IngestedFile


@pytest.fixture
def clocked():
    """A progress whose clock the test sets."""
    progress, now = IngestProgress([Path("a.txt")]), [0.0]
    progress.bar.get_time = lambda: now[0]

    def report(at, *stage):
        now[0] = at
        progress.callback(*stage)
        return progress.status_line()

    assert progress.status_line() == "reading and writing words"
    return report


def test_a_stage_tells_how_fast_it_goes_and_how_long_it_will_take(clocked):
    assert clocked(0, "vectors", 100, 1_000) == "vectors 100 of 1,000"
    # 300 in 10 seconds: the 100 that were there at the beginning do not count.
    assert clocked(10, "vectors", 400, 1_000) == "vectors 400 of 1,000, 30.0 a second, 0:00:20 left"
    assert clocked(40, "vectors", 420, 1_000) == "vectors 420 of 1,000, 8.0 a second, 0:01:13 left"


def test_a_new_file_begins_anew(clocked):
    clocked(0, "vectors", 64, 64)
    clocked(100, "vectors", 0, 10)
    clocked(101, "vectors", 1, 10)
    assert clocked(102, "vectors", 6, 10) == "vectors 6 of 10, 5.0 a second, 0:00:01 left"


def test_elsewhere_than_on_a_terminal_a_line_per_file_names_what_has_no_vector(capsys):
    with IngestProgress([Path("a.txt"), Path("b.txt")]) as progress:
        progress.callback("vectors", 1, 2)
        progress.advance(IngestedFile("a.txt", parents=3))
        progress.advance(IngestedFile("b.txt", parents=4, missing=1_000))
    assert capsys.readouterr().err.splitlines() == [
        "1/2 a.txt: 3 passages",
        "2/2 b.txt: 4 passages, 1,000 units without a vector",
    ]


def test_a_list_of_sources_says_what_is_missing_and_what_to_do(capsys):
    whole = {"source": "a.txt", "title": "A", "language": "en", "records": 1, "passages": 3}
    print_result(Namespace(json=False), {}, *source_lines([{**whole, "units": 9, "words": 9, "vectors": 9}]))
    assert capsys.readouterr().out.splitlines()[-1].split() == ["a.txt", "A", "en", "1", "3", "all", "all"]
    print_result(Namespace(json=False), {}, *source_lines([{**whole, "units": 9, "words": 8, "vectors": 2}]))
    out = capsys.readouterr().out
    assert re.search(r"8 of 9 +2 of 9", out)
    assert "ingest their files again" in out
    assert "shiguan ingest --resume" in out
