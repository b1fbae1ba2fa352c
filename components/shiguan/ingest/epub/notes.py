"""Finds the notes of a book: the links that lead to them, their marks, and the place where each is inserted."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shiguan.ingest.epub.package import Resolve
from shiguan.ingest.epub.pictures import formula_text
from shiguan.ingest.epub.trees import BLOCK_ELEMENTS, Element, element_text, tokens, walk
from shiguan.resources import read_patterns

_NOTES = frozenset("footnote endnote rearnote note doc-footnote doc-endnote".split())
NOTE_LISTS = frozenset("footnotes endnotes rearnotes notes doc-endnotes doc-footnotes".split())
_MARK, _BACK, _NOTE_CLASS, _LEADING = read_patterns(Path(__file__).with_name("notes.yaml")).values()
_BACK_ROLES = frozenset("backlink doc-backlink".split())
_MARK_ROLES = frozenset("noteref doc-noteref".split())
_AROUND_MARK = "[]()（）【】〔〕 ."
_INLINE_WRAPPERS = frozenset("sup span small b i em".split())
_SHORT = 12
_PLAIN_NOTES = frozenset("p li dd div aside td tr blockquote section article text note".split())
_TOO_BIG = frozenset("html body main nav table ol ul dl".split())
_HEADINGS = frozenset("h1 h2 h3 h4 h5 h6".split())
_MAX_PLAIN_NOTE = 8000
_MAX_NESTING = 3
# More links than this into one block come from a table of contents or the like, not from notes.
_MAX_BACK_LINKS = 100


@dataclass(eq=False)
class BookFile:
    """A file of a book, and its place in the reading order."""

    href: str
    spine: int
    root: Element
    linear: bool = True
    # The file in the book's CFIs; empty if it was repaired, because its tree is then not that of the file.
    cfi: str = ""

    def anchor(self, path: str, offset: int = 0) -> dict[str, Any]:
        """Write a place in it: an element, and how far into the element's text."""
        return {"href": self.href, "spine": self.spine, "path": path, "offset": offset}


def is_mark(link: Element) -> bool:
    """Return whether a link's text is a note mark and not part of the sentence: a number, a letter, a star, 注1."""
    text = element_text(link)
    return not text or bool(_MARK.fullmatch(text))


def says_mark(link: Element) -> bool:
    """Return whether a link declares itself a note mark."""
    return bool(tokens(link, "type", "role") & _MARK_ROLES)


def looks_like_back(link: Element) -> bool:
    """Return whether a link in a note may be its way back: an arrow, a mark, a line number."""
    return says_back(link) or (len(element_text(link)) <= _SHORT and not says_mark(link))


def says_back(link: Element) -> bool:
    """Return whether a link in a note is the way back beyond doubt, wherever it leads."""
    return bool(tokens(link, "type", "role") & _BACK_ROLES) or bool(_BACK.fullmatch(element_text(link)))


def in_note_list(element: Element) -> bool:
    """Return whether an element is among notes, by role or class."""
    return any(
        tokens(node, "type", "role") & (NOTE_LISTS | _NOTES)
        or any(_NOTE_CLASS.search(word) for word in tokens(node, "class"))
        for node in (element, *element.iterancestors())
        if node.tag != "a"
    )


def block_of(element: Element) -> Element:
    """Find the block that contains an element."""
    while str(element.tag) not in BLOCK_ELEMENTS:
        parent = element.getparent()
        if parent is None:
            break
        element = parent
    return element


def contains(outer: Element, inner: Element) -> bool:
    """Return whether an element is the other one or contains it."""
    return outer is inner or any(node is outer for node in inner.iterancestors())


def with_wrapper(link: Element) -> Element:
    """Find what to leave out together with a mark: `<sup>[<a>1</a>]</sup>` goes as a whole."""
    text = element_text(link).strip(_AROUND_MARK)
    parent = link.getparent()
    while parent is not None and str(parent.tag) in _INLINE_WRAPPERS:
        if element_text(parent).strip(_AROUND_MARK) != text:
            break
        link, parent = parent, parent.getparent()
    return link


