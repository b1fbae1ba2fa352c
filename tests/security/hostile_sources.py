"""Small files made to hold the process that reads them, or to fill its memory."""

import gzip
import io
import json

import docx
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from tests.doubles.epub_builder import EpubBuilder, chapter

TEXT = "The garrison of Fanyang marched south before dawn."


def many(count, make):
    return "".join(map(make, range(count)))


def page_of_notes(count):
    marks = many(count, lambda n: f'<p>Ship {n}.<a epub:type="noteref" href="#n{n}">{n}</a></p>')
    notes = many(count, lambda n: f'<aside epub:type="footnote" id="n{n}"><p>Note {n}.</p></aside>')
    return f"<p>{TEXT}</p>{marks}{notes}"


def hostile_sources():
    """Each file by its name."""
    text, row = f"<p>{TEXT}</p>", json.dumps({"text": TEXT}) + "\n"
    attributes, most = many(30_000, 'a{}="v" '.format), many(80_000, 'a{}="v" '.format)
    namespaces = many(5_000, lambda n: f'xmlns:n{n}="u:{n}" n{n}:type="footnote" ')
    yield "attributes.epub", _book(f"<p {most}>{TEXT}</p>")
    yield "attributes_of_namespaces.epub", _book(f"<p {namespaces}>{TEXT}</p>")
    # The parser looks each of them up among those before it.
    yield "attributes_of_tag_soup.epub", _book(f"<p {attributes}>{TEXT}</b>")
    yield "classes.epub", _book('<p class="' + "fn " * 200_000 + f'">{TEXT}</p>')
    yield "nested.epub", _book("<div>" * 5_000 + text + "</div>" * 5_000)
    yield "nested_inline.epub", _book("<p>" + "<i>" * 5_000 + TEXT + "</i>" * 5_000 + "</p>")
    yield "notes.epub", _book(page_of_notes(10_000))
    notes = ' <span class="footnote">It is so.</span> a' * 10_000
    yield "notes_in_a_sentence.epub", _book(f"<p>{TEXT}{notes}</p>")
    nested = '<aside epub:type="footnote" id="n">' * 2_000 + text + "</aside>" * 2_000
    yield "nested_notes.epub", _book(nested)
    links = many(9_000, lambda n: f'<p id="p{n}"><a href="#p{(n * 7) % 9000}">{n}</a> x</p>')
    yield "links.epub", _book(links + text)
    links = many(20_000, lambda n: f'<li id="l{n}"><a href="#p">{n}</a></li>')
    yield "links_to_one.epub", _book(f'<p id="p">{TEXT}</p><ol>{links}</ol>')
    marks = '<sup><a href="#x">' * 3_000 + TEXT + "</a></sup>" * 3_000
    yield "marks_around_marks.epub", _book(f'<p>{marks}</p><p id="x">N</p>')
    yield "elements.epub", _book(text + "<i/>" * 400_000)
    yield "entities.epub", _book(f"{text}<p>" + "&x" * 400_000 + "</p>")
    doctype = "<!DOCTYPE html [" + "<!ENTITY a '" * 100_000 + "]>"
    yield "doctype.epub", EpubBuilder(chapters={"a.xhtml": doctype + chapter(text)}).build()
    yield "spine.epub", EpubBuilder(spine=["ch1.xhtml"] * 20_000).build()
    yield "tables.epub", _book("<table><tr><td>" * 1_500 + TEXT + "</td></tr></table>" * 1_500)
    for name, body in (
        ("attributes", f"<p {attributes}>{TEXT}</p></body></html>"),
        ("nested", "<div>" * 100_000 + f"{text}</body></html>"),
        ("unclosed", text + "<" * 700_000),
        ("unclosed_tags", text + "<a" * 300_000),
        ("formatting", text + "<b><p>" * 100_000),
    ):
        yield f"{name}.html", f"<html><body>{body}".encode()
    yield "spans.docx", _word(_spans(1_000_000))
    yield "styles_in_a_circle.docx", _circle()
    yield "many_spans.docx", _word(*(_spans(60) for _ in range(300)))
    yield "merged_rows.docx", _word(_merged(900))
    yield "nested_tables.docx", _word(_nested(300))
    yield "paragraphs.docx", _word(*(_paragraph("x") for _ in range(20_000)))
    yield "brackets.md", (f"{TEXT}\n\n" + "# " + "[" * 200 + "\n" + "[a](" * 100_000).encode()
    yield "rules.md", (f"{TEXT}\n\n" + "a\n=\n" * 30_000).encode()
    yield "fences.md", (f"{TEXT}\n\n" + "```\n" * 200_000).encode()
    yield "spaces.txt", (TEXT + " " * 1_000_000 + "x").encode()
    yield "one_word.txt", (TEXT + " " + "x" * 1_000_000).encode()
    yield "nested.jsonl", (row + '{"text": "b", "meta": {"a": ' + "[" * 400_000 + "]" * 400_000 + "}}\n").encode()
    yield "digits.jsonl", (row + '{"text": "b", "id": ' + "9" * 900_000 + "}\n").encode()
    yield "keys.jsonl", (row + json.dumps({"text": "b", "meta": {f"k{n}": n for n in range(60_000)}})).encode()
    yield "bomb.jsonl.gz", gzip.compress(row.encode() + b" " * 8_000_000)
    yield "kids_in_a_circle.pdf", _pdf(kids=b"3 0 R 2 0 R 2 0 R")
    yield "kids_in_circles.pdf", _pdf(b"<</Type/Pages/Kids[2 0 R 6 0 R 3 0 R]/Count 1>>", kids=b"6 0 R 6 0 R 3 0 R")
    yield "many_kids.pdf", _pdf(kids=b"3 0 R " * 20_000)
    yield "operators.pdf", _pdf(content=b"q Q " * 150_000)
    yield "words.pdf", _pdf(content=b"BT /F 1 Tf (a) Tj ET " * 30_000)
    yield "nested_arrays.pdf", _pdf(b"[" * 5_000 + b"]" * 5_000, content=b"[" * 5_000)


