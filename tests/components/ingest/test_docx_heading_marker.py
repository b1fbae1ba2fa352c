import io

import docx
from haystack.components.converters.docx import DOCXToDocument
from haystack.dataclasses import ByteStream

from shiguan.ingest.docx_heading_marker import DocxHeadingMarker


def file(*paragraphs):
    """A DOCX of (style, text) pairs."""
    document = docx.Document()
    for style, text in paragraphs:
        document.add_paragraph(text, style=style)
    buffer = io.BytesIO()
    document.save(buffer)
    return ByteStream(buffer.getvalue(), meta={"file_path": "a.docx"}, mime_type="application/x")


def text_of(source):
    (marked,) = DocxHeadingMarker().run([source])["sources"]
    return DOCXToDocument().run([marked])["documents"][0].content


def test_headings_are_marked_by_their_level_and_paragraphs_set_apart():
    source = file(
        ("Title", "Tang"),
        ("Heading 1", "Rebellion"),
        ("Heading 2", "North"),
        ("Normal", "In 755."),
        ("Normal", "Then."),
    )
    assert text_of(source) == "# Tang\n\n# Rebellion\n\n## North\n\nIn 755.\n\nThen.\n"


def test_empty_headings_and_deep_ones_do_no_harm():
    assert text_of(file(("Heading 1", " "), ("Heading 9", "Deep"), ("Normal", "x"))) == " \n\n###### Deep\n\nx\n"


def test_the_source_keeps_type_and_meta_and_is_not_changed():
    source = file(("Heading 1", "A"))
    before = source.data
    (marked,) = DocxHeadingMarker().run([source])["sources"]
    assert (marked.meta, marked.mime_type) == (source.meta, source.mime_type)
    assert source.data == before
    assert marked.data != before


def test_a_damaged_file_is_named_and_the_others_go_on():
    result = DocxHeadingMarker().run([ByteStream(b"PK\x03\x04 broken", meta={"file_path": "b.docx"}), file()])
    assert len(result["sources"]) == 1
    assert [(entry["source"], entry["cause"]) for entry in result["skipped"]] == [("b.docx", "the DOCX is damaged")]
