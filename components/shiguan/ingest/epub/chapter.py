"""Reads a chapter of a book into blocks: paragraphs, quotes, captions, tables, notes, each with its place."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from shiguan.ingest.epub import pictures
from shiguan.ingest.epub.blocks import Block, BlockBuilder, Frame, TableRows, item_label, note_block
from shiguan.ingest.epub.lists import link_lists
from shiguan.ingest.epub.notes import NOTE_LISTS, BookFile, NoteIndex, is_mark, is_numerator, is_raised, says_mark
from shiguan.ingest.epub.package import primary_language
from shiguan.ingest.epub.pages import is_number
from shiguan.ingest.epub.roles import ADDED, Roles, is_data_table, is_line_group, words_set_apart
from shiguan.ingest.epub.sections import MAX_HEADING, SectionTracker
from shiguan.ingest.epub.trees import (
    BLOCK_ELEMENTS,
    HEADINGS,
    UNCOUNTED_ELEMENTS,
    Element,
    element_text,
    is_quoted,
    short_text,
    tokens,
    visible,
    walk,
)

SECTIONS = frozenset(
    "section article aside frontmatter bodymatter rearmatter level level1 level2 level3 level4".split()
)
# These end a run of lines; other blocks inside a list, a stanza or a table only begin a new line.
BREAKS_LINES = frozenset("blockquote table figure figcaption caption pre section article aside body".split())
_LISTS = frozenset("ul ol dl menu dir list".split())
# A heading inside these belongs to the quotation or the table, not to the book.
_NO_HEADINGS = frozenset("blockquote figure table".split())
_XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
# Up to so many characters lists, verse and tables are kept together; sections nested deeper are beside one another.
_MAX_LINES, _DEEPEST, _SHORT_ALT = 2000, 30, 2
_CELLS, _SMALL, _LOWERED = frozenset(("td", "th")), frozenset(("small", "font")), frozenset(("sub", "s", "strike"))
# A number that may be that of a note or an exponent; and what an exponent may follow: 10², km², x².
_RAISED = re.compile(r"[\[(（]?\s*([-−–+]?\d{1,4})(?:\s*[,，、;–-]\s*(\d{1,4}))*\s*[,，、;]?\s*[\])）]?")
_STAR = re.compile(r"[\[(（]?\s*[*†‡§¶#※＊∗①-⑳]{1,4}\s*[\])）]?|[,，、;]")
_ENDED = re.compile(r"(?:^|[.!?:;…][\"'”’»)\]]*)\s*$")
_SENTENCE, _CLAUSE = re.compile(r"[A-Za-z\u00c0-\u1fff]{2}|[AI]\s"), re.compile(r"[A-Z]?[a-z\u00df-\u1fff]{2}")
_BASE = re.compile(r"(?<![^\W\d_])[A-Za-z]{1,2}$|(?<![\d.,])10$")
_JUDGED = frozenset("case default title desc nav del".split())  # whatever their attributes
_TEX_SCRIPT, _BRACES = re.compile(r"math/tex\b"), re.compile(r"[{}\s]+")


@dataclass
class ChapterReader:
    """
    Turns the trees of a book's files, in reading order, into blocks.

    Walks the elements of each once and counts twice: the file's text as anchors do (`element_text`), and that of the
    block under construction, without note marks and page numbers and with notes. What separates two pieces (a space, a
    line end, a cell border) waits in `_gap` until more text of the same block comes.
    """

    language: str
    sections: SectionTracker
    notes: NoteIndex
    roles: Roles
    # Alternative texts that are repeated often, and the pages that begin at elements.
    repeated: frozenset[str]
    pages: Mapping[Element, str]
    blocks: list[Block] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    lost_marks: int = 0  # numbers of notes that were left out: it is not known which notes these are
    _page: str = ""  # the one that began last
    _formula_words: str = ""  # the alternative text of the last formula
    _formula: tuple[str, str] | None = None  # the one that was read last: its TeX and its letters
    _last_number: int = 0  # the raised number that came last in the file: those of notes ascend
    _verse: Element | None = None  # the raised number of the sentence that follows it
    _gap: str = ""
    _block: BlockBuilder | None = None

    def read(self, file: BookFile) -> None:
        """Read a file; one that is not text of the book is only counted."""
        self._file = file
        self._link_lists = link_lists(file.root)
        self._position, self._space, self._last_number = 0, False, 0
        self.sections.start_file(file.href)
        frames = [Frame(file.root, left_out=self.roles.leaves_out_file(file), language=self.language)]
        for event, element, path, cfi in walk(file.root, file.cfi):
            if event == "start":
                frames.append(self._open(element, path, cfi, frames[-1]))
                self._say(element.text, cfi and f"{cfi}/1", frames[-1])
            else:
                self._close(element, frames.pop(), frames[-1])
                if element is not file.root:
                    self._say(element.tail, cfi, frames[-1])
        self._flush()

    def _open(self, element: Element, path: str, cfi: str, parent: Frame) -> Frame:
        name = str(element.tag)
        frame = parent.inner(element, path, cfi)
        drawn = name == "svg" and parent.element.tag == "mjx-container"  # a formula as a drawing, within a sentence
        if frame.uncounted or drawn or name in UNCOUNTED_ELEMENTS:
            if name == "script" and frame.shown and _TEX_SCRIPT.match(element.get("type", "")):
                self._put_tex(pictures.readable_tex(element.text or ""), frame)
            elif frame.shown and (words := words_set_apart(element)) is not None:
                self._gap = self._gap or " "
                self.left_out["frames" if name == "iframe" else "controls of forms"] += len(words)
            frame.uncounted = True
            return frame
        stated = element.get(_XML_LANG) or element.get("xml:lang") or element.get("lang") or ""
        frame.language = primary_language(stated) or frame.language
        self._judge(element, name, frame)
        for element_id in filter(None, map(element.get, ("id", "name"))):
            self.sections.start_element(element_id)
        if frame.is_block:
            self._boundary(frame, parent, entering=True)
            frame.start = self._position + 1 if self._position else 0
            frame.host = frame
            self._enter_block(element, frame, parent)
            self._put(item_label(frame, parent), frame)
        if element in self.pages:
            self._page = self.pages[element]
            if self._block is not None:
                self._block.begin_page(self._page)
        self._mark_up(element, name, frame)
        return frame

    def _mark_up(self, element: Element, name: str, frame: Frame) -> None:
        """Read an element that is more than its text: a picture, a formula, a raised number."""
        if name in pictures.PICTURES and frame.shown:
            self._image(element, frame)
        elif frame.shown and self._formula and self._repeats_formula(element):
            frame.muted = True
        elif name == "sub" and frame.shown and (written := pictures.subscript(self._before, short_text(element))):
            self._put(written, frame)
            frame.muted = True
        elif (name in _LOWERED or is_numerator(element)) and short_text(element)[:1].isdecimal():
            # "2<sup>2</sup>⁄<sub>3</sub>" is not 22⁄3.
            self._gap = self._gap or ("_" if name == "sub" else " ") * self._before[-1:].isdecimal()
        elif (raised := is_raised(element)) or name == "a" or (name in _SMALL and self._before[-1:].isdecimal()):
            self._number(element, frame, raised=raised)
        elif name == "q" and frame.shown and not is_quoted(element):
            self._put("“", frame)
        elif name == "math" and frame.shown:
            self._formula = pictures.formula_text(element), element_text(element)
            self._put(self._formula[0], frame)
            self._formula_words = " ".join(element.get("alttext", "").split())
            frame.muted = True  # its letters count for anchors, but must not be repeated in a block

    @property
    def _before(self) -> str:
        """The text right before this place, if nothing is between."""
        return "" if self._block is None or self._gap else self._block.ending

    def _repeats_formula(self, element: Element) -> bool:
        """Return whether an element right after a formula shows the same, for programs that cannot show formulas."""
        (tex, letters), self._formula = self._formula or ("", ""), None
        if self._block is None or self._block.ending.strip() != tex or len(tex) <= 1 or element.tag in BLOCK_ELEMENTS:
            return False
        text = element_text(element)
        return pictures.readable_tex(text) == tex or "".join(text.split()) == "".join(letters.split())

    def _put_tex(self, tex: str, frame: Frame) -> None:
        """Add a formula that a page has for a program that draws it, unless the formula before it is the same."""
        shown, self._formula = self._formula or ("", ""), None
        if _BRACES.sub("", tex) != _BRACES.sub("", shown[0]):
            self._put(tex, frame)

    def _number(self, element: Element, frame: Frame, *, raised: bool) -> None:
        """Keep a raised or linked number or star apart from what it follows: a note's goes, an exponent is written."""
        text = short_text(element)
        found, is_star = _RAISED.fullmatch(text), _STAR.fullmatch(text)
        ending = self._before if frame.shown else ""
        if not (found or is_star):
            if raised and (written := pictures.power(ending, text, in_table=frame.table is not None)):
                self._put(written, frame)
                frame.muted = True
            return
        number = int(found[1]) if found and found[1].isdecimal() else 0
        follows = number == 1 or (number > 0 and self._last_number <= number <= self._last_number + 1)
        if found and follows and (raised or element in self.notes.marks):
            self._last_number = int(found[2] or number)
        if not ending.strip():
            word = _SENTENCE if self._block is None or _ENDED.search(self._block.ending[-9:]) else _CLAUSE
            self._verse = element if raised and found and word.match(element.tail or "") else None
            return
        exponent = raised and number != 1 and _BASE.search(ending)
        # After a full stop it may be the number of the verse that follows.
        attached = ending[-1].isalnum() or not (element.tail or "")[:1].isalnum()
        no_power = raised and (ending[-1] > "\u2e80" or text[0] in "[(（")  # behind a Han character or in brackets
        if (follows or is_star or no_power) and not exponent and attached:
            self.lost_marks += not (says_mark(element) or frame.heading)
            frame.muted = True
        elif found and (ending[-1].isalnum() or ending[-1] in ")]}"):
            self._gap = "^" if raised else " "

    def _enter_block(self, element: Element, frame: Frame, parent: Frame) -> None:
        """Complete the frame of a block element."""
        name = str(element.tag)
        types = tokens(element, "type", "role")
        if types & NOTE_LISTS:
            frame.kind = "footnote"
        elif element in self._link_lists and frame.kind == "text":
            frame.kind = "list"
        frame.depth = min(frame.depth + (name in SECTIONS), _DEEPEST)
        frame.no_headings = frame.no_headings or name in _NO_HEADINGS
        if name == "blockquote" or "epigraph" in types:
            frame.kind = "quote" if frame.kind == "text" else frame.kind
            frame.lines = frame if parent.lines is not None or is_line_group(element) else None
            return
        frame.lines = None if name in BREAKS_LINES else frame.lines
        if name in ("figcaption", "caption") or "caption" in tokens(element, "class"):
            frame.kind, frame.table, frame.lines = "caption", None, None
        elif name == "table":
            frame.table = TableRows() if is_data_table(element) else None
            if frame.table:
                frame.kind = "table" if frame.kind not in ("footnote", "list") else frame.kind
                frame.lines = frame
        elif name == "pre":
            frame.preformatted = True
        elif name in HEADINGS:
            frame.heading = frame.heading or (not frame.no_headings and frame.lines is None and frame.shown)
        elif frame.lines is None and (name in _LISTS or is_line_group(element)):
            frame.lines = frame
        frame.captioned = any(True for _ in element.iter("figcaption")) if name == "figure" else frame.captioned

    def _judge(self, element: Element, name: str, frame: Frame) -> None:
        if (note := self.notes.notes.get(element)) is not None and not frame.muted:
            if note.placed or note.wanted:
                frame.muted, note.left_out = True, bool(frame.left_out)
                self.sections.path()  # its heading goes with it
            else:
                note.placed = True
                frame.kind, frame.left_out = "footnote", "" if note.typed else frame.left_out
                frame.lines, frame.no_headings = None, True
        elif (mark := self.notes.marks.get(element)) is not None:
            # The text of a note that stands in the sentence itself is put there as a note.
            frame.muted = frame.muted or is_mark(element) or (mark.element is element and mark.typed)
        elif not (element.attrib or frame.left_out or name in _JUDGED):
            return  # as are most
        elif is_number(element) or (name not in BLOCK_ELEMENTS and tokens(element, "class") & ADDED):
            frame.muted = True
        elif name in ("case", "default") or element.get("aria-hidden") == "true":
            frame.muted = frame.muted or pictures.repeats_formula_beside(element)
        elif name in ("title", "desc") and pictures.is_placeholder(short_text(element)):
            frame.muted = True
        elif self.roles.hides(element):
            frame.left_out = frame.left_out or "hidden text"
        elif self.roles.keeps(element, frame.left_out):
            frame.left_out = ""
        elif kind := self.roles.leaves_out(element, self._file.href):
            frame.left_out = kind

    def _close(self, element: Element, frame: Frame, parent: Frame) -> None:
        note = self.notes.marks.get(element)
        if note is not None and parent.shown and not note.placed:
            self._open_block(parent, self._next_position()).add_note(note, self.notes.text_of(note))
        after = (element.tail or "")[:1]
        numbers = self._before[-1:].isdecimal() and after.isdecimal()
        unseen = not frame.shown and self._space and after.isalnum() and element.tag != "math"
        if element is self._verse or unseen or (numbers and element.tag in _LOWERED):
            self._gap = self._gap or " "
        if element.tag == "q" and frame.shown and not is_quoted(element):
            self._put("”", parent)
        if not frame.is_block:
            return
        if frame.heading and not parent.heading:
            self._finish_heading(str(element.tag), frame)
        self._boundary(frame, parent, entering=False)
        if element.tag in SECTIONS:
            self.sections.end_section(parent.depth)

    def _say(self, raw: str | None, node: str, frame: Frame) -> None:
        """Read the text of a node."""
        if not raw or frame.uncounted:
            return
        text = visible(raw)
        line = " ".join(text.split())
        if text[:1].isspace():
            self._space = True
            if frame.shown and not self._gap and not frame.preformatted:
                self._gap = " "
        if not line:
            if frame.preformatted and frame.shown and self._block is not None:
                self._block.add(text, gap=self._gap, node=node, raw=raw)
                self._gap = ""
            return
        start = self._next_position()
        self._position = start + len(line)
        self._space = text[-1].isspace()
        if not frame.shown:
            if not frame.muted:
                self.left_out[frame.left_out] += len(line)
            return
        block = self._open_block(frame, start)
        gap = self._gap if block.length else self._gap.lstrip()
        block.add(text if frame.preformatted else line, gap=gap, node=node, raw=raw)
        self._gap = " " if self._space and not frame.preformatted else ""

    def _next_position(self) -> int:
        """Return the position of the next visible character in the text of the file."""
        return self._position + 1 if self._space and self._position else self._position

    def _boundary(self, frame: Frame, parent: Frame, *, entering: bool) -> None:
        """Handle the start or end of a block element: end the block, the line, or the table's cell."""
        self._space = True
        name = str(frame.element.tag)
        if name == "br" or name not in BLOCK_ELEMENTS:
            self._gap = self._gap or " " if parent.table else "\n"
            return
        if parent.heading:
            self._gap = self._gap or " "
        elif parent.lines is None or name in BREAKS_LINES or is_line_group(frame.element, by_name=True):
            self._flush()
        elif parent.table and name in _CELLS:
            if entering:
                previous = frame.element.getprevious()
                if previous is not None and previous.tag in _CELLS:
                    self._gap = ("" if self._gap == " " else self._gap) + " | "
                self._repeat_cells(frame.element, parent)
        elif parent.table and name != "tr":
            self._gap = self._gap or " "
        else:
            if parent.table and not entering:
                self._repeat_cells(None, parent)
            broken, self._gap = "\n" in self._gap, self._gap if "\n" in self._gap else "\n"
            if not broken and self._block is not None and self._block.length >= _MAX_LINES:
                self._flush()

    def _repeat_cells(self, cell: Element | None, frame: Frame) -> None:
        """Repeat the cells that reach into this row from the rows above, before a cell or at the end."""
        for text in frame.table.before(cell) if frame.table else ():
            self._gap = " | " if cell is None else self._gap
            if frame.shown and self._block is not None:
                self._put(text, frame)
                self._gap = " | " if cell is not None else ""

    def _open_block(self, frame: Frame, start: int) -> BlockBuilder:
        if self._block is None:
            host = frame.lines or frame.host or frame
            self._block = self._builder(frame, host.path, max(0, start - host.start))
        return self._block

    def _builder(self, frame: Frame, path: str, offset: int) -> BlockBuilder:
        anchor = self._file.anchor(path, offset)
        return BlockBuilder(frame.kind, anchor, frame.language, page=self._page, preformatted=frame.preformatted)

    def _image(self, element: Element, frame: Frame) -> None:
        running = self._block is not None and self._block.length > 0
        if formula := pictures.picture_formula(element):
            if element.get("alt", "").strip() != self._formula_words:
                self._put(formula, frame)
            return
        inline = running or (element.tail or "")[:1].isalnum() or frame.heading
        alt = pictures.alternative_text(element, inline=inline, repeated=self.repeated)
        if not alt or alt == self._formula_words:
            return
        if frame.heading or len(alt) <= _SHORT_ALT:
            # A letter drawn as a picture: an initial, a rare character, a title in ornamental type.
            self._put(alt, frame)
            return
        if self._block is not None and running and frame.lines is None:
            self._block.add(pictures.label(alt), gap=self._gap or " ", node=frame.cfi)
            self._gap = " "
        elif not frame.captioned:
            self._flush()
            builder = self._builder(frame, frame.path, 0)
            builder.kind = "caption" if frame.kind != "footnote" else frame.kind
            builder.add(pictures.label(alt), node=frame.cfi)
            self._emit(builder.build())

    def _put(self, text: str, frame: Frame) -> None:
        """Add a text that is not that of a node: a formula, or a letter drawn as a picture."""
        if text:
            block = self._open_block(frame, self._next_position())
            block.add(text, gap=self._gap if block.length else self._gap.lstrip(), node=frame.cfi)
            self._gap = ""

    def _flush(self) -> None:
        block, self._block, self._gap = self._block, None, ""
        self._emit(block.build() if block is not None else None)

    def _emit(self, block: Block | None) -> None:
        if block is not None:
            block.meta["section"] = self.sections.path()
            self.blocks.append(block)

    def _finish_heading(self, name: str, frame: Frame) -> None:
        block, self._block, self._gap = self._block, None, ""
        if block is None:
            return
        text, built = " ".join(block.text().split()), block.build()
        if len(text) > MAX_HEADING:
            self._emit(built)
            return
        if text and built:
            at = frame.depth, frame.path.rpartition("/")[0]
            heading = self.sections.add_heading(text, int(name[1]), *at)
            built.meta["section"] = self.sections.combined()[:-1]
            self.blocks.append(built._replace(heading=heading))
        for note, note_text in block.notes:
            # A heading has no notes in it; those that it refers to come right after it.
            self._emit(note_block(note, note_text, frame.language))
