import gzip
import json
import random
import re
from pathlib import Path

import pytest
from haystack.dataclasses import ByteStream

from shiguan.ingest import jsonl_to_document
from shiguan.ingest.jsonl_to_document import JSONLToDocument
from shiguan.text.passages import ENGINE_META

ROOT = Path(__file__).resolve().parents[3]

GOOD = b'{"id": "good", "text": "In 755 he rebelled."}'


def read(*lines, name="a.jsonl"):
    data = b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
    return JSONLToDocument().run([ByteStream(data, meta={"file_name": name})])


def test_a_row_is_a_document_with_its_id_title_and_own_meta():
    result = read({"id": "7", "title": " 安禄山 ", "text": " 天宝末，反。\n", "meta": {"juan": 200, "tags": ["a"]}})
    (document,) = result["documents"]
    assert document.content == " 天宝末，反。\n"
    assert document.meta == {
        "record_id": "7", "title": "安禄山", "source": "a.jsonl", "file_path": "a.jsonl", "juan": 200, "tags": ["a"],
    }  # fmt: skip
    assert (result["skipped"], result["warnings"]) == ([], [])
    # A number is an id, and a row without one is known by its line.
    numbered, other = read({"id": 7, "text": "a"}, {"text": "b"})["documents"]
    assert (numbered.meta["record_id"], other.meta.get("record_id"), other.meta["line"]) == ("7", None, 2)


BAD_ROWS = {
    "half a character in a name we do not know": (b'{"text": "a", "other": "\\ude00"}', "half of a character"),
    "a title that is no text": (b'{"text": "a", "title": 7}', "its `title` is not a string"),
    "a meta without end": (b'{"text": "a", "meta": ' + b'{"a": ' * 400 + b"1" + b"}" * 401, "nested more than 20"),
    "a list without end": (b'{"text": "a", "meta": {"a": ' + b"[" * 400 + b"]" * 400 + b"}}", "nested more than 20"),
    "no text": (b'{"id": "x", "content": "a"}', "no `text`; its fields are `content`, `id`"),
    "nothing": (b"{}", "no `text`; its fields are none"),
    "text is a number": (b'{"text": 5}', "its `text` is not a string"),
    "two values of a name in its meta": (b'{"text": "a", "meta": {"n": 1, "n": 2}}', "it has `n` twice"),
    "empty text": (b'{"text": " \\n"}', "`text` is empty"),
    "broken json": (b'{"text": "abc', "not valid JSON"),
    "a list": (b'["text"]', "not an object"),
    "nul character": (b'{"text": "a\\u0000b"}', "NUL"),
    "not utf-8": ('{"text": "安禄山"}'.encode("gb18030"), "not UTF-8"),
    "deeply nested": (b"[" * 100_000, "not valid JSON"),
    "huge number": (b'{"text": "a", "id": ' + b"9" * 5000 + b"}", "not valid JSON"),
    "id is a list": (b'{"text": "a", "id": []}', "`id` is neither"),
    "id is true": (b'{"text": "a", "id": true}', "`id` is neither"),
    "meta is a list": (b'{"text": "a", "meta": []}', "`meta` is not an object"),
    "infinity in meta": (b'{"text": "a", "meta": {"n": [{"m": -Infinity}]}}', "not valid JSON"),
    "a number beyond doubles": (b'{"text": "a", "meta": {"n": 1e999}}', "`meta` holds the number inf"),
    "a number beyond 63 bits": (b'{"text": "a", "meta": {"n": [18446744073709551616]}}', "a whole number of 65 bits"),
    "id used before": (b'{"text": "again", "id": "good"}', "its id `good` is that of line 1"),
}


@pytest.mark.parametrize(("row", "cause"), BAD_ROWS.values(), ids=BAD_ROWS.keys())
def test_a_bad_row_is_named_with_its_line_and_the_others_go_in(row, cause):
    result = read(GOOD, b"", row, b'{"text": "last"}')
    (entry,) = result["skipped"]
    assert entry["source"] == "a.jsonl"
    assert entry["cause"].startswith("line 3: ")
    assert cause in entry["cause"]
    assert entry["next_step"]
    assert [document.content for document in result["documents"]] == ["In 755 he rebelled.", "last"]


def test_a_row_that_is_too_long_is_named(monkeypatch):
    monkeypatch.setattr(jsonl_to_document, "_LONGEST_ROW", 100)
    result = read(GOOD, {"text": "x" * 200})
    assert "longer than 100 bytes" in result["skipped"][0]["cause"]
    assert len(result["documents"]) == 1


