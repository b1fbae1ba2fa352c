"""Twenty answers through each export and back, read by kept libraries, with everything that a book can say against it."""

import io
import json
import re

import bibtexparser
import docx
import pytest
import rispy
import yaml
from citeproc.source.json import CiteProcJSON
from docx.opc.constants import RELATIONSHIP_TYPE
from haystack import Document
from lxml import etree
from markdown_it import MarkdownIt
from pylatexenc.latex2text import LatexNodes2Text, MacroTextSpec, get_default_latex_context_db
from tests.doubles.receipts import Parents, hostile_receipt, receipt

from shiguan import __version__
from shiguan.engine.docx_notes import docx_with_footnotes
from shiguan.engine.exports import FORMS, cited_entries, export_answer, read_sources
from shiguan.engine.places import locate
from shiguan.engine.receipts import CitedSpan
from shiguan.errors import RefusedError
from shiguan.text.works import WORK_FIELDS, isbn_of, plain_line

ANSWERS = range(20)


def exported(number, form):
    receipt, parents = hostile_receipt(number)
    return receipt, cited_entries(receipt, parents, {}), export_answer(receipt, parents, form)


def check_notes(lines, entry, receipt):
    assert lines[-1] == f"Shiguan receipt: {receipt.id}"
    assert len(lines) == len(set(lines))
    marks = {mark for mark, *_ in entry.quotes}
    for citation in receipt.answer.citations:
        if citation.number in marks:
            told = citation.model_dump()
            pages = {"63": "p. 63", "63–65": "pp. 63–65"}
            place = pages.get(told.get("page"), "para. 4" if "paragraph" in told else "")
            own = [line for line in lines if line.startswith(f"[{citation.number}] ")]
            assert any(place in line and line.endswith(f": “{plain_line(citation.quote, 10_000)}”") for line in own)


def identifiers_of(entry, isbns, *others, lines):
    rest = [line.removeprefix("Identifier: ") for line in lines if line.startswith("Identifier: ")]
    read = [*isbns, *(one for one in others if one), *rest]
    assert sorted(read) == sorted(one.removeprefix("doi:") for one in entry.work.get("identifier", []))


@pytest.mark.parametrize(
    ("section", "place"), [(["Notes", "Spring"], "Spring"), (["Spring"], "Spring"), (["Notes"], "(no place)")]
)
def test_a_place_does_not_begin_with_the_title_of_its_work(section, place):
    found = receipt(quotes=["It rained."])
    found.answer.citations[0] = CitedSpan(
        number=1, parent_id="p", source="notes.md", title="Notes", section=section, start=0, end=1, quote="It rained."
    )
    assert cited_entries(found, Parents([]), {})[0].quotes == [(1, place, "It rained.")]


@pytest.mark.parametrize("number", ANSWERS)
def test_csl_json_comes_back_whole(number):
    receipt, entries, written = exported(number, "csl")
    items = json.loads(written)
    assert len(CiteProcJSON(items)) == len(items) == len(entries)
    for item, entry in zip(items, entries, strict=True):
        for name in ("author", "editor", "translator"):
            names = [one.get("literal") or f"{one['family']}, {one['given']}" for one in item.get(name, [])]
            assert names == entry.work.get(name, [])
        assert [item.get(name) for name in ("title", "edition", "publisher")] == [
            entry.work.get(name) for name in ("title", "edition", "publisher")
        ]
        assert item.get("issued") == ({"date-parts": [[int(entry.work["year"])]]} if "year" in entry.work else None)
        lines = item["note"].split("\n")
        check_notes(lines, entry, receipt)
        identifiers_of(entry, item.get("ISBN", "").split(), item.get("DOI"), item.get("URL"), lines=lines)


@pytest.mark.parametrize("number", ANSWERS)
def test_bibtex_comes_back_whole(number):
    receipt, entries, written = exported(number, "bibtex")
    parser = bibtexparser.bparser.BibTexParser(common_strings=True)
    items = parser.parse(written.decode()).entries
    read = LatexNodes2Text(latex_context=LATEX, strict_latex_spaces=True).latex_to_text

    def plain(text):
        return read(text).replace("ˆ", "^")

    assert [item["ID"] for item in items] == [entry.key for entry in entries]
    for item, entry in zip(items, entries, strict=True):
        for name in WORK_FIELDS:
            said = entry.work.get(name)
            if name in ("author", "editor", "translator"):
                people = re.split(r" and (?![^{]*\}(?:$| and ))", item[name]) if name in item else []
                assert [plain(one) for one in people] == [plain_tex(one) for one in said or []]
            elif name != "identifier":
                assert plain(item.get(name, "")) == plain_tex(said or "")
        lines = [plain(line) for line in item["annote"].split("\n\n")]
        assert lines == [plain_tex(line) for line in entry.fields(receipt.id)["note"]]
        others = plain(item.get("doi", "")), plain(item.get("url", ""))
        identifiers_of(entry, item.get("isbn", "").split(), *others, lines=entry.fields(receipt.id)["note"])


