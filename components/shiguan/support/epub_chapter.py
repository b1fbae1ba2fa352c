"""One chapter of a book into blocks: paragraphs, quotes, captions, tables, notes, each with its place."""

import re
from dataclasses import dataclass, field, replace

from shiguan.support.epub_blocks import Block, BlockBuilder
from shiguan.support.epub_notes import NOTE_LIST_TYPES, Note, NoteIndex
from shiguan.support.epub_package import primary_language
from shiguan.support.epub_roles import Roles, alternative_text, is_data_table, is_line_group, is_page_mark
from shiguan.support.epub_sections import MAX_HEADING, SectionTracker
from shiguan.support.epub_text import BLOCK_ELEMENTS, UNCOUNTED_ELEMENTS, visible, walk
from shiguan.support.languages import detect_language
from shiguan.support.xml import Element, tokens

# Lists and verse are kept together up to this many characters, tables likewise.
_MAX_LINES = 1200
_HEADING = re.compile(r"h[1-6]$")
_SECTIONS = frozenset("section article aside frontmatter bodymatter rearmatter level level1 level2 level3 level4".split())
_LISTS = frozenset("ul ol dl menu dir list".split())
_CELLS = frozenset(("td", "th"))
# These end a run of lines; other blocks inside a list, a stanza or a table only begin a new line.
_BREAKS_LINES = frozenset("blockquote table figure pre section article aside body".split())
_SHORT_ALT = 3


@dataclass(eq=False)
class _Frame:
    """What holds inside an element: inherited from its parent, changed by itself."""

    element: Element | None = None
    path: str = ""
    start: int = 0
    host: "_Frame | None" = None
    lines: "_Frame | None" = None
    kind: str = "text"
    language: str = ""
    depth: int = 0
    table: bool = False
    heading: bool = False
    preformatted: bool = False
    captioned: bool = False
    left_out: bool = False
    muted: bool = False
    uncounted: bool = False
    is_block: bool = False


