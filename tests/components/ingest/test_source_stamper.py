import pytest
from haystack import Document

from shiguan.ingest.source_stamper import SourceStamper

CHINESE = "天宝十四载，安禄山反于范阳，玄宗幸蜀，太子即位于灵武，郭子仪收复两京。"
ENGLISH = "In the year 755 the governor rebelled, and the emperor fled to the west with his guards."


def stamp(*documents, tenant_id="t"):
    return SourceStamper().run(list(documents), tenant_id=tenant_id)["documents"]


def block(content=CHINESE, **meta):
    return Document(content=content, meta={"source_key": "/books/a.epub", "file_path": "a.epub", **meta})


def test_a_block_gets_tenant_source_language_and_title():
    (stamped,) = stamp(block())
    assert stamped.content == CHINESE
    name = stamped.meta["file_id"]
    assert stamped.meta == {
        "tenant_id": "t", "source_id": name, "file_id": name, "source": "a.epub", "file_path": "a.epub",
        "language": "zh", "title": "a",
    }  # fmt: skip
    assert len(name) == 32


def test_ids_depend_on_tenant_and_key_and_on_nothing_else():
    first = stamp(block())[0].meta["source_id"]
    assert stamp(block(ENGLISH, title="New"))[0].meta["source_id"] == first
    others = [{"source_key": "/books/b.epub"}, {"record_id": "1"}, {"record_id": "2"}, {"line": 1}]
    ids = {stamp(block(**other))[0].meta["source_id"] for other in others}
    assert len(ids | {first, stamp(block(), tenant_id="u")[0].meta["source_id"]}) == 6


def test_records_of_one_file_share_its_file_id():
    stamped = stamp(block(record_id="1"), block(record_id="2"), block(line=3))
    assert len({document.meta["source_id"] for document in stamped}) == 3
    assert len({document.meta["file_id"] for document in stamped}) == 1
    assert all("line" not in document.meta for document in stamped)


def test_a_path_without_a_key_is_resolved(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plain = Document(content="x", meta={"file_path": "a.txt"})
    full = Document(content="x", meta={"file_path": str(tmp_path.resolve() / "a.txt")})
    assert stamp(plain)[0].meta["source_id"] == stamp(full)[0].meta["source_id"]


def test_a_bilingual_section_keeps_both_languages_and_short_blocks_take_the_sections():
    blocks = block(CHINESE), block(ENGLISH), block("755"), block("756"), block(CHINESE)
    assert [document.meta["language"] for document in stamp(*blocks)] == ["zh", "en", "zh", "zh", "zh"]
    # A stated one is believed and shortened.
    stated = block(language="zh-Hant-TW"), block(language="en_US")
    assert [document.meta["language"] for document in stamp(*stated)] == ["zh", "en"]


def test_the_title_is_the_one_given_or_the_files_name():
    blocks = block(title="Old Tang"), block(file_path="/b/corpus.jsonl.gz", source_key=None)
    assert [stamped.meta["title"] for stamped in stamp(*blocks)] == ["Old Tang", "corpus"]


@pytest.mark.parametrize("tenant_id", ["", "  "])
def test_an_empty_tenant_is_refused(tenant_id):
    with pytest.raises(ValueError, match="`tenant_id` is empty"):
        stamp(block(), tenant_id=tenant_id)
