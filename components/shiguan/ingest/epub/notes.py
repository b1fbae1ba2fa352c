"""Finds the notes of a book: the links that lead to them, their marks, and the place where each is inserted."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lxml import etree

from shiguan.ingest.epub.package import Resolve
from shiguan.ingest.epub.pictures import formula_text, is_placeholder
from shiguan.ingest.epub.trees import (
    BLOCK_ELEMENTS,
    HEADINGS,
    Element,
    attributes,
    element_text,
    short_text,
    tokens,
    visible,
    walk,
)
from shiguan.resources import read_patterns

_NOTES = frozenset("footnote endnote rearnote note doc-footnote doc-endnote".split())
NOTE_LISTS = frozenset("footnotes endnotes rearnotes notes doc-endnotes doc-footnotes".split())
_MARK, _BACK, _NOTE_CLASS, _LEADING, _TITLE, RAISED, _MARK_CLASS = read_patterns(
    Path(__file__).with_name("notes.yaml")
).values()
_BACK_ROLES, _MARK_ROLES = frozenset(("backlink", "doc-backlink")), frozenset(("noteref", "doc-noteref"))
_AROUND_MARK = "[]()（）【】〔〕 ."
_INLINE_WRAPPERS = frozenset("sup span small b i em".split())
_PLAIN_NOTES = frozenset("p li dd div aside td tr blockquote section article text note".split())
_TOO_BIG = frozenset("html body main nav table ol ul dl".split())
_SHORT, _MAX_PLAIN_NOTE, _MAX_NESTING = 12, 8000, 3
_MAX_BACK_LINKS = 100  # into one block; more come from a table of contents or the like
_PACKED = frozenset("p div li td dd blockquote section aside article pre".split())  # may hold several notes
_WRAPPERS = frozenset("span small font em i div".split())
# Attributes in which programs keep the text of a note; a title or an alternative text may say other things.
_TEXT_ATTRIBUTE = re.compile(r"data-note|(?:data-)?(?:\w+-)*(?:foot|footer|end)-?note(?:-(?:text|content))?")
_OWN = re.compile(r"data-|aria-label$")
_INLINE = frozenset("a span sup i abbr".split())
_INLINE_NOTE = re.compile(
    r"(?:foot|end|side|margin)[-_]?note(?:[-_]?(?:text|body|content))?|ltx_note_outer|[\w-]+-footnote_+note"
)
_OWN_MARKS = frozenset(("ltx_note_mark", "ltx_tag"))  # within a note that stands in the sentence
_LEAST_STATED = 8  # characters; those of Han count thrice
_TITLES = re.compile(r"title|data-(?:text|tooltip|original-title|content|tip|bs-content|bs-title|tippy-content)")
_MARKUP, _NOWHERE = re.compile(r"<[^<>]*>"), re.compile(r"\s*(?:#|javascript:.*)?\s*", re.IGNORECASE)
_FIRST_MARK = re.compile(r"\W*(\d{1,4}(?!\d)|[a-z](?![^\W\d_]))")


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
    text = short_text(link)
    return not text or bool(_MARK.fullmatch(text))


def says_mark(link: Element) -> bool:
    """Return whether a link declares itself a note mark."""
    return bool(tokens(link, "type", "role") & _MARK_ROLES)


def _says_back(link: Element) -> bool:
    """Return whether a link in a note is the way back beyond doubt, wherever it leads."""
    return bool(tokens(link, "type", "role") & _BACK_ROLES) or bool(_BACK.fullmatch(short_text(link)))


def is_raised(element: Element) -> bool:
    """Return whether an element is raised text, by its name, class or style."""
    if element.tag != "span":
        return element.tag == "sup"
    words = (*tokens(element, "class"), element.get("style", ""))
    return any(RAISED.search(word) for word in words)


def is_numerator(element: Element) -> bool:
    """Return whether what follows an element makes it the upper number of a fraction."""
    tail, below = (element.tail or "").strip(), element.getnext()
    return tail[:1] == "⁄" or (tail == "/" and below is not None and below.tag == "sub")


def stated_note(element: Element) -> str:
    """Return the note that an element has in an attribute, if it is the mark of one."""
    if len(element.attrib) == 0:
        return ""
    given = attributes(element)
    texts = [given[name] for name in given if _TEXT_ATTRIBUTE.fullmatch(name)]
    words = tokens(element, "class")
    if element.tag == "img" and (parent := element.getparent()) is not None and parent.tag in _INLINE:
        words |= tokens(parent, "class")
    says_note = any(map(_MARK_CLASS.search, words))
    # A title says where a link leads, a description what a picture shows, unless the class is that of notes.
    if not texts and element.tag == "img" and says_note:
        texts = [given[name] for name in ("alt", "title") if name in given]
    elif not texts and _is_inline_note(element, given):
        texts = [element_text(element, lambda node: "" if tokens(node, "class") & _OWN_MARKS else None)]
        texts += [given[name] for name in given if _TITLES.fullmatch(name)]
    elif not texts and element.tag in _INLINE and is_mark(element):
        leads = not says_note and not _NOWHERE.fullmatch(given.get("href", ""))
        given = {} if leads or any("page" in word for word in words) else given
        texts = [given[name] for name in given if _TITLES.fullmatch(name) or (says_note and _OWN.match(name))]
    texts.sort(key=len, reverse=True)
    text = " ".join(visible(_MARKUP.sub(" ", str(texts[0]))).split()) if texts else ""
    wide = sum(1 for char in text if ord(char) > 0x2E80)
    is_text = len(text) + 2 * wide >= _LEAST_STATED and (" " in text or wide)
    return text if is_text and not is_placeholder(text) else ""


def _is_inline_note(element: Element, given: dict[str, str]) -> bool:
    """Return whether an element within a sentence holds a note itself and says so."""
    words = frozenset(f"{given.get('type', '')} {given.get('role', '')}".lower().split())
    if not (words & _NOTES or any(map(_INLINE_NOTE.fullmatch, given.get("class", "").lower().split()))):
        return False
    parent = element.getparent()
    if parent is None or element.tag not in _WRAPPERS or element.tag in BLOCK_ELEMENTS or is_mark(element):
        return False
    # Not by the whole text around it, which would be read again for every note in it.
    return element.getprevious() is not None or bool(f"{parent.text or ''}{element.tail or ''}".strip())


def _block_of(element: Element) -> Element:
    """Find the block that contains an element."""
    around = (element, *element.iterancestors())
    return next((each for each in around if each.tag in BLOCK_ELEMENTS), around[-1])


def _with_wrapper(link: Element) -> Element:
    """Find what to leave out together with a mark: `<sup>[<a>1</a>]</sup>` goes as a whole."""
    text = element_text(link).strip(_AROUND_MARK)
    parent = link.getparent()
    while parent is not None and str(parent.tag) in _INLINE_WRAPPERS:
        if short_text(parent).strip(_AROUND_MARK) != text:
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
    mark: str = ""  # the words that refer to it first
    # Of a note that is in an attribute of its mark, or of the word that it is about; else, if `typed`, its own text.
    stated: str = ""

    @property
    def anchor(self) -> dict[str, Any]:
        """The place of the note itself in the book."""
        return self.file.anchor(self.path)


class NoteIndex:
    """
    The notes of a book (`notes`, by element) and the marks that refer to them (`marks`, by element).

    A link is a note mark if it is declared as one (`epub:type="noteref"`, `role="doc-noteref"`), if it leads to an
    element that is declared as a note, or if its text is a mark (a number, a star) and the note links back to it, is in
    a list or chapter of notes, or begins with the same number. Some marks have the note in an attribute.
    """

    def __init__(self, files: Sequence[BookFile], resolve: Resolve) -> None:
        self.notes: dict[Element, Note] = {}
        self.marks: dict[Element, Note] = {}
        self.dangling = 0
        # Every element in the order of the book: its file, its path and CFI in it, and its number.
        self._places: dict[Element, tuple[BookFile, str, str, int]] = {}
        self._in_notes: set[Element] = set()
        self._stated: dict[Element, str] = {}
        # The links with a fragment, and the elements that they lead to.
        self._links: dict[Element, Element | None] = {}
        self._into_block: dict[Element, list[Element]] = {}  # of each block the links that lead into it
        self._back_links: set[Element] = set()
        self._note_at = cache(self._note_element)
        self._plain: dict[Element, tuple[bool, bool]] = {}
        self._walk(files, resolve)
        if self._unpack():
            self._walk(files, resolve)
        for link, target in self._links.items():
            self._judge(link, target)
        for element, text in self._stated.items():
            if not any(node in self.marks for node in (element, *element.iterancestors())):
                file, path, cfi, _ = self._places[element]
                self.marks[element] = note = Note(element, file, path, cfi, text in element_text(element), stated=text)
                note.mark = "" if note.typed else short_text(element)
        for mark, note in self.marks.items():
            # A mark inside a note is resolved when that note is written.
            note.wanted = note.wanted or not any(node in self.notes for node in mark.iterancestors())

    def text_of(self, note: Note, nesting: int = 0) -> str:
        """Return a note's text in one line, without its number and its link back; marks in it are resolved 3 deep."""
        note.placed = True

        def instead(node: Element) -> str | None:
            if node.tag == "math":
                return formula_text(node)
            if node.tag == "del" or node in self._back_links or (node.tag == "a" and _says_back(node)):
                return ""
            if node not in self.marks or not is_mark(node):
                return None
            note = self.marks[node]
            return "" if note.placed or nesting >= _MAX_NESTING else f" ({self.text_of(note, nesting + 1)})"

        text = note.stated or element_text(note.element, instead)
        found = _LEADING.match(text)
        number, mark = (re.sub(r"\D", "", each) for each in (found[0] if found else "", note.mark))
        is_first_word = number and number != mark and (mark or (found and found[0].strip() == number))
        return text if is_first_word or not found else text[found.end() :].strip() or text

    def _walk(self, files: Sequence[BookFile], resolve: Resolve) -> None:
        self._places.clear()
        self._into_block.clear()
        ids: dict[tuple[str, str], Element] = {}
        for file in files:
            # The rank of the heading "Notes" that the elements are below.
            rank = 0
            inside: Element | None = None  # a note that stands in the text, which has the text of those in it
            for event, element, path, cfi in walk(file.root, file.cfi):
                if event == "end":
                    inside = None if element is inside else inside
                    continue
                self._places[element] = file, path, cfi, len(self._places)
                if element.tag in HEADINGS and int(str(element.tag)[1]) <= (rank or 6):
                    title = short_text(element).casefold().strip(" .:：·[]【】")
                    rank = int(str(element.tag)[1]) if _TITLE.fullmatch(title) else 0
                if rank:
                    self._in_notes.add(element)
                if text := stated_note(element) if inside is None else "":
                    self._stated[element], inside = text, element
                for element_id in filter(None, map(element.get, ("id", "name"))):
                    # If an id occurs twice, reading systems go to the first.
                    ids.setdefault((file.href, element_id), element)
                if element.tag == "a" and "#" in element.get("href", ""):
                    self._links[element] = None
                if not text and element.tag not in ("a", "span", "sup") and tokens(element, "type", "role") & _NOTES:
                    self._add(element, typed=True)
        for link in self._links:
            place = resolve(self._places[link][0].href, link.get("href", ""))
            target = self._links[link] = ids.get(place) if place is not None else None
            if target is not None:
                self._into_block.setdefault(_block_of(target), []).append(link)

    def _unpack(self) -> bool:
        """Put each of several notes of one paragraph into an element of its own; return whether there were any."""
        found = False
        for block, links in self._into_block.items():
            if block.tag not in _PACKED or len(links) < 2:
                continue
            before = (link for link in links if self._places[link][3] < self._places[block][3] and is_mark(link))
            targets = {target for link in before if (target := self._links[link]) is not None and target is not block}
            inner = block
            while len(inner) == 1 and inner[0].tag in _WRAPPERS and not (inner.text or inner[0].tail or "").strip():
                inner = inner[0]
            # The children at which the notes begin.
            begins = {
                node for target in targets for node in (target, *target.iterancestors()) if node.getparent() is inner
            }
            children = list(inner)
            first = next((at for at, child in enumerate(children) if child in begins), 0)
            led = {child.tag for child in children[:first]} <= HEADINGS and len((inner.text or "").strip()) <= _SHORT
            # The contents of a book lead to parts of it.
            parts = any(child.tag in BLOCK_ELEMENTS and child.tag != "br" for child in children[first:])
            if len(begins) < 2 or not led or parts:
                continue
            found = True
            self._places[block][0].cfi = ""  # its tree is no longer that of the file
            note = inner
            for child in children[first:]:
                if child in begins:
                    note = etree.SubElement(inner, "note")
                note.append(child)
        return found

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
        # A number that leads on is the mark of a note, even if it says that it leads back.
        forward = is_mark(link) and self._places[link][3] < self._places[target][3]
        if (_says_back(link) and not forward) or (not says_so and not is_mark(link)):
            return
        element = self._note_at(target)
        if element is None or element in (link, *link.iterancestors()):
            return
        backs = [  # an arrow, a mark, the number of a line
            back
            for back in self._into_block.get(_block_of(link), ())[:_MAX_BACK_LINKS]
            if element in (back, *back.iterancestors())
            and (_says_back(back) or (len(short_text(back)) <= _SHORT and not says_mark(back)))
        ]
        if not says_so and element not in self.notes and not self._is_plain_note(link, element, bool(backs)):
            return
        note = self._add(element, typed=False)
        note.mark = note.mark or short_text(link)
        term = element.getprevious() if element.tag == "dd" else None
        if term is not None and term.tag == "dt" and not any(map(str.isalpha, short_text(term))):
            self._add(term, typed=False).placed = True  # its number
        whole = element_text(element)  # is the link in some books
        self._back_links.update(_with_wrapper(back) for back in backs if is_mark(back) or element_text(back) != whole)
        letter, own = short_text(link), next(element.iter("sup"), link)
        self._back_links.update([own] if own is not link and letter.isalpha() and short_text(own) == letter else [])
        self.marks[_with_wrapper(link) if is_mark(link) else link] = note

    def _note_element(self, target: Element) -> Element | None:
        """Find the whole note around, at or after the element that a link leads to."""
        for element in (target, *target.iterancestors()):
            if element in self.notes and self.notes[element].typed:
                return element
        holder = _block_of(target)
        holder = next(holder.iter("td"), holder) if holder.tag == "table" else holder
        if holder.tag == "dt":
            following = holder.getnext()
            return following if following is not None and following.tag == "dd" else None
        if holder.tag == "td" and holder.getnext() is not None and _MARK.fullmatch(element_text(holder)):
            return holder.getparent()
        if holder is not target and holder.tag not in ("p", "li", "dd", "td"):
            # An empty anchor right before the note.
            following = target.getnext()
            if following is not None and following.tag in ("p", "div", "li") and not element_text(target):
                holder = following
        parent = holder.getparent()
        alone = parent is not None and parent[0] is holder and sum(1 for child in parent if child.get("id")) <= 1
        if parent is not None and alone and holder.tag == "p" and parent.tag in ("li", "dd", "aside"):
            holder = parent
        return None if holder.tag in _TOO_BIG or holder.tag in HEADINGS else holder

    def _is_plain_note(self, link: Element, element: Element, leads_back: bool) -> bool:
        if element not in self._plain:
            fits = (
                element.tag in _PLAIN_NOTES
                and not any(node.tag in HEADINGS for node in element.iter())
                and len(element_text(element)) <= _MAX_PLAIN_NOTE
            )
            self._plain[element] = fits, fits and self._is_listed(element)
        fits, listed = self._plain[element]
        if listed:
            # Two links that lead to each other: the note is the one in the list.
            return not self._is_listed(link)
        if not fits or self._places[element][3] < self._places[link][3]:
            return False
        return leads_back or self._has_number(link, element)

    def _is_listed(self, element: Element) -> bool:
        """Return whether an element is among notes, by the heading above it, a role or a class."""
        return element in self._in_notes or any(
            tokens(node, "type", "role") & (NOTE_LISTS | _NOTES)
            or any(_NOTE_CLASS.search(word) for word in tokens(node, "class"))
            for node in (element, *element.iterancestors())
            if node.tag not in _INLINE
        )

    def _has_number(self, link: Element, element: Element) -> bool:
        """Return whether a raised number or letter leads to a note that begins with it, in another block."""
        raised = any(map(is_raised, link.iter())) or any(map(is_raised, link.iterancestors("sup", "span")))
        number, own = _FIRST_MARK.match(short_text(link)), _FIRST_MARK.match(short_text(element))
        return raised and number is not None and own is not None and number[1] == own[1]