@dataclass
class ChapterReader:
    """
    Turns the tree of one file into blocks.

    :param href: the file's name in the archive.
    :param spine: its place in the reading order.
    :param sections: the tracker of section paths, shared by all files of the book.
    :param notes: the book's notes.
    :param roles: what the book says about its parts.
    :param language: the book's language.
    :param blocks: where finished blocks go, in reading order.
    """

    href: str
    spine: int
    sections: SectionTracker
    notes: NoteIndex
    roles: Roles
    language: str
    blocks: list[Block] = field(default_factory=list)

    def read(self, root: Element, *, left_out: bool) -> list[Block]:
        """
        Read the file.

        :param root: its tree.
        :param left_out: whether the whole file stands outside the text; its notes are found all the same.
        :returns: its blocks.
        """
        self._position = 0
        self._space = False
        self._gap = ""
        self._block: BlockBuilder | None = None
        self._block_frame: _Frame | None = None
        self.headings_left: list[tuple[str, str]] = []
        self.sections.start_file(self.href)
        frames = [_Frame(left_out=left_out, language=self.language)]
        frames[0].host = frames[0]
        for event, element, path in walk(root):
            if event == "start":
                frames.append(self._open(element, path, frames[-1]))
                self._say(element.text, frames[-1])
            else:
                self._close(element, frames.pop(), frames[-1])
                if element is not root:
                    self._say(element.tail, frames[-1])
        self._flush()
        return self.blocks

    # Elements

    def _open(self, element: Element, path: str, parent: _Frame) -> _Frame:
        name = str(element.tag)
        frame = replace(parent, element=element, path=path, is_block=name in BLOCK_ELEMENTS)
        if name in UNCOUNTED_ELEMENTS:
            frame.uncounted = True
            return frame
        if language := primary_language(_language_attribute(element)):
            frame.language = language
        if not frame.uncounted and (element_id := element.get("id") or element.get("name")):
            self.sections.start_element(element_id)
        self._judge(element, name, frame)
        if frame.is_block:
            self._boundary(name, frame, parent)
            frame.start = self._position + 1 if self._position else 0
            frame.host = frame
            self._enter_block(element, name, frame, parent)
        if name == "br":
            self._gap = "\n"
        elif name in ("img", "image") or (name == "math" and element.get("alttext")):
            self._image(element, frame)
        return frame

    def _judge(self, element: Element, name: str, frame: _Frame) -> None:
        """Decide whether an element is shown, and as what kind."""
        note = self.notes.notes.get(element)
        if note is not None and not frame.muted:
            if note.placed or note.wanted:
                frame.muted = True
            else:
                note.placed = True
                frame.kind, frame.left_out = "footnote", frame.left_out and not note.typed
                frame.lines = None
        elif element in self.notes.marks:
            frame.muted = frame.muted or not self.notes.is_shown(element)
        elif is_page_mark(element, name) or element.get("hidden") is not None:
            frame.muted = True
        elif self.roles.keeps(element):
            frame.left_out = False
        elif self.roles.leaves_out(element, self.href):
            frame.left_out = True
        if name == "case":
            # Of an `epub:switch` only the default is for readers that know no other vocabulary.
            frame.muted = True

    def _enter_block(self, element: Element, name: str, frame: _Frame, parent: _Frame) -> None:
        types = tokens(element, "type", "role")
        if types & NOTE_LIST_TYPES:
            frame.kind = "footnote"
        if name in _SECTIONS:
            frame.depth += 1
        if name in _BREAKS_LINES and name != "blockquote":
            frame.lines = None
        if name == "blockquote" or "epigraph" in types:
            frame.kind = "quote" if frame.kind == "text" else frame.kind
            frame.lines = frame if parent.lines is not None or is_line_group(element) else None
        elif name in ("figcaption", "caption") or "caption" in tokens(element, "class"):
            frame.kind, frame.table, frame.lines = "caption", False, None
        elif name == "figure":
            frame.captioned = any(True for _ in element.iter("figcaption"))
        elif name == "table":
            frame.table = is_data_table(element)
            if frame.table:
                frame.kind = "table" if frame.kind != "footnote" else "footnote"
                frame.lines = frame
        elif name == "pre":
            frame.preformatted = True
        elif _HEADING.match(name) and self._is_section_heading(frame):
            frame.heading = True
        elif frame.lines is None and (name in _LISTS or is_line_group(element)):
            frame.lines = frame

    def _is_section_heading(self, frame: _Frame) -> bool:
        return frame.kind == "text" and frame.lines is None and not frame.table and self._shown(frame)

    def _close(self, element: Element, frame: _Frame, parent: _Frame) -> None:
        name = str(element.tag)
        note = self.notes.marks.get(element)
        if note is not None and self._shown(parent) and not note.placed:
            self._put_note(note, parent)
        if not frame.is_block:
            return
        if frame.heading and not parent.heading:
            self._finish_heading(name, frame)
        self._boundary(name, frame, parent)
        if name in _SECTIONS:
            self.sections.end_section(parent.depth)

    # Text

    def _say(self, text: str | None, frame: _Frame) -> None:
        if not text or frame.uncounted:
            return
        text = visible(text)
        words = text.split()
        shown = self._shown(frame)
        if text[:1].isspace():
            self._pause(shown)
        if not words:
            return
        line = " ".join(words)
        start = self._position + 1 if self._space and self._position else self._position
        self._position = start + len(line)
        self._space = text[-1].isspace()
        if not shown:
            return
        block = self._open_block(frame, start)
        if frame.preformatted:
            block.add(text if block.length else text.lstrip("\n"))
            self._gap = ""
            return
        block.add((self._gap if block.length else self._gap.lstrip()) + line)
        self._gap = " " if self._space else ""

    def _pause(self, shown: bool) -> None:
        self._space = True
        if shown and not self._gap:
            self._gap = " "

    def _boundary(self, name: str, frame: _Frame, parent: _Frame) -> None:
        """Pass the start or end of a block element: end the block, or the line, or the table's cell."""
        self._space = True
        if name == "br":
            return
        if parent.heading:
            self._gap = self._gap or " "
            return
        inside = parent.lines
        if frame.heading or inside is None or name in _BREAKS_LINES or name in ("figcaption", "caption"):
            self._flush()
        elif parent.table:
            self._table_gap(name, frame)
        elif "\n" not in self._gap:
            self._gap = "\n"
            if self._block is not None and self._block.length >= _MAX_LINES:
                self._flush()
        if is_stanza(frame):
            self._flush()

    def _table_gap(self, name: str, frame: _Frame) -> None:
        if name == "tr":
            self._gap = "\n"
            if self._block is not None and self._block.length >= _MAX_LINES:
                self._flush()
        elif name in _CELLS and frame.element is not None:
            previous = frame.element.getprevious()
            entering = frame.start == 0 or frame.host is not frame
            if entering and previous is not None and previous.tag in _CELLS:
                self._gap = ("" if self._gap == " " else self._gap) + " | "
        elif not self._gap:
            self._gap = " "

    def _shown(self, frame: _Frame) -> bool:
        return not (frame.left_out or frame.muted or frame.uncounted)

    def _open_block(self, frame: _Frame, start: int) -> BlockBuilder:
        if self._block is None:
            host = frame.lines or frame.host or frame
            self._block = self._builder(frame, host.path, max(0, start - host.start))
            self._block_frame = frame
        return self._block

    def _builder(self, frame: _Frame, path: str, offset: int) -> BlockBuilder:
        anchor = {"href": self.href, "spine": self.spine, "path": path, "offset": offset}
        return BlockBuilder(frame.kind, anchor, frame.language, preformatted=frame.preformatted)

    def _put_note(self, note: Note, frame: _Frame) -> None:
        start = self._position + 1 if self._space and self._position else self._position
        text = self.notes.text_of(note)
        self._open_block(frame, start).add_note(note, text)

    def _image(self, element: Element, frame: _Frame) -> None:
        if not self._shown(frame):
            return
        alt = alternative_text(element, inline=self._block is not None and self._block.length > 0 or frame.heading)
        if not alt:
            return
        if frame.heading or len(alt) <= _SHORT_ALT:
            # A letter drawn as a picture: an initial, a rare character, a title in ornamental type.
            self._open_block(frame, self._position).add(self._gap.lstrip("\n") + alt)
            self._gap = ""
            return
        label = f"[图：{alt}]" if detect_language(alt) == "zh" else f"[Image: {alt}]"
        if self._block is not None and self._block.length and frame.lines is None:
            self._block.add((self._gap or " ") + label)
            self._gap = " "
        elif not frame.captioned:
            self._flush()
            builder = self._builder(frame, frame.path, 0)
            builder.kind = "caption" if frame.kind != "footnote" else frame.kind
            builder.add(label)
            self._emit(builder)

    # Blocks

    def _flush(self) -> None:
        block, self._block = self._block, None
        self._gap = ""
        if block is not None:
            self._emit(block)

    def _emit(self, builder: BlockBuilder) -> None:
        if block := builder.build(self.sections.path()):
            self.blocks.append(block)

    def _finish_heading(self, name: str, frame: _Frame) -> None:
        block, self._block = self._block, None
        self._gap = ""
        if block is None:
            return
        text = " ".join(block.text().split())
        if len(text) > MAX_HEADING:
            self._emit(block)
            return
        if text:
            self.headings_left.append((text, frame.path))
            self.sections.add_heading(text, int(name[1]), frame.depth, frame.path.rpartition("/")[0])
        for note, note_text in block.notes:
            anchor = note.anchor
            builder = BlockBuilder("footnote", anchor, frame.language, preformatted=False)
            builder.add(note_text)
            self._emit(builder)


def is_stanza(frame: _Frame) -> bool:
    """Does a new group of lines begin or end inside another?"""
    return frame.element is not None and frame.lines is not frame and is_line_group(frame.element, by_name=True)


def _language_attribute(element: Element) -> str:
    return element.get("{http://www.w3.org/XML/1998/namespace}lang") or element.get("xml:lang") or element.get("lang") or ""