def _book(body):
    return EpubBuilder(chapters={"a.xhtml": chapter(body)}).build()


def _word(*elements):
    document = docx.Document()
    document.add_paragraph(TEXT)
    for element in elements:
        document.element.body.insert(1, element)
    return _saved(document)


def _saved(document):
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def _circle():
    document = docx.Document()
    one, other = (document.styles.add_style(name, 1) for name in ("One", "Other"))
    one.base_style, other.base_style = other, one
    document.add_paragraph(TEXT, style=one)
    return _saved(document)


def _element(name, *children, **attributes):
    element = OxmlElement(name)
    for key, value in attributes.items():
        element.set(qn(f"w:{key}"), value)
    element.extend(children)
    return element


def _paragraph(text):
    run = _element("w:t")
    run.text = text
    return _element("w:p", _element("w:r", run))


def _cell(properties, text="x"):
    return _element("w:tc", _element("w:tcPr", properties), _paragraph(text))


def _spans(columns):
    return _element("w:tbl", _element("w:tr", _cell(_element("w:gridSpan", val=str(columns)), "wide cell")))


def _merged(rows):
    first = _element("w:tr", _cell(_element("w:vMerge", val="restart")))
    return _element("w:tbl", first, *(_element("w:tr", _cell(_element("w:vMerge"))) for _ in range(rows)))


def _nested(levels):
    inner = _paragraph("deep")
    for _ in range(levels):
        inner = _element("w:tbl", _element("w:tr", _element("w:tc", inner, _paragraph("x"))))
    return inner


def _pdf(*more, kids=b"3 0 R", content=b""):
    """A PDF of one page; `more` are further objects, numbered from 6."""
    content = b"BT /F 1 Tf (" + TEXT.encode() + b") Tj ET " + content
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[" + kids + b"]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
        b"<</Length %d>>\nstream\n%s\nendstream" % (len(content), content),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>", *more,
    ]  # fmt: skip
    file, table = b"%PDF-1.4\n", b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    for number, body in enumerate(objects, start=1):
        table += b"%010d 00000 n \n" % len(file)
        file += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    return file + table + b"trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(file))
