"""The names of uploads, from whatever a client sends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiguan.serving.document_routes import source_name
from shiguan.serving.error_replies import ApiError


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("book.epub", "book.epub"),
        ("史記.txt", "史記.txt"),
        ("rows.jsonl.gz", "rows.jsonl.gz"),
        ("../../etc/passwd.txt", "passwd.txt"),
        ("/etc/cron.d/x.md", "x.md"),
        ("C:\\Users\\me\\notes.docx", "notes.docx"),
        ("..\\..\\x.pdf", "x.pdf"),
        ("...hidden.txt", "hidden.txt"),
        ("a\x00b\r\n.txt", "ab.txt"),
        ("gpj.\u202etxt", "gpj.txt"),
        ("e\u0301.txt", "\u00e9.txt"),
        ("e\u200d\u0301.txt", "\u00e9.txt"),
        ("  spaced name.txt  ", "spaced name.txt"),
        ("\ud800lone.txt", "?lone.txt"),
        ("Shouting.TXT", "Shouting.TXT"),
    ],
)
def test_a_name_is_what_a_person_would_read(given, name):
    assert source_name(given) == name


@pytest.mark.parametrize(
    "given",
    [None, "", ".", "..", "/", "x/", "noending", "a.exe", "a.txt.sh", ".txt", "..txt", "\u202e.txt", "a.txt/..",
     "x" * 197 + ".txt", "字" * 66 + ".txt", "a.txt\x00.exe"],
)  # fmt: skip
def test_what_is_no_name_of_a_readable_file_is_refused(given):
    with pytest.raises(ApiError) as raised:
        source_name(given)
    assert raised.value.status_code == 422
    assert raised.value.fields[0]["field"] == "file"


@given(st.text(max_size=80), st.sampled_from([".txt", ".epub", ".jsonl.gz"]))
def test_a_name_never_holds_a_path_or_what_does_not_show(text, ending):
    try:
        name = source_name(text + ending)
    except ApiError:
        return
    assert name.endswith(ending)
    assert not set(name) & set("/\\\0\n\r\u202e\u200b")
    assert not name.startswith(".")
    assert source_name(name) == name
