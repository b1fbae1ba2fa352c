import re
from pathlib import Path

import pytest
from haystack.dataclasses import ByteStream

from shiguan.errors import RefusedError
from shiguan.library import Library, find_files


def touch(path, content="x"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


def test_a_folder_is_searched_for_known_types_in_name_order(tmp_path):
    for name in ("b.epub", "a.txt", "sub/c.md", "sub/d.jsonl.gz", "picture.png", ".hidden.txt", ".git/x.md", "e.PDF"):
        touch(tmp_path / name)
    files, others = find_files([tmp_path])
    assert [str(path.relative_to(tmp_path)) for path in files] == [
        "a.txt",
        "b.epub",
        "e.PDF",
        "sub/c.md",
        "sub/d.jsonl.gz",
    ]
    assert others == {".png": 1}


def test_a_named_file_is_always_taken_and_each_file_once(tmp_path):
    odd = touch(tmp_path / "odd.bin")
    book = touch(tmp_path / "book.txt")
    files, _ = find_files([odd, book, tmp_path, str(book)])
    assert files == [odd, book]


def test_a_link_that_leads_nowhere_is_left_out(tmp_path):
    touch(tmp_path / "a.txt")
    (tmp_path / "b.txt").symlink_to(tmp_path / "absent.txt")
    assert find_files([tmp_path])[0] == [tmp_path / "a.txt"]


def test_nothing_to_ingest_is_refused(tmp_path):
    with pytest.raises(RefusedError, match="There is nothing to ingest in"):
        find_files([tmp_path])
    with pytest.raises(RefusedError, match=re.escape("absent.epub does not exist")):
        find_files([tmp_path / "absent.epub"])


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return Library(data_dir=tmp_path_factory.mktemp("library"))


def ingest(library, path, tenant):
    return next(library.ingest([Path(path)], tenant_id=tenant))


def test_tenants_have_their_own_copies(library, tmp_path):
    path = touch(tmp_path / "shared.txt", "鹽稅始於乾元元年。")
    assert ingest(library, path, "a").parents == 1
    assert ingest(library, path, "b").parents == 1
    assert (library.count(tenant_id="a"), library.count(tenant_id="b"), library.count(tenant_id="c")) == (1, 1, 0)
    assert library.delete("shared.txt", tenant_id="c") == 0
    assert library.delete("shared.txt", tenant_id="b") == 1
    assert (library.count(tenant_id="a"), library.count(tenant_id="b")) == (1, 0)
    assert [entry["source"] for entry in library.sources(tenant_id="a")] == ["shared.txt"]


def test_a_changed_file_replaces_its_own_passages(library, tmp_path):
    path = touch(tmp_path / "annals.txt", "鐵出河北。")
    ingest(library, path, "changing")
    touch(path, "銅出江南。")
    result = ingest(library, path, "changing")
    assert (result.new, library.count(tenant_id="changing")) == (1, 1)
    assert result.removed > 0
    parents = library.stores["parents"].filter_documents(
        {"field": "meta.tenant_id", "operator": "==", "value": "changing"}
    )
    assert [parent.content for parent in parents] == ["銅出江南。"]


def test_a_byte_stream_is_known_again_by_its_tenant_and_name(library, tmp_path):
    def put(text, tenant):
        stream = ByteStream(text.encode(), meta={"file_name": "upload.txt"})
        return next(library.ingest([stream], tenant_id=tenant))

    first = put("Tea was taxed from 793 on.", "streams")
    assert (first.file, first.sources, first.removed) == ("upload.txt", 1, 0)
    assert put("Tea was taxed from 793 on.", "other").removed == 0
    second = put("Tea was sold in bricks.", "streams")
    assert (second.new, second.removed) == (1, 2)
    assert [source["source"] for source in library.sources(tenant_id="streams")] == ["upload.txt"]
    # A file of the same name on disk is another source.
    ingest(library, touch(tmp_path / "upload.txt", "Silk was woven in Suzhou."), "streams")
    assert library.sources(tenant_id="streams")[0]["records"] == 2


def test_rows_that_a_file_no_longer_has_are_removed(library, tmp_path):
    path = touch(tmp_path / "rows.jsonl", '{"id": "1", "text": "鐵出河北。"}\n{"id": "2", "text": "銅出江南。"}\n')
    ingest(library, path, "rows")
    touch(path, '{"id": "2", "text": "銅出江南。"}\n')
    result = ingest(library, path, "rows")
    assert (result.sources, result.new, library.count(tenant_id="rows")) == (1, 0, 1)


def test_one_record_can_be_taken_out_by_its_id(library, tmp_path):
    path = touch(tmp_path / "more.jsonl", '{"id": "x1", "text": "鐵出河北。"}\n{"id": "x2", "text": "銅出江南。"}\n')
    ingest(library, path, "records")
    assert library.delete("x1", tenant_id="records") == 1
    assert library.sources(tenant_id="records")[0]["records"] == 1


def test_a_file_that_fails_is_reported_and_the_next_one_goes_in(library, tmp_path):
    bad = touch(tmp_path / "bad.epub", "no zip")
    good = touch(tmp_path / "good.txt", "鐵出河北。")
    results = list(library.ingest([bad, good], tenant_id="mixed"))
    assert [result.parents for result in results] == [0, 1]
    assert results[0].skipped[0]["source"] == "bad.epub"
