"""What holds inside an element of a chapter: shown or not, of which kind, in which language, in lines or not."""

import re
from dataclasses import dataclass, replace

from shiguan.ingest.epub.notes import NoteIndex
from shiguan.ingest.epub.package import primary_language
from shiguan.ingest.epub.roles import NOTE_LISTS, Roles, is_data_table, is_line_group, is_page_mark
from shiguan.ingest.epub.text import BLOCK_ELEMENTS, UNCOUNTED_ELEMENTS
from shiguan.ingest.epub.trees import Element, tokens

SECTIONS = frozenset(
    "section article aside frontmatter bodymatter rearmatter level level1 level2 level3 level4".split()
)
# These end a run of lines; other blocks inside a list, a stanza or a table only begin a new line.
BREAKS_LINES = frozenset("blockquote table figure figcaption caption pre section article aside body".split())
_LISTS = frozenset("ul ol dl menu dir list".split())
# A heading inside these belongs to the quotation or the table, not to the book.
_NO_HEADINGS = frozenset("blockquote figure table".split())
_HEADING = re.compile(r"h[1-6]$")


@dataclass(eq=False)
class Frame:
    """What holds inside one element, inherited from its parent and changed by itself."""

    element: Element | None = None
    path: str = ""
    start: int = 0
    host: "Frame | None" = None
    lines: "Frame | None" = None
    kind: str = "text"
    language: str = ""
    depth: int = 0
    table: bool = False
    heading: bool = False
    no_headings: bool = False
    preformatted: bool = False
    captioned: bool = False
    left_out: bool = False
    muted: bool = False
    uncounted: bool = False
    is_block: bool = False

    @property
    def shown(self) -> bool:
        """Whether its text goes into blocks."""
        return not (self.left_out or self.muted or self.uncounted)


class FrameRules:
    """Opens frames by what the element is and what the book says about it."""

    def __init__(self, href: str, notes: NoteIndex, roles: Roles) -> None:
        """Prepare for a file."""
        self._href = href
        self._notes = notes
        self._roles = roles

    def open(self, element: Element, path: str, parent: Frame) -> Frame:
        """Open the frame of an element, as far as it does not depend on being a block."""
        name = str(element.tag)
        frame = replace(parent, element=element, path=path, is_block=name in BLOCK_ELEMENTS)
        if frame.uncounted or name in UNCOUNTED_ELEMENTS:
            frame.uncounted, frame.is_block = True, False
            return frame
        frame.language = primary_language(_language_attribute(element)) or frame.language
        self._judge(element, name, frame)
        return frame

    def enter_block(self, element: Element, frame: Frame, parent: Frame) -> None:
        """Complete the frame of a block element."""
        name = str(element.tag)
        types = tokens(element, "type", "role")
        if types & NOTE_LISTS:
            frame.kind = "footnote"
        frame.depth += name in SECTIONS
        frame.no_headings = frame.no_headings or name in _NO_HEADINGS
        if name == "blockquote" or "epigraph" in types:
            frame.kind = "quote" if frame.kind == "text" else frame.kind
            frame.lines = frame if parent.lines is not None or is_line_group(element) else None
            return
        if name in BREAKS_LINES:
            frame.lines = None
        if name in ("figcaption", "caption") or "caption" in tokens(element, "class"):
            frame.kind, frame.table, frame.lines = "caption", False, None
        elif name == "table":
            self._enter_table(element, frame)
        elif name == "pre":
            frame.preformatted = True
        elif _HEADING.match(name):
            frame.heading = frame.heading or (not frame.no_headings and frame.lines is None and frame.shown)
        elif frame.lines is None and (name in _LISTS or is_line_group(element)):
            frame.lines = frame
        if name == "figure":
            frame.captioned = any(True for _ in element.iter("figcaption"))

    def _enter_table(self, element: Element, frame: Frame) -> None:
        frame.table = is_data_table(element)
        if frame.table:
            frame.kind = "table" if frame.kind != "footnote" else "footnote"
            frame.lines = frame

    def _judge(self, element: Element, name: str, frame: Frame) -> None:
        note = self._notes.notes.get(element)
        if note is not None and not frame.muted:
            if note.placed or note.wanted:
                frame.muted = True
            else:
                note.placed = True
                frame.kind, frame.left_out = "footnote", frame.left_out and not note.typed
                frame.lines, frame.no_headings = None, True
        elif element in self._notes.marks:
            frame.muted = frame.muted or not self._notes.is_shown(element)
        elif is_page_mark(element, name) or element.get("hidden") is not None:
            frame.muted = True
        elif name == "case":
            # Of an `epub:switch` only the default is for readers that know no other vocabulary.
            frame.muted = True
        elif self._roles.keeps(element):
            frame.left_out = False
        elif self._roles.leaves_out(element, self._href):
            frame.left_out = True


def _language_attribute(element: Element) -> str:
    xml_lang = element.get("{http://www.w3.org/XML/1998/namespace}lang")
    return xml_lang or element.get("xml:lang") or element.get("lang") or ""