# Two signs of LaTeX's own that the library lacks.
LATEX = get_default_latex_context_db()
LATEX.add_context_category(
    "braces", macros=[MacroTextSpec("textbraceleft", "{"), MacroTextSpec("textbraceright", "}")], prepend=True
)


def plain_tex(text):
    """What LaTeX makes of typewriter quotes and rows of hyphens, which mean what they say."""
    return text.replace("``", "“").replace("''", "”").replace("---", "—").replace("--", "–")


@pytest.mark.parametrize("number", ANSWERS)
def test_ris_comes_back_whole(number):
    receipt, entries, written = exported(number, "ris")
    items = rispy.loads(written.decode())
    assert len(items) == len(entries)
    tags = {"title": "title", "edition": "edition", "publisher": "publisher", "year": "year"}
    people = {"author": "authors", "editor": "tertiary_authors", "translator": "subsidiary_authors"}
    for item, entry in zip(items, entries, strict=True):
        assert item["type_of_reference"] == "BOOK"
        assert {name: item.get(key) for name, key in tags.items()} == {name: entry.work.get(name) for name in tags}
        assert {name: item.get(key, []) for name, key in people.items()} == {
            name: entry.work.get(name, []) for name in people
        }
        check_notes(item["notes"], entry, receipt)
        isbns = [item["issn"]] if "issn" in item else []
        identifiers_of(entry, isbns, item.get("doi"), *item.get("urls", []), lines=item["notes"])


def fields_of(entry):
    for name in WORK_FIELDS:
        said = entry.work.get(name, [])
        yield from [said] if isinstance(said, str) else said
    for _, place, quote in entry.quotes:
        yield from (place, quote)


@pytest.mark.parametrize("number", ANSWERS)
def test_markdown_has_every_field_and_no_markup_of_a_book(number):
    receipt, entries, written = exported(number, "markdown")
    text = written.decode()
    rendered = MarkdownIt("commonmark").render(text)
    tree = etree.HTML(rendered)
    assert {node.tag for node in tree.iter()} <= {"html", "body", "h1", "p", "em", "blockquote", "br"}
    assert len(tree.findall(".//h1")) == 1
    shown = " ".join("".join(tree.itertext()).split())
    assert len(re.findall("<blockquote>", rendered)) <= len(receipt.answer.citations)
    for entry in entries:
        for said in fields_of(entry):
            assert said in shown
        for mark in {mark for mark, *_ in entry.quotes}:
            assert len(re.findall(rf"(?m)^\[\^{mark}\]: ", text)) == 1
            assert f"[^{mark}]" in text.partition("\n[^")[0]
    assert receipt.id in shown


@pytest.mark.parametrize("number", ANSWERS)
def test_docx_has_every_field_in_real_footnotes(number):
    receipt, entries, written = exported(number, "docx")
    document = docx.Document(io.BytesIO(written))
    part = document.part.part_related_by(RELATIONSHIP_TYPE.FOOTNOTES)
    feet = etree.fromstring(part.blob)
    w = {"w": feet.nsmap["w"]}
    notes = {foot.get(f"{{{w['w']}}}id"): "".join(foot.itertext()) for foot in feet.findall("w:footnote", w)}
    referred = [one.get(f"{{{w['w']}}}id") for one in document.element.findall(".//w:footnoteReference", w)]
    assert referred == sorted(referred, key=int)
    assert set(notes) == {"-1", "0", *referred}
    assert len(referred) == len({mark for entry in entries for mark, *_ in entry.quotes})
    texts = (one.text for one in document.paragraphs) if receipt.answer.status == "quoted" else ()
    joined = "\n".join([*notes.values(), " ".join(texts)])
    for entry in entries:
        for said in fields_of(entry):
            assert said in joined
    assert document.paragraphs[-1].text == f"Shiguan receipt: {receipt.id}"
    again = io.BytesIO()
    document.save(again)
    assert docx.Document(again).part.part_related_by(RELATIONSHIP_TYPE.FOOTNOTES).blob == part.blob


