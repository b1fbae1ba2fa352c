import re
from argparse import Namespace
from pathlib import Path

from shiguan.commands.options import print_result
from shiguan.commands.terminal import IngestProgress, source_lines
from shiguan.engine.library import IngestedFile


def test_elsewhere_than_on_a_terminal_a_line_per_file_names_what_has_no_vector(capsys):
    with IngestProgress([Path("a.txt"), Path("b.txt")]) as progress:
        progress.callback("vectors", 1, 2)
        progress.advance(IngestedFile("a.txt", parents=3))
        progress.advance(IngestedFile("b.txt", parents=4, missing=1_000))
    told = ["1/2 a.txt: 3 passages", "2/2 b.txt: 4 passages, 1,000 units without a vector"]
    assert capsys.readouterr().err.splitlines() == told


def test_a_list_of_sources_says_what_is_missing_and_what_to_do(capsys):
    whole = {"source": "a.txt", "title": "A", "language": "en", "records": 1, "passages": 3, "left_out": {}}
    print_result(Namespace(json=False), {}, *source_lines([{**whole, "units": 9, "words": 9, "vectors": 9}]))
    assert capsys.readouterr().out.splitlines()[-1].split() == ["a.txt", "A", "en", "1", "3", "all", "all"]
    print_result(Namespace(json=False), {}, *source_lines([{**whole, "units": 9, "words": 8, "vectors": 2}]))
    out = capsys.readouterr().out
    assert re.search(r"8 of 9 +2 of 9", out)
    assert "ingest their files again" in out
    assert "shiguan ingest --resume" in out
