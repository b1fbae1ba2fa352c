"""Converts Word files (DOCX) to documents, one per paragraph, quotation, caption, table or note."""

import posixpath
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from haystack import Document, component
from haystack.dataclasses import ByteStream
from lxml import etree

from shiguan.errors import SourceError
from shiguan.ingest.archives import SafeArchive
from shiguan.ingest.docx_equations import PRIVATE_USE, equation_text, field_text, symbol_text, text_in
from shiguan.ingest.docx_labels import DELETED, TEXTS, Labels, chosen_entry, is_hidden, length, list_of, value, value_at
from shiguan.ingest.epub.reader import page_documents
from shiguan.ingest.epub.trees import Element, last_tag, parse_part
from shiguan.ingest.file_types import Converter, Reports, left_out_sentence
from shiguan.text.works import work_of

_DAMAGED = "Open it in a word processor and save it again"
_MOST_BYTES = 256 * 1024 * 1024
# The part that holds the text; some programs number it.
_MAIN = re.compile(r"word/document\d*\.xml", re.IGNORECASE)
_NOTES = {kind: re.compile(rf"word/{kind}s\d*\.xml", re.IGNORECASE) for kind in ("footnote", "endnote")}
_STYLES, _NUMBERING = (re.compile(rf"word/{name}\d*\.xml", re.IGNORECASE) for name in ("styles", "numbering"))
_PACKAGE, _CORE = "_rels/.rels", re.compile(r"docProps/core\.xml", re.IGNORECASE)
# Parts of the file with text of their own that is not read.
_OTHER_PARTS = {
    "headers and footers": re.compile(r"word/(?:header|footer)\d*\.xml", re.IGNORECASE),
    "comments": re.compile(r"word/comments\d*\.xml", re.IGNORECASE),
    "other texts": _MAIN,
    "charts and diagrams": re.compile(r"word/(?:charts/chart|diagrams/data)\d*\.xml", re.IGNORECASE),
}
_LINKS = re.compile(r"word/_rels/document\d*\.xml\.rels", re.IGNORECASE)
_HEADING, _QUOTES = re.compile(r"heading ([1-9])", re.IGNORECASE), frozenset(("quote", "intense quote", "block text"))
_TITLE, _DEEPEST_HEADING, _MOST_BASES = -1, 6, 12  # styles that are based on one another may form a circle
_RAISED = 4  # half points; less only puts a line straight
# Names in the trees of `parse_part`: those of WordprocessingML are bare, others have a prefix.
_SKIPPED = dict.fromkeys(DELETED, "deleted text") | {"rt": "ruby readings"}
_EQUATIONS, _DRAWINGS = frozenset(("m_oMath", "m_oMathPara")), frozenset(("drawing", "pict", "object"))
_CHARACTERS = {"tab": "\t", "ptab": "\t", "noBreakHyphen": "-"}


@component
class DocxFileToDocument(Converter):
    """
    Reads a Word file like the only chapter of a book, so that its structure is kept and none of its words are lost.

    The whole text is read: text boxes, content controls, results of fields, equations (as one line of text), nested
    tables; of tracked changes what was inserted or moved there, not what was deleted. Headings become `section`,
    quotations, tables and captions their own kinds; footnotes and endnotes are put where the text refers to them.
    What is left out (headers, comments, hidden and deleted text) is named in `warnings` with its number of characters.
    The transitional and the strict form of Office Open XML are read alike.

    ```python
    result = DocxFileToDocument().run(sources=["report.docx"])
    result["documents"][0].meta["section"]   # ['Report', 'The siege']
    ```
    """

    def _read(self, source: ByteStream, name: str, reports: Reports) -> list[Document]:
        archive = SafeArchive(source.data, source=name)
        if not (mains := list(filter(_MAIN.fullmatch, archive.names))):
            raise SourceError(name, "it is a zip archive, but not a DOCX", "Save it as DOCX in a word processor")
        named = archive.read(_PACKAGE, _MOST_BYTES).lower() if _PACKAGE in archive.names and mains[1:] else b""
        reader = _DocxReader(archive, next((name for name in mains if name.lower().encode() in named), mains[0]))
        try:
            page = reader.page()
        except RecursionError as error:
            raise SourceError(name, "its tables or boxes are nested hundreds of levels deep", _DAMAGED) from error
        left_out = reader.left_out()
        reports.warnings.extend(reader.warnings(left_out))
        meta = reader.properties() | ({"left_out": left_out} if left_out else {})
        return page_documents(page, source, name, reports, meta)


class _Style(NamedTuple):
    """What a paragraph or character style means for its text."""

    level: int = 0
    kind: str = ""
    raised: bool = False
    hidden: bool = False
    numbered: tuple[str, str] = ("", "")


