"""Tables of contents: the nav document of EPUB 3 and the NCX of EPUB 2, as entries with their ancestors."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from shiguan.ingest.epub.text import element_text
from shiguan.ingest.epub.trees import Element, tokens

_MAX_DEPTH = 24
_LISTS = frozenset(("ol", "ul"))
_MAX_ENTRIES = 50_000

Resolve = Callable[[str, str], tuple[str, str] | None]


class Landmark(NamedTuple):
    """A place that the book names by its role: cover, toc, bodymatter."""

    href: str
    fragment: str
    kinds: frozenset[str]
    label: str


@dataclass(frozen=True, eq=False)
class NavEntry:
    """One line of a table of contents."""

    label: str
    href: str
    fragment: str
    parent: "NavEntry | None"

    @property
    def depth(self) -> int:
        """How many lines it is indented below."""
        return 0 if self.parent is None else self.parent.depth + 1


def read_nav(root: Element, base: str, resolve: Resolve) -> tuple[list[NavEntry], list[Landmark]]:
    """Read an EPUB 3 navigation document."""
    navs = list(root.iter("nav"))
    toc = next((nav for nav in navs if "toc" in tokens(nav, "type", "role")), None)
    if toc is None:
        toc = next((nav for nav in navs if not tokens(nav, "type")), None)
    entries: list[NavEntry] = []
    if toc is not None:
        for child in toc:
            if child.tag in _LISTS:
                _read_list(child, None, base, resolve, entries)
    links = [link for nav in navs if "landmarks" in tokens(nav, "type") for link in nav.iter("a")]
    landmarks = [
        Landmark(*target, tokens(link, "type"), element_text(link))
        for link in links
        if (target := resolve(base, link.get("href", "")))
    ]
    return entries, landmarks


def read_ncx(root: Element, base: str, resolve: Resolve) -> list[NavEntry]:
    """Read an EPUB 2 table of contents."""
    entries: list[NavEntry] = []
    nav_map = next(root.iter("navmap"), None)
    pending: list[tuple[Element, NavEntry | None]] = [(p, None) for p in _points(nav_map)]
    while pending and len(entries) < _MAX_ENTRIES:
        point, parent = pending.pop()
        label = next((element_text(node) for node in point if node.tag == "navlabel"), "")
        src = next((node.get("src", "") for node in point if node.tag == "content"), "")
        target = resolve(base, src) if src else None
        entry = NavEntry(label, *(target or ("", "")), parent)
        entries.append(entry)
        if entry.depth < _MAX_DEPTH:
            pending.extend((child, entry) for child in _points(point))
    return entries


def _points(node: Element | None) -> list[Element]:
    """Child points, last first, as a stack wants them."""
    return [] if node is None else [child for child in reversed(node) if child.tag == "navpoint"]


def _read_list(items: Element, parent: NavEntry | None, base: str, resolve: Resolve, entries: list[NavEntry]) -> None:
    for item in items:
        if item.tag != "li" or len(entries) >= _MAX_ENTRIES:
            continue
        link = next((node for node in item if node.tag in ("a", "span")), None)
        if link is None:
            # Some tools wrap the link once more; a nested list is not a label.
            link = next((node for child in item if child.tag not in _LISTS for node in child.iter("a")), None)
        entry = parent
        if link is not None:
            target = resolve(base, link.get("href", "")) if link.get("href") else None
            entry = NavEntry(element_text(link), *(target or ("", "")), parent)
            entries.append(entry)
        for child in item:
            if child.tag in _LISTS and entry is not None and entry.depth < _MAX_DEPTH:
                _read_list(child, entry, base, resolve, entries)
