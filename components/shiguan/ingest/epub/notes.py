"""Footnotes and endnotes of a book: which link is a note mark, which element is its note."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from lxml import etree

from shiguan.ingest.epub.links import (
    Link,
    NoteFile,
    Resolve,
    block_of,
    contains,
    in_note_list,
    is_mark,
    looks_like_back,
    says_back,
    says_mark,
    scan_links,
    with_wrapper,
)
from shiguan.ingest.epub.text import BLOCK_ELEMENTS, UNCOUNTED_ELEMENTS, element_text, visible
from shiguan.ingest.epub.trees import Element

_LEADING_MARK = re.compile(
    r"^\s*[\[(（【〔]?\s*(?:\d{1,4}|[*†‡§¶※＊]{1,4}|[\u2460-\u2473])\s*[\])）】〕.:：、]?\s+"
    r"|^\s*[\[(（【〔]\s*\d{0,4}\s*[\])）】〕]\s*|^\s*[.:：、．)\]]\s+"
)
_PLAIN_NOTES = frozenset("p li dd div aside td tr blockquote section article text note".split())
_TOO_BIG = frozenset("html body main nav table ol ul dl".split())
_HEADINGS = frozenset("h1 h2 h3 h4 h5 h6".split())
_MAX_PLAIN_NOTE = 8000
_MAX_NESTING = 3
# More links than this into one block are a table of contents and its like, not notes that lead back.
_MAX_BACK_LINKS = 100


@dataclass(eq=False)
class Note:
    """A note: where it stands, whether the text refers to it, and whether it has found its place."""

    element: Element
    href: str
    spine: int | None
    path: str
    typed: bool
    wanted: bool = False
    placed: bool = False

    @property
    def anchor(self) -> dict[str, object]:
        """Where the note itself stands in the book."""
        return {"href": self.href, "spine": self.spine, "path": self.path, "offset": 0}


class NoteIndex:
    """
    The notes of a book (`notes`, by element) and the marks that refer to them (`marks`, by element).

    A link is a note mark if it says so (`epub:type="noteref"`, `role="doc-noteref"`), if it leads to an element that
    says it is a note, or if its text is a mark (a number, a star) and the note links back to it or stands in a list
    of notes.
    """

    def __init__(self, files: Iterable[NoteFile], resolve: Resolve) -> None:
        """Find the notes."""
        self.notes: dict[Element, Note] = {}
        self.marks: dict[Element, Note] = {}
        self.dangling = 0
        self._scan = scan_links(files, resolve)
        self._back_links: set[Element] = set()
        self._plain: dict[Element, tuple[bool, bool]] = {}
        for element in self._scan.typed_notes:
            self._add(element, typed=True)
        self._into_block: dict[Element, list[Link]] = {}
        for link in self._scan.links:
            if link.target is not None:
                self._into_block.setdefault(block_of(link.target), []).append(link)
        for link in self._scan.links:
            self._judge(link)
        for mark, note in self.marks.items():
            # A mark inside a note is followed from that note.
            note.wanted = note.wanted or not self._inside_note(mark)

    def is_shown(self, mark: Element) -> bool:
        """Tell whether a mark's own text is part of the sentence."""
        return not is_mark(element_text(mark))

    def text_of(self, note: Note, nesting: int = 0) -> str:
        """Give a note's text in one line, without its number and its link back; marks in it are followed three deep."""
        note.placed = True
        pieces: list[str] = []
        skipping: Element | None = None
        for event, node in etree.iterwalk(note.element, events=("start", "end")):
            if skipping is not None:
                if event == "end" and node is skipping:
                    skipping = None
                    pieces.append("" if node is note.element else node.tail or "")
                continue
            name = str(node.tag)
            if name in BLOCK_ELEMENTS:
                pieces.append(" ")
            if event == "end":
                pieces.append("" if node is note.element else node.tail or "")
            elif name in UNCOUNTED_ELEMENTS or node in self._back_links or (name == "a" and says_back(node)):
                skipping = node
            elif node in self.marks and not self.is_shown(node):
                pieces.append(self._inner(self.marks[node], nesting))
                skipping = node
            else:
                pieces.append(node.text or "")
        text = " ".join(visible("".join(pieces)).split())
        return _LEADING_MARK.sub("", text, count=1).strip() or text

    def _inner(self, note: Note, nesting: int) -> str:
        if note.placed or nesting >= _MAX_NESTING:
            return ""
        return f" ({self.text_of(note, nesting + 1)})"

    def _add(self, element: Element, *, typed: bool) -> Note:
        if element not in self.notes:
            file = self._scan.files[element]
            self.notes[element] = Note(element, file.href, file.spine, self._scan.paths[element], typed)
        return self.notes[element]

    def _judge(self, link: Link) -> None:
        says_so = says_mark(link.element)
        if link.target is None:
            self.dangling += says_so
            return
        if says_back(link.element) or (not says_so and not is_mark(element_text(link.element))):
            return
        element = self._note_element(link.target)
        if element is None or contains(element, link.element):
            return
        backs = [
            back
            for back in self._into_block.get(block_of(link.element), ())[:_MAX_BACK_LINKS]
            if contains(element, back.element) and looks_like_back(back.element)
        ]
        if not says_so and element not in self.notes and not self._is_plain_note(link, element, bool(backs)):
            return
        note = self._add(element, typed=False)
        self._back_links.update(with_wrapper(back.element) for back in backs)
        self.marks[with_wrapper(link.element) if not self.is_shown(link.element) else link.element] = note

    def _note_element(self, target: Element) -> Element | None:
        """Find the whole note around, at or after the element that a link leads to."""
        for element in (target, *target.iterancestors()):
            if element in self.notes and self.notes[element].typed:
                return element
        holder = block_of(target)
        if holder.tag == "dt":
            following = holder.getnext()
            return following if following is not None and following.tag == "dd" else None
        if holder is not target and holder.tag not in ("p", "li", "dd", "td"):
            # An empty anchor right before the note.
            following = target.getnext()
            if following is not None and following.tag in ("p", "div", "li") and not element_text(target):
                holder = following
        parent = holder.getparent()
        alone = parent is not None and parent[0] is holder and sum(1 for child in parent if child.get("id")) <= 1
        if parent is not None and alone and holder.tag == "p" and parent.tag in ("li", "dd", "aside"):
            holder = parent
        return None if holder.tag in _TOO_BIG or holder.tag in _HEADINGS else holder

    def _is_plain_note(self, link: Link, element: Element, leads_back: bool) -> bool:
        if element not in self._plain:
            fits = (
                element.tag in _PLAIN_NOTES
                and not any(node.tag in _HEADINGS for node in element.iter())
                and len(element_text(element)) <= _MAX_PLAIN_NOTE
            )
            self._plain[element] = fits, fits and in_note_list(element)
        fits, listed = self._plain[element]
        if listed:
            # Two links that lead to each other: the note is the one in the list.
            return not in_note_list(link.element)
        return fits and leads_back and self._scan.orders[element] > link.order

    def _inside_note(self, element: Element) -> bool:
        return any(node in self.notes for node in element.iterancestors())
