"""Archives within bounds; what a whole book meets is in tests/components/ingest/test_epub_bad_input.py."""

import zipfile

import pytest
from tests.doubles.epub_builder import zip_bytes

from shiguan.errors import SourceError
from shiguan.ingest import archives
from shiguan.ingest.archives import SafeArchive


def test_find_forgives_case_and_composition_but_prefers_the_exact_name():
    data = zip_bytes({"Text/Et\u00e9.html": b"", "text/x.html": b"", "Text/X.html": b""})
    archive = SafeArchive(data, source="a.zip")
    assert archive.find("text/ete\u0301.HTML") == "Text/Et\u00e9.html"
    assert archive.find("Text/X.html") == "Text/X.html"
    assert archive.find("TEXT/X.HTML") == "text/x.html"
    assert archive.find("y.html") is None


def test_entry_above_the_callers_limit_is_refused():
    archive = SafeArchive(zip_bytes({"b/": b"", "a": b"12345"}), source="a.zip")
    assert archive.names == ["a"]
    assert archive.read("a", max_bytes=5) == b"12345"
    with pytest.raises(SourceError, match="entry `a` is larger than 4 bytes"):
        archive.read("a", max_bytes=4)


def test_unpacked_bytes_are_counted_over_all_reads(monkeypatch):
    monkeypatch.setattr(archives, "MAX_UNPACKED_BYTES", 1000)
    archive = SafeArchive(zip_bytes({"a": b"x" * 600}), source="a.zip")
    archive.read("a")
    with pytest.raises(SourceError, match="looks like a zip bomb"):
        archive.read("a")


def test_entry_longer_than_it_claims_is_damaged_not_endless():
    data = bytearray(zip_bytes({"a": b"x" * 5000}))
    record = data.rindex(b"PK\x01\x02")
    data[record + 24 : record + 28] = (10).to_bytes(4, "little")
    archive = SafeArchive(bytes(data), source="a.zip")
    with pytest.raises(SourceError, match="entry `a` is damaged"):
        archive.read("a")


def test_high_ratio_is_harmless_up_to_eight_mebibytes():
    assert len(SafeArchive(zip_bytes({"a": bytes(8 * 2**20)}), source="a.zip").read("a")) == 8 * 2**20
    with pytest.raises(SourceError, match="packed more than 100 to 1"):
        SafeArchive(zip_bytes({"a": bytes(8 * 2**20 + 1)}), source="a.zip")


def test_ten_thousand_entries_are_allowed():
    data = zip_bytes([(str(i), b"") for i in range(10_000)], zipfile.ZIP_STORED)
    archive = SafeArchive(data, source="a.zip")
    assert len(archive.names) == 10_000