def test_an_answer_that_quotes_has_each_quotation_once_with_its_lines():
    rows = "1. In 755 he rose\n- 756 | Luoyang fell\n\n===\n# Nobody came"
    found = receipt(quotes=[rows, "It rained."])
    found.answer.status = "quoted"
    written = export_answer(found, Parents([]), "markdown").decode()
    assert written.count("It rained") == written.count("Luoyang fell") == 1
    tree = etree.HTML(MarkdownIt("commonmark").render(written.partition("\n[^1]: ")[0]))
    assert {node.tag for node in tree.iter()} == {"html", "body", "h1", "p", "blockquote", "br"}
    assert ["".join(one.itertext()).strip() for one in tree.iter("blockquote")] == [
        "1. In 755 he rose\n- 756 | Luoyang fell\n===\n# Nobody came[^1]", "It rained.[^1]",
    ]  # fmt: skip
    document = docx.Document(io.BytesIO(export_answer(found, Parents([]), "docx")))
    quoted = [one.text for one in document.paragraphs if one.style.name == "Quote"]
    assert quoted == ["1. In 755 he rose", "- 756 | Luoyang fell", "===", "# Nobody came", "It rained.1"]
    part = document.part.part_related_by(RELATIONSHIP_TYPE.FOOTNOTES)
    assert b"It rained" not in part.blob


def test_a_million_characters_are_cut():
    receipt, parents = hostile_receipt(1)
    parents.documents[0].meta["work"] = {"title": "x" * 1_000_000, "author": ["y" * 1_000_000] * 1_000}
    for form in FORMS.keys() - {"annotations"}:
        assert len(export_answer(receipt, parents, form)) < 200_000


def test_what_the_user_says_goes_before_what_the_file_says(tmp_path):
    receipt, parents = hostile_receipt(1)
    source = receipt.answer.citations[0].source
    file = tmp_path / "sources.yml"
    said = {"title": "Mine", "author": "Me", "year": 1975, "identifier": ["0-306-40615-2"]}
    file.write_text(yaml.safe_dump({"t": {source: said}}))
    [entry, *_] = cited_entries(receipt, parents, read_sources(file, "t"))
    assert {name: entry.work[name] for name in said} == {
        "title": "Mine", "author": ["Me"], "year": "1975", "identifier": ["0306406152"],
    }  # fmt: skip
    assert read_sources(file, "another") == {}
    assert read_sources(tmp_path / "none.yml", "t") == {}


@pytest.mark.parametrize("text", [
    "t: [", "t: 5", "- t", "t: {a.epub: {titel: x}}", "t: {a.epub: 5}", "t: {a.epub: !!python/object:os.system {}}",
    "\x00",
])  # fmt: skip
def test_a_file_of_the_users_that_is_wrong_is_refused_with_what_was_expected(tmp_path, text):
    file = tmp_path / "sources.yml"
    file.write_text(text)
    with pytest.raises(RefusedError, match=r"Expected, below the tenant .* title, author"):
        read_sources(file, "t")


def test_passages_that_are_gone_leave_what_the_receipt_says():
    receipt, _ = hostile_receipt(1)
    entries = cited_entries(receipt, Parents([]), {})
    assert all(entry.work["title"] == "T" for entry in entries)
    assert sum(len(entry.quotes) for entry in entries) > 0


def test_a_book_that_was_corrected_is_one_work_with_all_that_is_known_of_it():
    place = {"source": "t.epub", "title": "T", "section": [], "start": 0, "end": 1}
    found = receipt()
    found.answer.citations = [CitedSpan(number=at, parent_id=f"p{at}", quote=f"Q{at}.", **place) for at in (1, 2)]

    def works(file):
        of_first = {"source": "t.epub", "title": "T", "source_id": "s", "file_id": file, "work": {"author": "Liu Xu"}}
        entries = cited_entries(found, Parents([Document(id="p1", content="x", meta=of_first)]), {})
        return [(entry.work.get("author"), [number for number, *_ in entry.quotes]) for entry in entries]

    assert works("s") == [(["Liu Xu"], [1, 2])]
    assert works("records") == [(["Liu Xu"], [1]), (None, [2])]  # which may be of another author


@pytest.mark.parametrize("name", [2024, "2024"])
def test_a_tenant_and_a_source_may_be_called_by_a_number(tmp_path, name):
    file = tmp_path / "sources.yml"
    file.write_text(yaml.safe_dump({name: {name: {"author": "Me"}}}))
    assert read_sources(file, "2024") == {"2024": {"author": "Me"}}


def test_an_isbn_has_the_right_check_digit():
    assert isbn_of("urn:isbn:978-0-306-40615-7") == "9780306406157"
    assert isbn_of("0-306-40615-2") == isbn_of("ISBN 0306406152") == "0306406152"
    assert isbn_of("0-306-40615-3") == isbn_of("9780306406158") == isbn_of("12") == isbn_of("") == ""


