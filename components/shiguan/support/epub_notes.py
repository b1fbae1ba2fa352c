"""Footnotes and endnotes of a book: which link is a note mark, which element is its note."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from lxml import etree

from shiguan.support.epub_text import UNCOUNTED_ELEMENTS, BLOCK_ELEMENTS, element_text, visible, walk
from shiguan.support.xml import Element, tokens

NOTE_TYPES = frozenset("footnote endnote rearnote note doc-footnote doc-endnote".split())
NOTE_LIST_TYPES = frozenset("footnotes endnotes rearnotes notes doc-endnotes doc-footnotes".split())
_MARK_TYPES = frozenset("noteref doc-noteref".split())
_BACK_TYPES = frozenset("backlink doc-backlink".split())
_NOTE_CLASS = re.compile(r"(?:foot|end|rear)[-_]?notes?|^notes?(?:[-_]?(?:list|body|text|content|p|para))?$|^fn\d*$|^fnote|duokan-footnote")
_MARK = re.compile(
    r"[\[(（【〔〈{]*\s*(?:\d{1,4}|[*†‡§¶#※＊]{1,4}|[a-zA-Z]|[ivxlcIVXLC]{1,6}|[\u2460-\u2473\u24ea-\u24ff]"
    r"|[\u2070\u00b9\u00b2\u00b3\u2074-\u2079]{1,4}|(?:注|註|注释|註釋|note|n\.?)\s*[\d一二三四五六七八九十]{0,4})\s*[\])）】〕〉}.。]*",
    re.IGNORECASE,
)
_BACK_ARROW = re.compile(r"[\s\[(]*(?:[↑↩↵⏎←⇑^▲\ufe0e\ufe0f]+|back|return|返回|回到正文)[\s\])]*", re.IGNORECASE)
_LEADING_MARK = re.compile(r"^\s*[\[(（【〔]?\s*(?:\d{1,4}|[*†‡§¶※＊]{1,4}|[\u2460-\u2473])\s*[\])）】〕.:：、]?\s+|^\s*[\[(（【〔]\s*[\])）】〕]\s*")
_NOTE_HOLDERS = frozenset("p li dd div aside td tr blockquote section article text note".split())
_TOO_BIG = frozenset("html body main nav table ol ul dl".split())
_HEADINGS = frozenset("h1 h2 h3 h4 h5 h6".split())
_MAX_PLAIN_NOTE = 8000
_MAX_NESTING = 3

Resolve = Callable[[str, str], tuple[str, str] | None]


@dataclass(eq=False)
class Note:
    """A note: where it stands, and whether it has found its place in the text."""

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


@dataclass(eq=False)
class NoteFile:
    """A file to look for notes in: `spine` is None for one outside the reading order, `left_out` if not shown."""

    href: str
    spine: int | None
    root: Element
    left_out: bool = False


@dataclass
class _Link:
    element: Element
    file: NoteFile
    order: int
    target: Element | None = None
    target_file: NoteFile | None = None


@dataclass
class _Scan:
    paths: dict[Element, str] = field(default_factory=dict)
    orders: dict[Element, int] = field(default_factory=dict)
    ids: dict[tuple[str, str], Element] = field(default_factory=dict)
    files: dict[Element, NoteFile] = field(default_factory=dict)
    links: list[_Link] = field(default_factory=list)
    typed: list[Element] = field(default_factory=list)


class NoteIndex:
    """
    The notes of a book and the marks that refer to them.

    A link is a note mark if it says so (`epub:type="noteref"`, `role="doc-noteref"`), if it leads to an element that
    says it is a note, or if its text is a mark (a number, a star) and the note links back to it or stands in a list
    of notes.
    """

    def __init__(self, files: Iterable[NoteFile], resolve: Resolve) -> None:
        """
        Find the notes.

        :param files: the parsed files in reading order.
        :param resolve: finds the place a link leads to, from its file's name and the link.
        """
        self.notes: dict[Element, Note] = {}
        self.marks: dict[Element, Note] = {}
        self.dangling = 0
        self._back_links: set[Element] = set()
        scan = _scan(files)
        self._scan = scan
        for element in scan.typed:
            self._add(element, typed=True)
        for link in scan.links:
            place = resolve(link.file.href, link.element.get("href", ""))
            if place is not None and place[1]:
                link.target = scan.ids.get((place[0], place[1]))
                link.target_file = scan.files.get(link.target) if link.target is not None else None
        self._back_targets = self._links_by_holder()
        for link in scan.links:
            self._judge(link)
        for mark, note in self.marks.items():
            if not self._inside_note(mark):
                note.wanted = True

    def path_of(self, element: Element) -> str:
        """
        Tell an element's path.

        :param element: an element with an id, a link or a note.
        :returns: its path as in `epub_text.walk`.
        """
        return self._scan.paths[element]

    def text_of(self, note: Note, nesting: int = 0) -> str:
        """
        Give a note's text in one line, without its number and its link back; marks in it are followed three deep.

        :param note: the note; it and the notes inside it count as placed from here on.
        :param nesting: how many notes it stands in already.
        :returns: its text.
        """
        note.placed = True
        pieces: list[str] = []
        skipping: Element | None = None
        for event, node in etree.iterwalk(note.element, events=("start", "end")):
            if skipping is not None:
                if event == "end" and node is skipping:
                    skipping = None
                    pieces.append(_tail(node, note))
                continue
            name = str(node.tag)
            if name in BLOCK_ELEMENTS:
                pieces.append(" ")
            if event == "end":
                pieces.append(_tail(node, note))
            elif name in UNCOUNTED_ELEMENTS or node in self._back_links:
                skipping = node
            elif node in self.marks:
                inner = self.marks[node]
                if not inner.placed and nesting < _MAX_NESTING:
                    pieces.append(f" ({self.text_of(inner, nesting + 1)})")
                skipping = node
            else:
                pieces.append(node.text or "")
        text = " ".join(visible("".join(pieces)).split())
        return _LEADING_MARK.sub("", text, count=1).strip() or text

    def _add(self, element: Element, *, typed: bool) -> Note:
        if element not in self.notes:
            file = self._scan.files[element]
            self.notes[element] = Note(element, file.href, file.spine, self._scan.paths[element], typed)
        return self.notes[element]

    def _links_by_holder(self) -> dict[Element, list[_Link]]:
        """Links grouped by the block that holds what they lead to, to find the ones that lead back."""
        grouped: dict[Element, list[_Link]] = {}
        for link in self._scan.links:
            if link.target is not None:
                grouped.setdefault(_block_of(link.target), []).append(link)
        return grouped

    def _judge(self, link: _Link) -> None:
        types = tokens(link.element, "type", "role")
        says_so = bool(types & _MARK_TYPES)
        if link.target is None or link.target_file is None:
            self.dangling += says_so
            return
        if types & _BACK_TYPES:
            return
        note_element = self._note_element(link.target)
        if note_element is None or _contains(note_element, link.element):
            return
        text = element_text(link.element)
        is_mark = bool(_MARK.fullmatch(text)) or not text
        note = self.notes.get(note_element)
        backs = self._backs(link, note_element)
        if not says_so:
            if not is_mark or (note is None and not self._plain_note(link, note_element, backs)):
                return
            if self._inside_note(link.element) and self._leads_back(link):
                return
        note = note or self._add(note_element, typed=False)
        for back in backs:
            self._back_links.add(_wrapper(back.element, element_text(back.element)))
        if is_mark:
            self.marks[_wrapper(link.element, text)] = note
        else:
            # "see note 5" is part of the sentence; the note follows it.
            self.marks[link.element] = note

    def is_shown(self, mark: Element) -> bool:
        """
        Tell whether a mark's own text is part of the sentence.

        :param mark: a key of `marks`.
        :returns: True for words like "see note 5", False for a number or a star.
        """
        text = element_text(mark)
        return bool(text) and not _MARK.fullmatch(text)

    def _note_element(self, target: Element) -> Element | None:
        for element in (target, *target.iterancestors()):
            if element in self.notes and self.notes[element].typed:
                return element
        holder = target
        while str(holder.tag) not in BLOCK_ELEMENTS and holder.getparent() is not None:
            holder = holder.getparent()  # type: ignore[assignment]
        if holder.tag == "dt":
            following = holder.getnext()
            return following if following is not None and following.tag == "dd" else None
        if holder is not target and (holder.tag in _TOO_BIG or holder.tag in ("section", "div", "article")):
            following = target.getnext()
            empty = not element_text(target)
            if empty and following is not None and following.tag in ("p", "div", "li"):
                holder = following
        parent = holder.getparent()
        if holder.tag == "p" and parent is not None and parent.tag in ("li", "dd", "aside") and parent[0] is holder:
            if sum(1 for child in parent if child.get("id")) <= 1:
                holder = parent
        if holder.tag in _TOO_BIG or holder.tag in _HEADINGS or holder not in self._scan.paths:
            return None
        return holder

    def _plain_note(self, link: _Link, element: Element, backs: list[_Link]) -> bool:
        if element.tag not in _NOTE_HOLDERS or any(node.tag in _HEADINGS for node in element.iter()):
            return False
        in_list = any(
            tokens(node, "type", "role") & (NOTE_LIST_TYPES | NOTE_TYPES)
            or any(_NOTE_CLASS.search(word) for word in tokens(node, "class"))
            for node in (element, *element.iterancestors())
        )
        if not in_list and not (backs and self._scan.orders[element] > link.order):
            return False
        return len(element_text(element)) <= _MAX_PLAIN_NOTE

    def _backs(self, link: _Link, note_element: Element) -> list[_Link]:
        """Links in the note that lead to the mark, to an element around it, or into its block."""
        return [
            back
            for back in self._back_targets.get(_block_of(link.element), ())
            if _contains(note_element, back.element) and self._looks_like_back(back)
        ]

    def _looks_like_back(self, back: _Link) -> bool:
        text = element_text(back.element)
        return (
            bool(_BACK_ARROW.fullmatch(text) or _MARK.fullmatch(text) or tokens(back.element, "type", "role") & _BACK_TYPES)
            or len(text) <= 12
        )

    def _leads_back(self, link: _Link) -> bool:
        """Is this link in a note one that leads back to the text, rather than to another note?"""
        assert link.target is not None
        return not self._inside_note(link.target)

    def _inside_note(self, element: Element) -> bool:
        return element in self.notes or any(node in self.notes for node in element.iterancestors())


def _scan(files: Iterable[NoteFile]) -> _Scan:
    scan = _Scan()
    order = 0
    for file in files:
        for event, element, path in walk(file.root):
            if event == "end":
                continue
            order += 1
            name = str(element.tag)
            scan.paths[element] = path
            scan.orders[element] = order
            scan.files[element] = file
            for key in ("id", "name"):
                if element_id := element.get(key, ""):
                    scan.ids.setdefault((file.href, element_id), element)
            if name == "a" and "#" in element.get("href", ""):
                scan.links.append(_Link(element, file, order))
            types = tokens(element, "type", "role")
            if types & NOTE_TYPES and name not in ("a", "span", "sup"):
                scan.typed.append(element)
    return scan


def _block_of(element: Element) -> Element:
    while str(element.tag) not in BLOCK_ELEMENTS:
        parent = element.getparent()
        if parent is None:
            break
        element = parent
    return element


def _contains(outer: Element, inner: Element) -> bool:
    return outer is inner or any(node is outer for node in inner.iterancestors())


def _wrapper(link: Element, text: str) -> Element:
    """The element to leave out together with a mark: `<sup>[<a>1</a>]</sup>` goes as a whole."""
    parent = link.getparent()
    while parent is not None and str(parent.tag) in ("sup", "span", "small", "b", "i", "em"):
        if element_text(parent).strip("[]()（）【】〔〕 .") != text.strip("[]()（）【】〔〕 ."):
            break
        link, parent = parent, parent.getparent()
    return link


def _tail(node: Element, note: Note) -> str:
    return "" if node is note.element else node.tail or ""
