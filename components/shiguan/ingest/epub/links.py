"""The links of a book and what note marks look like."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from shiguan.ingest.epub.roles import NOTE_LISTS, NOTES
from shiguan.ingest.epub.text import BLOCK_ELEMENTS, element_text, walk
from shiguan.ingest.epub.trees import Element, tokens

Resolve = Callable[[str, str], tuple[str, str] | None]

_MARK = re.compile(
    r"[\[(（【〔〈{]*\s*(?:\d{1,4}|[*†‡§¶#※＊]{1,4}|[a-zA-Z]|[ivxlcIVXLC]{1,6}|[\u2460-\u2473\u24ea-\u24ff]"
    r"|[\u2070\u00b9\u00b2\u00b3\u2074-\u2079]{1,4}|(?:注|註|注释|註釋|note|n\.?)\s*[\d一二三四五六七八九十]{0,4})"
    r"\s*[\])）】〕〉}.。]*",
    re.IGNORECASE,
)
_BACK_ARROW = re.compile(r"[\s\[(]*(?:[↑↩↵⏎←⇑^▲▴\ufe0e\ufe0f]+|back|return|返回|回到正文)[\s\])]*", re.IGNORECASE)
_NOTE_CLASS = re.compile(
    r"(?:foot|end|rear)[-_]?notes?|^notes?(?:[-_]?(?:list|body|text|content|p|para))?$|^fn\d*$|^fnote|duokan-footnote"
)
_BACK_ROLES = frozenset("backlink doc-backlink".split())
_MARK_ROLES = frozenset("noteref doc-noteref".split())
_AROUND_MARK = "[]()（）【】〔〕 ."
_INLINE_WRAPPERS = frozenset("sup span small b i em".split())
_SHORT = 12


@dataclass(eq=False)
class NoteFile:
    """A file to look for notes in: `spine` is None for one outside the reading order."""

    href: str
    spine: int | None
    root: Element


@dataclass(eq=False)
class Link:
    """A link with a fragment, the element it leads to, and where in the book it stands."""

    element: Element
    file: NoteFile
    order: int
    target: Element | None = None


@dataclass
class LinkScan:
    """Everything about a book's elements that finding notes needs."""

    paths: dict[Element, str] = field(default_factory=dict)
    orders: dict[Element, int] = field(default_factory=dict)
    files: dict[Element, NoteFile] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    typed_notes: list[Element] = field(default_factory=list)


def scan_links(files: Iterable[NoteFile], resolve: Resolve) -> LinkScan:
    """Walk all files of a book once."""
    scan = LinkScan()
    ids: dict[tuple[str, str], Element] = {}
    for file in files:
        for event, element, path in walk(file.root):
            if event == "end":
                continue
            scan.orders[element] = len(scan.orders)
            scan.paths[element] = path
            scan.files[element] = file
            for key in ("id", "name"):
                if element_id := element.get(key, ""):
                    # Where an id stands twice, readers go to the first.
                    ids.setdefault((file.href, element_id), element)
            if element.tag == "a" and "#" in element.get("href", ""):
                scan.links.append(Link(element, file, scan.orders[element]))
            if element.tag not in ("a", "span", "sup") and tokens(element, "type", "role") & NOTES:
                scan.typed_notes.append(element)
    for link in scan.links:
        place = resolve(link.file.href, link.element.get("href", ""))
        link.target = ids.get((place[0], place[1])) if place is not None else None
    return scan


def is_mark(text: str) -> bool:
    """Tell whether a link's text is a note mark: a number, a letter, a star, 注1."""
    return not text or bool(_MARK.fullmatch(text))


def says_mark(link: Element) -> bool:
    """Tell whether a link declares itself a note mark."""
    return bool(tokens(link, "type", "role") & _MARK_ROLES)


def looks_like_back(link: Element) -> bool:
    """Tell whether a link in a note may be its way back: an arrow, a mark, a line number."""
    return says_back(link) or (len(element_text(link)) <= _SHORT and not says_mark(link))


def says_back(link: Element) -> bool:
    """Tell whether a link in a note is the way back beyond doubt, wherever it leads."""
    return bool(tokens(link, "type", "role") & _BACK_ROLES) or bool(_BACK_ARROW.fullmatch(element_text(link)))


def in_note_list(element: Element) -> bool:
    """Tell whether an element stands among notes, by role or class."""
    return any(
        tokens(node, "type", "role") & (NOTE_LISTS | NOTES)
        or any(_NOTE_CLASS.search(word) for word in tokens(node, "class"))
        for node in (element, *element.iterancestors())
        if node.tag != "a"
    )


def block_of(element: Element) -> Element:
    """Find the block that an element stands in."""
    while str(element.tag) not in BLOCK_ELEMENTS:
        parent = element.getparent()
        if parent is None:
            break
        element = parent
    return element


def contains(outer: Element, inner: Element) -> bool:
    """Tell whether an element is another or holds it."""
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