@pytest.mark.parametrize("wrong", ["x", 7, ["x"], {"href": 7, "start": "x", "exact": 7, "page": []}])
def test_fields_of_wrong_types_in_a_forged_receipt_are_left_out(wrong):
    receipt, parents = hostile_receipt(1)
    for citation in receipt.answer.citations:
        citation.anchor = citation.selector = citation.claim = citation.cfi = citation.title = wrong
    receipt.answer.answer = wrong
    for form in FORMS.keys() - {"annotations"}:
        assert export_answer(receipt, parents, form)
    with pytest.raises(RefusedError, match="cites no place in an EPUB"):
        export_answer(receipt, parents, "annotations")
    assert {found["state"] for found in locate(receipt, lambda _: parents.documents)} <= {"gone", "doubtful"}


def test_what_no_xml_holds_and_marks_of_many_digits_do_not_end_an_export():
    many = "9" * 5_000
    written = docx_with_footnotes("T\ufffe", [(f"a\uffff\x01 [1] [{many}]", None)], {1: "note\ufffe"}, "signed\x00")
    found = docx.Document(io.BytesIO(written))
    assert [one.text for one in found.paragraphs] == ["T\ufffd", f"a\ufffd\ufffd  [{many}]", "signed\ufffd"]


@pytest.mark.parametrize("number", range(20))
def test_every_citation_is_an_annotation_and_nothing_is_lost(number):
    receipt, parents = hostile_receipt(number)
    written = json.loads(export_answer(receipt, parents, "annotations"))
    sets = written if isinstance(written, list) else [written]
    items = [item for one in sets for item in one["items"]]
    assert len({one["id"] for one in [*items, *sets]}) == len(items) + len(sets)
    assert len(sets) == len({one.source for one in receipt.answer.citations})
    found = []
    for item in items:
        *fragments, quote = item["target"]["selector"]
        found.append((item["target"]["source"], quote["exact"], [one["value"] for one in fragments]))
    cited = [one.model_dump() for one in receipt.answer.citations]
    plain = [
        (one["anchor"]["href"], one["quote"].encode("utf-8", "replace").decode(), [one["cfi"]] if "cfi" in one else [])
        for one in cited
    ]
    assert sorted(found) == sorted(plain)
    for item in items:
        assert item["body"]["value"].endswith(f"\nShiguan receipt: {receipt.id}")
        assert ("\nSentence\n" in item["body"]["value"]) == (receipt.answer.status == "answered")
    assert json.loads(export_answer(receipt, parents, "annotations")) == written


def test_a_set_has_the_structure_of_the_draft():
    receipt, _ = hostile_receipt(4)
    citation = receipt.answer.citations[0]
    citation.quote, citation.title, citation.cfi = "It rose", "Annals", "epubcfi(/6/2!/4/2:3)"
    receipt.answer.citations, receipt.answer.query, receipt.answer.status = [citation], "What rose?", "answered"
    receipt.answer.answer = "It rose. [1]"
    own = {citation.source: {"title": "Annals", "author": ["Liu Xu"], "year": 1975, "identifier": ["9780306406157"]}}
    one = json.loads(export_answer(receipt, Parents([]), "annotations", own=own))
    (item,) = one["items"]
    for identifier in (one.pop("id"), item.pop("id")):
        assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}", identifier)
    software = {"id": "urn:x-shiguan", "type": "Software", "name": f"Shiguan {__version__}"}
    about = {
        "dc:format": "application/epub+zip", "dc:title": "Annals", "dc:creator": ["Liu Xu"], "dc:date": "1975",
        "dc:identifier": ["urn:isbn:9780306406157"],
    }  # fmt: skip
    assert one == {
        "@context": "https://www.w3.org/ns/epub-anno.jsonld", "type": "AnnotationSet", "generator": software,
        "generated": "2026-01-02T03:04:05Z", "title": "What rose?", "about": about, "items": [item],
    }  # fmt: skip
    scheme = "http://www.idpf.org/epub/linking/cfi/epub-cfi.html"
    selector = [
        {"type": "FragmentSelector", "value": "epubcfi(/6/2!/4/2:3)", "conformsTo": scheme},
        {"type": "TextQuoteSelector", "exact": "It rose", "prefix": "before ", "suffix": " after"},
    ]
    said = f"What rose?\nIt rose.\nShiguan receipt: {receipt.id}"
    assert item == {
        "type": "Annotation", "motivation": "highlighting", "created": "2026-01-02T03:04:05Z",
        "creator": {**software, "name": "Shiguan"}, "target": {"source": "OEBPS/c1.xhtml", "selector": selector},
        "body": {"type": "TextualBody", "format": "text/plain", "value": said},
    }  # fmt: skip