class _DocxReader:
    """Walks through the trees of a Word file and writes them as one page, of which notes are spliced like a book's."""

    def __init__(self, archive: SafeArchive, main: str) -> None:
        self._archive, self._main = archive, main
        self._left_out: Counter[str] = Counter()
        self._lost_notes, self._linked, self._font = 0, 0, ""
        # Characters of text elements that were met, in the text and the notes, and that were read or left out.
        self._all = self._done = 0
        self._definitions = {value(s, "styleId"): s for s in self._children(_STYLES, "style")}
        self._style = cache(self._defined)
        self._labels = Labels(self._children(_NUMBERING))
        self._notes = {
            (kind, value(note, "id")): note for kind, name in _NOTES.items() for note in self._children(name, kind)
        }
        self._marked: dict[tuple[str, str], str] = {}
        self._words: list[str] = []  # that wait to be written into the element that is open
        # Where the words of each open field go: into its instruction, then to where it stands; None is the text.
        self._fields: list[list[str] | None] = [None]
        # The paragraph that goes on: the mark between it and the next was deleted, or it is the next one's initial.
        self._open: Element | None = None
        self._titled = False  # headings after a title stand below it

    def part(self, name: str) -> Element:
        root = parse_part(self._archive.read(name, _MOST_BYTES))
        if root is None:
            raise SourceError(self._archive.source, f"its part `{name}` is damaged", _DAMAGED)
        for alternate in list(root.iter("o_AlternateContent")):
            # Its branches show the same to different programs: the first with text is read.
            chosen = next((branch for branch in alternate if length(branch)), next(iter(alternate), None))
            alternate[:] = [] if chosen is None else [chosen]
        return root

    def properties(self) -> dict[str, Any]:
        """Return the title and the work that the file says it is."""
        given = {str(node.tag).removeprefix("o_"): node.text for node in self._children(_CORE, "o_title", "o_creator")}
        work = work_of({"title": given.get("title"), "author": given.get("creator")})
        return {"title": work.get("title", ""), "work": work} if work else {}

    def page(self) -> Element:
        """Write the text and, after it, the notes that it refers to."""
        page, root = etree.Element("html"), self.part(self._main)
        body = etree.SubElement(page, "body")
        self._all += length(root)
        self._blocks(root, body)
        notes = etree.SubElement(body, "aside", role="doc-endnotes")
        written = 0
        while written < len(self._marked):  # a note may refer to another one
            for key, element_id in list(self._marked.items())[written:]:
                self._all += length(self._notes[key])
                self._open = None
                self._blocks(self._notes[key], etree.SubElement(notes, "div", id=element_id, role="doc-footnote"))
                written += 1
        return page

    def warnings(self, left_out: Counter[str]) -> Iterator[str]:
        if left_out:
            yield left_out_sentence(self._archive.source, left_out)
        if self._lost_notes:
            yield f"{self._archive.source}: {self._lost_notes:,} note marks lead to no note; they were left out."
        if self._linked:
            yield f"{self._archive.source}: its text goes on in {self._linked:,} linked documents, which were not read."

    def left_out(self) -> Counter[str]:
        """Count what was not read: marked so in the text, in parts of its own, or in elements that are not known."""
        left_out = self._left_out.copy()
        for kind, pattern in _OTHER_PARTS.items():
            for name in filter(pattern.fullmatch, set(self._archive.names) - {self._main}):
                root = parse_part(self._archive.read(name, _MOST_BYTES))
                left_out[kind] += 0 if root is None else length(root, *TEXTS, "o_v")
        for link in self._children(_LINKS, "o_Relationship"):
            name = posixpath.normpath(posixpath.join("word", link.get("Target", "")).lstrip("/"))
            inserted = link.get("Type", "").endswith(("/aFChunk", "/subDocument"))
            if inserted and name in self._archive.names:
                left_out["inserted files"] += len(self._archive.read(name, _MOST_BYTES))
            else:
                self._linked += inserted
        left_out["elements that are not known"] += self._all - self._done
        return +left_out

    def _children(self, pattern: re.Pattern[str], *names: str) -> Iterator[Element]:
        for name in filter(pattern.fullmatch, self._archive.names):
            yield from self.part(name).iterchildren(*names)

    def _blocks(self, node: Element, out: Element) -> None:
        for child in node:
            name = str(child.tag)
            if name == "p":
                self._paragraph(child, out)
            elif name == "tbl":
                self._table(child, etree.SubElement(out, "table"))
            elif name in _EQUATIONS or name == "r":
                self._fill(etree.SubElement(out, "p"), [child], [])
            elif name in _SKIPPED:
                self._skip(child)
            else:  # content controls, insertions, moves, smart tags, custom XML, alternatives
                self._blocks(child, out)

    def _table(self, table: Element, out: Element) -> None:
        """Write a table; a cell that is merged with those below it stands for them as in a page."""
        self._open, above = None, dict[int, Element]()
        for row in self._rows(table, "tr"):
            cells, column = etree.SubElement(out, "tr"), 0
            for cell in self._rows(row, "tc"):
                width, merge = value_at(cell, "tcPr/gridSpan"), cell.find("tcPr/vMerge")
                goes_on = merge is not None and value(merge, "val") != "restart"
                if goes_on and column in above and not length(cell):
                    above[column].set("rowspan", str(int(above[column].get("rowspan", "1")) + 1))
                else:
                    above[column] = etree.SubElement(cells, "td", {"colspan": width} if width else {})
                    self._blocks(cell, above[column])
                    self._open = None
                column += int(width[:4]) if width.isdecimal() else 1

    def _rows(self, node: Element, wanted: str) -> Iterator[Element]:
        """Yield the rows of a table or the cells of a row, whatever they are wrapped in."""
        for child in node:
            if child.tag != wanted:
                yield from self._rows(child, wanted)
            elif child.find("trPr/del") is not None or child.find("tcPr/cellDel") is not None:
                self._skip(child, "deleted text")
            else:
                yield child

    def _paragraph(self, paragraph: Element, out: Element) -> None:
        element = self._open
        if element is None or element.getparent() is not out:
            element = self._begin(paragraph, out)
            style = value_at(paragraph, "pPr/pStyle")
            of_style, own = self._style(style).numbered, list_of(paragraph)
            label = self._labels.label(own[0] or of_style[0], own[1] or of_style[1], style)
            self._words += [f"{label} "] if label else []
        boxes: list[Element] = []
        self._fields = [None]  # an instruction that does not end hides no text
        self._fill(element, paragraph, boxes)
        initial = any(value(frame, "dropCap") in ("drop", "margin") for frame in paragraph.iterfind("pPr/framePr"))
        self._open = element if initial or paragraph.find("pPr/rPr/del") is not None else None
        for box in boxes:
            self._blocks(box, out)

    def _begin(self, paragraph: Element, out: Element) -> Element:
        """Add the element that a paragraph is, by its style."""
        style = self._style(value_at(paragraph, "pPr/pStyle"))
        level = _outline_level(paragraph) or style.level
        if level and length(paragraph, "t"):
            self._titled = self._titled or level == _TITLE
            return etree.SubElement(out, f"h{min(max(level, 0) + self._titled, _DEEPEST_HEADING)}")
        if style.kind == "contents":
            if last_tag(out) != "ul":
                etree.SubElement(out, "ul")
            return etree.SubElement(out[-1], "li")
        if style.kind == "quote":
            out = etree.SubElement(out, "blockquote")
        return etree.SubElement(out, "p", {"class": "caption"} if style.kind == "caption" else {})

    def _inline(self, node: Element | list[Element], out: Element, boxes: list[Element]) -> None:
        """Read the runs of a paragraph; text boxes are collected, because they are blocks of their own."""
        for child in node:
            name = str(child.tag)
            if self._leaf(child, name, out):
                continue
            if name == "r":
                self._run(child, out, boxes)
            elif name in _DRAWINGS:
                self._drawing(child, out, boxes)
            elif name == "hyperlink" and (anchor := value(child, "anchor")):
                self._fill(self._add(out, "a", href=f"#{anchor}"), child, boxes)
            elif name in _SKIPPED:
                self._skip(child)
            else:
                if name == "fldSimple" and not length(child):
                    self._put(field_text(value(child, "instr")))
                self._inline(child, out, boxes)

    def _leaf(self, child: Element, name: str, out: Element) -> bool:
        """Read an element that has nothing but a text, if it is one."""
        if name == "t":
            self._say(child, text_in(self._font, child.text or ""))
        elif name in _EQUATIONS:
            self._say(child, equation_text(child))
        elif name in _CHARACTERS:
            self._words.append(_CHARACTERS[name])
        elif name == "sym":
            self._put(symbol_text(value(child, "char"), value(child, "font")))
        elif name in ("br", "cr"):
            self._add(out, "br")
        elif name == "bookmarkStart":
            self._add(out, "a", id=value(child, "name"))
        elif name in ("footnoteReference", "endnoteReference"):
            self._mark(name.removesuffix("Reference"), value(child, "id"), out)
            mark = child.getnext() if value(child, "customMarkFollows") in ("1", "true", "on") else None
            while mark is not None and mark.tag == "t":
                self._done += length(mark)
                mark.text, mark = "", mark.getnext()
        elif name == "fldChar":
            self._put(chosen_entry(child))
            self._field(value(child, "fldCharType"))
        elif name == "instrText":
            self._put(child.text or "" if len(self._fields) > 1 else "")
        else:
            return False
        return True

    def _field(self, place: str) -> None:
        if place == "begin":
            self._fields.append([])
        elif place == "separate" and len(self._fields) > 1:
            self._fields[-1] = self._fields[-2]
        elif place == "end" and len(self._fields) > 1:
            instruction = self._fields.pop()
            if instruction is not None and instruction is not self._fields[-1]:
                self._put(field_text("".join(instruction)))

    def _put(self, text: str) -> None:
        text, unknown = PRIVATE_USE.subn("", text)
        if unknown:
            self._left_out["symbols of fonts"] += unknown
        (self._words if self._fields[-1] is None else self._fields[-1]).append(text)

    def _run(self, run: Element, out: Element, boxes: list[Element]) -> None:
        style = self._style(value_at(run, "rPr/rStyle"))
        if style.hidden if (own := is_hidden(run)) is None else own:
            self._skip(run, "hidden text")
            return
        fonts = run.find("rPr/rFonts")
        self._font = "" if fonts is None else value(fonts, "ascii")
        stated = value_at(run, "rPr/vertAlign")
        raised = stated == "superscript" if stated else style.raised
        raised = raised or int("0" + re.sub(r"\D.*", "", value_at(run, "rPr/position"))[:4]) >= _RAISED
        name = "sup" if raised else "sub" if stated == "subscript" else "s" * (run.find("rPr/strike") is not None)
        if not name:
            self._inline(run, out, boxes)
        elif not self._words and last_tag(out) == name:  # a number may be in several runs
            self._fill(out[-1], run, boxes)
        else:
            self._fill(self._add(out, name), run, boxes)

    def _mark(self, kind: str, note_id: str, out: Element) -> None:
        if (kind, note_id) not in self._notes:
            self._lost_notes += 1
            return
        element_id = self._marked.setdefault((kind, note_id), f"note-{len(self._marked) + 1}")
        link = etree.SubElement(self._add(out, "sup"), "a", href=f"#{element_id}", role="doc-noteref")
        link.text = "*"

    def _drawing(self, drawing: Element, out: Element, boxes: list[Element]) -> None:
        nearest = ("txbxContent", *_DRAWINGS)
        boxes += (b for b in drawing.iter("txbxContent") if next(b.iterancestors(*nearest), None) is drawing)
        for text in drawing.iter("o_t"):
            self._say(text, f"{text.text or ''} ")
        self._words += [f"{node.get('string', '')} " for node in drawing.iter("o_textpath")]
        about = (node.get(name) for node in drawing.iter("o_docPr", "o_shape") for name in ("descr", "alt", "title"))
        described = next(filter(None, about), "")
        if described:
            self._add(out, "img", alt=described)

    def _fill(self, element: Element, node: Element | list[Element], boxes: list[Element]) -> None:
        self._inline(node, element, boxes)
        self._write(element)

    def _say(self, element: Element, text: str) -> None:
        self._done += length(element)
        self._put(text)

    def _add(self, out: Element, name: str, **attributes: str) -> Element:
        self._write(out)
        return etree.SubElement(out, name, attributes)

    def _write(self, out: Element) -> None:
        """Write the words that wait: at once, because adding each to those before would take time squared."""
        text, self._words = "".join(self._words), []
        for last in out.iterchildren(reversed=True):
            last.tail = (last.tail or "") + text
            return
        out.text = (out.text or "") + text

    def _skip(self, element: Element, kind: str = "") -> None:
        self._done += length(element)
        self._left_out[kind or _SKIPPED[str(element.tag)]] += length(element, *TEXTS, "delText")

    def _defined(self, style_id: str) -> _Style:
        """Read a style by itself and the styles that it is based on, of which the nearest counts."""
        style = _Style()
        for _ in range(_MOST_BASES):
            definition = self._definitions.get(style_id)
            if definition is None:
                break
            name = value_at(definition, "name").lower()
            heading = _HEADING.fullmatch(name)
            level = int(heading[1]) if heading else _TITLE if name == "title" else _outline_level(definition)
            kind = "quote" if name in _QUOTES else "caption" if name == "caption" else ""
            kind = "contents" if name.startswith(("toc ", "table of ")) and name != "toc heading" else kind
            raised = value_at(definition, "rPr/vertAlign") == "superscript"
            level, hidden = style.level or min(level, _DEEPEST_HEADING), style.hidden or bool(is_hidden(definition))
            numbered = style.numbered if style.numbered[0] else list_of(definition)
            style = _Style(level, style.kind or kind, style.raised or raised, hidden, numbered)
            style_id = value_at(definition, "basedOn")
        return style._replace(level=0) if style.kind else style


def _outline_level(element: Element) -> int:
    """Return the rank of the heading that a paragraph or a style says it is; 0 if it is none."""
    stated = value_at(element, "pPr/outlineLvl")
    return int(stated) + 1 if re.fullmatch("[0-8]", stated) else 0