def test_meta_under_our_names_is_kept_under_others_and_reported():
    result = read({"text": "a", "meta": {"tenant_id": "someone", "language": "xx", "own": 1}})
    meta = result["documents"][0].meta
    assert (meta["user_tenant_id"], meta["user_language"], meta["own"]) == ("someone", "xx", 1)
    assert "tenant_id" not in meta
    assert [warning.split(" in their")[0] for warning in result["warnings"]] == [
        "a.jsonl: 1 rows have `language`, a name that is ours,",
        "a.jsonl: 1 rows have `tenant_id`, a name that is ours,",
    ]
    given = dict.fromkeys(ENGINE_META, "mine")
    meta = read({"text": "a", "title": "T", "id": "7", "meta": given})["documents"][0].meta
    assert [name for name, value in meta.items() if value == "mine"] == [f"user_{name}" for name in given]


def test_the_list_of_the_engines_names_has_each_that_its_stages_use():
    used = set()
    package = ROOT / "components" / "shiguan"
    files = [
        file
        for room in ("ingest", "retrieval", "context", "reading", "stores")
        for file in (package / room).rglob("*.py")
    ]
    for file in [*files, package / "grading" / "relevance_grader.py"]:
        if file.parent.name == "epub" or file.stem == "markdown_file_to_document":
            continue  # where `meta` is an element of a book, or that of a parser's token
        used |= set(re.findall(r"""meta(?:\[|\.get\(|, )["']([a-z_]+)["']""", file.read_text(encoding="utf-8")))
    assert {"tenant_id", "cut", "relevance", "raw_score"} <= used
    assert used - ENGINE_META == set()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_compressed_rows_are_read_the_same(tmp_path, encoding):
    texts = [f"row {n} " * 50 for n in range(5_000)]
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(json.dumps({"text": text}) for text in texts).encode(encoding)))
    assert [document.content for document in JSONLToDocument().run([str(path)])["documents"]] == texts


BAD_ARCHIVES = {
    "cut off": (lambda: gzip.compress(GOOD * 1000)[:-20], "damaged"),
    "damaged": (lambda: gzip.compress(GOOD * 1000)[:20] + b"xxxx" * 20, "damaged"),
    "only a head": (lambda: b"\x1f\x8b", "damaged"),
    "bomb": (lambda: gzip.compress(b'{"text": "%s"}\n' % (b"a" * 1000) * 55_000), "unpacks to more than"),
    "bomb in one line": (lambda: gzip.compress(b"x" * 30_000_000), "unpacks to more than"),
}


@pytest.mark.parametrize(("make", "cause"), BAD_ARCHIVES.values(), ids=BAD_ARCHIVES.keys())
def test_a_bad_archive_is_refused_as_a_whole_and_the_others_go_in(make, cause):
    good = ByteStream(GOOD, meta={"file_name": "good.jsonl"})
    result = JSONLToDocument().run([ByteStream(make(), meta={"file_name": "a.jsonl.gz"}), good])
    (entry,) = result["skipped"]
    assert (entry["source"], cause in entry["cause"]) == ("a.jsonl.gz", True)
    assert [document.meta["source"] for document in result["documents"]] == ["good.jsonl"]


def test_a_row_without_end_is_refused_before_it_fills_the_memory(monkeypatch):
    monkeypatch.setattr(jsonl_to_document, "_LONGEST_ROW", 1_000_000)
    row = random.Random(0).randbytes(2_000_000).replace(b"\n", b"")  # hardly smaller as an archive
    [entry] = JSONLToDocument().run([ByteStream(gzip.compress(row), meta={"file_name": "a"})])["skipped"]
    assert entry["cause"] == "a row is longer than 1,000,000 bytes"


def test_many_bad_rows_are_counted_instead_of_listed():
    result = read(*[b"broken"] * 102)
    assert len(result["skipped"]) == 101
    assert result["skipped"][-1]["cause"] == "2 more rows could not be used"
    assert read(b"\n\n")["skipped"][0]["cause"] == "the file holds no rows"


def test_keys_that_are_not_read_are_named_once():
    rows = [{"text": "a", "metadata": {}, "Text": "b"}, {"text": "c", "metadata": 1}, {"content": "has no text"}]
    assert read(*rows)["warnings"] == [
        "a.jsonl: keys that are not read: `metadata` (2 rows), `Text` (1 rows); what belongs to a row goes into `meta`."
    ]


def test_of_many_keys_ten_are_named():
    row = {"text": "a", **{f"k{n}\n\x1b" + "x" * 1000: 1 for n in range(12)}}
    [warning] = read(row)["warnings"]
    assert warning.count("(1 rows)") == 10
    assert "and 2 more" in warning
    assert len(warning) < 1000
    assert "\x1b" not in warning