@dataclass(eq=False)
class Note:
    """A note: its element and place, whether the text refers to it, and whether it has been inserted."""

    element: Element
    file: BookFile
    path: str
    cfi: str
    typed: bool
    wanted: bool = False
    placed: bool = False
    left_out: bool = False
    page: str = ""

    @property
    def anchor(self) -> dict[str, Any]:
        """The place of the note itself in the book."""
        return self.file.anchor(self.path)


class NoteIndex:
    """
    The notes of a book (`notes`, by element) and the marks that refer to them (`marks`, by element).

    A link is a note mark if it is declared as one (`epub:type="noteref"`, `role="doc-noteref"`), if it leads to an
    element that is declared as a note, or if its text is a mark (a number, a star) and the note links back to it or is
    in a list of notes.
    """

    def __init__(self, files: Iterable[BookFile], resolve: Resolve) -> None:
        self.notes: dict[Element, Note] = {}
        self.marks: dict[Element, Note] = {}
        self.dangling = 0
        # Every element in the order of the book: its file, its path and CFI in it, and its number.
        self._places: dict[Element, tuple[BookFile, str, str, int]] = {}
        # The links with a fragment, and the elements that they lead to.
        self._links: dict[Element, Element | None] = {}
        self._walk(files, resolve)
        self._back_links: set[Element] = set()
        self._plain: dict[Element, tuple[bool, bool]] = {}
        self._into_block: dict[Element, list[Element]] = {}
        for link, target in self._links.items():
            if target is not None:
                self._into_block.setdefault(block_of(target), []).append(link)
        for link, target in self._links.items():
            self._judge(link, target)
        for mark, note in self.marks.items():
            # A mark inside a note is resolved when that note is written.
            note.wanted = note.wanted or not any(node in self.notes for node in mark.iterancestors())

    def text_of(self, note: Note, nesting: int = 0) -> str:
        """Return a note's text in one line, without its number and its link back; marks in it are resolved 3 deep."""
        note.placed = True

        def instead(node: Element) -> str | None:
            if node.tag == "math":
                return formula_text(node)
            if node in self._back_links or (node.tag == "a" and says_back(node)):
                return ""
            if node not in self.marks or not is_mark(node):
                return None
            note = self.marks[node]
            return "" if note.placed or nesting >= _MAX_NESTING else f" ({self.text_of(note, nesting + 1)})"

        text = element_text(note.element, instead)
        return _LEADING.sub("", text, count=1).strip() or text

    def _walk(self, files: Iterable[BookFile], resolve: Resolve) -> None:
        ids: dict[tuple[str, str], Element] = {}
        for file in files:
            for event, element, path, cfi in walk(file.root, file.cfi):
                if event == "end":
                    continue
                self._places[element] = file, path, cfi, len(self._places)
                for key in ("id", "name"):
                    if element_id := element.get(key, ""):
                        # If an id occurs twice, reading systems go to the first.
                        ids.setdefault((file.href, element_id), element)
                if element.tag == "a" and "#" in element.get("href", ""):
                    self._links[element] = None
                if element.tag not in ("a", "span", "sup") and tokens(element, "type", "role") & _NOTES:
                    self._add(element, typed=True)
        for link in self._links:
            place = resolve(self._places[link][0].href, link.get("href", ""))
            self._links[link] = ids.get(place) if place is not None else None

    def _add(self, element: Element, *, typed: bool) -> Note:
        if element not in self.notes:
            file, path, cfi, _ = self._places[element]
            self.notes[element] = Note(element, file, path, cfi, typed)
        return self.notes[element]

    def _judge(self, link: Element, target: Element | None) -> None:
        says_so = says_mark(link)
        if target is None:
            self.dangling += says_so
            return
        if says_back(link) or (not says_so and not is_mark(link)):
            return
        element = self._note_element(target)
        if element is None or contains(element, link):
            return
        links_here = self._into_block.get(block_of(link), ())[:_MAX_BACK_LINKS]
        backs = [back for back in links_here if contains(element, back) and looks_like_back(back)]
        if not says_so and element not in self.notes and not self._is_plain_note(link, element, bool(backs)):
            return
        note = self._add(element, typed=False)
        self._back_links.update(map(with_wrapper, backs))
        self.marks[with_wrapper(link) if is_mark(link) else link] = note

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

    def _is_plain_note(self, link: Element, element: Element, leads_back: bool) -> bool:
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
            return not in_note_list(link)
        return fits and leads_back and self._places[element][3] > self._places[link][3]
