import io

import pypdf
import pytest
from haystack import Document, Pipeline
from haystack.dataclasses import ByteStream

from shiguan.ingest.conversion_inspector import ConversionInspector
from shiguan.ingest.file_types import DOCX, EPUB, MARKDOWN, PDF, TEXT


def source(kind, data=b"x", name="a.bin"):
    return ByteStream(data, meta={"file_path": f"shelf/{name}", "source_key": name}, mime_type=kind.mime_type)


def pdf(*, pages=1, password=None):
    writer = pypdf.PdfWriter()
    for _ in range(pages):
        writer.add_blank_page(100, 100)
    if password:
        writer.encrypt(password)
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


def inspect(documents, sources):
    return ConversionInspector().run(documents, sources)


@pytest.mark.parametrize(
    ("stream", "cause", "step"),
    [
        (source(PDF, pdf(pages=3)), "none of the PDF's 3 pages has text", "OCR"),
        (source(PDF, pdf(password="secret")), "locked by a password", "Remove the password"),
        (source(PDF, b"%PDF-1.4\ngarbage"), "the PDF is damaged", "another copy"),
        (source(PDF, pdf(pages=0)), "the PDF has no pages", "another copy"),
        (source(DOCX), "the DOCX is damaged", "word processor"),
        (source(MARKDOWN), "no text was found", "plain text"),
        (source(TEXT), "no text was found", "plain text"),
    ],
    ids=["scan", "locked", "damaged", "no pages", "docx", "markdown", "text"],
)
@pytest.mark.filterwarnings("ignore")
def test_a_file_that_gave_no_text_is_named_with_the_reason(stream, cause, step):
    other = Document(content="text", meta={"source_key": "b"})
    result = inspect([other], [stream, source(TEXT, name="b")])
    (entry,) = result["skipped"]
    assert entry["source"] == "a.bin"
    assert cause in entry["cause"]
    assert step in entry["next_step"]
    assert result["documents"] == [other]


def test_documents_without_text_are_dropped_and_their_files_named():
    result = inspect([Document(content=" \f ", meta={"source_key": "a.bin"})], [source(PDF, pdf(pages=2))])
    assert result["documents"] == []
    assert "2 pages" in result["skipped"][0]["cause"]


def test_converters_that_report_themselves_are_not_reported_twice():
    assert inspect([], [source(EPUB)])["skipped"] == []


def test_pages_without_text_among_others_give_a_warning():
    document = Document(content="one\f\fthree\f ", meta={"source_key": "a.bin", "file_path": "a.bin"})
    result = inspect([document], [source(PDF)])
    assert result["warnings"] == [
        "a.bin: 2 of 4 pages have no text; run text recognition on the file if they are pictures."
    ]
    assert result["documents"] == [document]


def test_nothing_gives_nothing():
    assert inspect([], []) == {"documents": [], "skipped": [], "warnings": []}


def test_the_inspector_comes_back_from_yaml():
    pipeline = Pipeline()
    pipeline.add_component("inspector", ConversionInspector())
    assert isinstance(Pipeline.loads(pipeline.dumps()).get_component("inspector"), ConversionInspector)
