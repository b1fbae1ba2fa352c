"""Replay over the sample book in the embedded store, from ingest to deletion, as a person goes through it."""

import json
import shutil
from pathlib import Path

import pytest
from examples.build_book import build_book

from shiguan.cli import main
from shiguan.engine.receipts import read_receipt

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[3]
QUESTION = "Who shot Yin Ziqi in the left eye?"
WORDS = "his officer Nan Jiyun shot Yin Ziqi in the left eye"


def test_each_fate_of_a_source_is_told_rightly(tmp_path, capsys):
    pages = tmp_path / "pages"
    shutil.copytree(ROOT / "examples" / "book", pages)
    chapter = pages / "EPUB" / "text" / "ch03.xhtml"
    original = chapter.read_text(encoding="utf-8")
    assert original.count(WORDS) == 1
    book, receipt, place = tmp_path / "book.epub", tmp_path / "receipt.json", ["--data-dir", str(tmp_path / "library")]

    def shiguan(*arguments):
        code = main([*map(str, arguments), "--json", *place])
        return code, json.loads(capsys.readouterr().out)

    def ingest(text, name="book.epub"):
        chapter.write_text(text, encoding="utf-8")
        build_book(tmp_path / name, pages)
        assert shiguan("ingest", tmp_path / name)[0] == 0

    def replay():
        code, told = shiguan("replay", receipt)
        about = [entry for entry in told["citations"] if WORDS in entry["quote"]]
        assert about
        (state,) = {entry["state"] for entry in about}
        return code, state

    ingest(original)
    assert shiguan("ask", QUESTION, "--receipt", receipt)[0] == 0
    assert len(read_receipt(receipt).passages) > 1
    assert replay() == (0, "stands")

    ingest(original)
    assert replay() == (0, "stands")

    ingest(original.replace("had 6,800 men", "had, in all, 6,800 men"))
    assert replay()[1] == "stands"

    ingest(original.replace(WORDS, "his officer Lei Wanchun shot Yin Ziqi in the right eye"))
    assert replay() == (1, "gone")

    ingest(original)
    assert replay() == (0, "stands")

    ingest(original, "renamed.epub")
    assert shiguan("delete", "book.epub")[0] == 0
    assert replay() == (1, "gone")
    book.unlink()
