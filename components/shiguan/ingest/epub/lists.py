"""Finds lists of places in the book (contents, indexes and the like) by their links and their numbers."""

import re
from collections.abc import Callable, Sequence
from itertools import groupby, pairwise
from typing import TypeVar

from lxml import etree

from shiguan.ingest.epub.blocks import Block
from shiguan.ingest.epub.trees import Element, element_text

_Item = TypeVar("_Item")

_HOLDERS = frozenset("ul ol dl menu table div section article p".split())
_OUTWARD = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)
_LINKS, _LINKED = 5, 0.7
_LINES, _ALIKE, _LINE = 8, 0.8, 100
# Numbers of four digits are years, not pages, and do not count.
_PAGE = r"\d{1,3}(?:\s?[–-]\s?\d{1,3})?[nf]{0,2}\.?"
_PAGES = rf"{_PAGE}(?:[,;،、]\s?{_PAGE})*"
# "Abel, 12, 45–47", "The map of Fanyang … 12", "Galois, see Abel".
_ENTRY = re.compile(rf"[^\W\d_][^=]*?(?:[,،、…](?:[\s.…]*{_PAGES}|\s*see\s.+)|(?:\.\s?){{3,}}{_PAGES})", re.IGNORECASE)
_SEVERAL = re.compile(r"\d[,;،、]\s?\d")
# "Theorem NMRRI Nonsingular Matrices Row Reduce", "图 3 安西四镇": a label and its words, not a sentence.
_LABELLED = re.compile(
    r"(?:theorem|figure|table|definition|example|exercise|proposition|lemma|corollary|map|plate|chart|diagram|algorithm"
    r"|定理|定义|定義|例|图|圖|表)\s*[\w.–-]{1,20}(?:[\s:：.—–-][^.!?。！？]*)?",
    re.IGNORECASE,
)
_LAST_NUMBER = re.compile(r"\S[^=]*?\s(\d{1,3})")


def link_lists(root: Element) -> set[Element]:
    """Find the elements of a file that are mostly links to other places of the book."""
    found: set[Element] = set()
    # For each open element: its links, the length of their text, and the length of its own text.
    counts = [[0, 0, 0]]
    for event, element in etree.iterwalk(root, events=("start", "end")):
        if event == "start":
            counts.append([0, 0, len((element.text or "").strip())])
            continue
        links, linked, length = counts.pop()
        if element.tag == "a" and (href := element.get("href", "")) and not _OUTWARD.match(href):
            links, linked = 1, length
        if element.tag in _HOLDERS and links >= _LINKS and linked >= _LINKED * length:
            found.add(element)
        above = counts[-1]
        above[0] += links
        above[1] += linked
        above[2] += length + len((element.tail or "").strip())
    return found


def is_contents(root: Element) -> bool:
    """Return whether a file, with no role stated, is a list of links to other files."""
    hrefs = ((link, link.get("href", "")) for link in root.iter("a"))
    links = [link for link, href in hrefs if href and not href.startswith("#") and not _OUTWARD.match(href)]
    if len(links) < _LINKS:
        return False
    body = next(root.iter("body"), root)
    return sum(len(element_text(link)) for link in links) >= _LINKED * len(element_text(body))


def mark_lists(blocks: Sequence[Block]) -> None:
    """Set the kind `list` of runs of text that are mostly names with pages or labels: an index, a table of figures."""
    for (_, points), run in groupby(blocks, lambda block: (block.meta["anchor"]["href"], _points(block))):
        found = list(run) if points else []
        lines = [line for block in found for line in block.content.split("\n")]
        labelled = _share(lines, lambda line: bool(_LABELLED.fullmatch(line)))
        if len(lines) >= _LINES and (labelled or _rises(lines) or _is_index(lines)):
            for block in found:
                block.meta["kind"] = "list"


def _points(block: Block) -> bool:
    lines = block.content.split("\n")
    if block.meta["kind"] != "text" or len(block.content) > _LINE * len(lines):
        return False
    patterns = (_ENTRY, _LAST_NUMBER, _LABELLED)
    return _share(lines, lambda line: any(pattern.fullmatch(line) for pattern in patterns))


def _rises(lines: Sequence[str]) -> bool:
    """Return whether the numbers at the ends of lines ascend like those of pages."""
    ends = [int(found[1]) for line in lines if (found := _LAST_NUMBER.fullmatch(line))]
    enough = len(ends) >= _ALIKE * len(lines) and ends[0] < ends[-1]
    return enough and _share(list(pairwise(ends)), lambda pair: pair[0] <= pair[1])


def _is_index(lines: Sequence[str]) -> bool:
    if not _share(lines, lambda line: bool(_ENTRY.fullmatch(line))):
        return False
    several = sum(1 for line in lines if _SEVERAL.search(line))
    sorted_by_letter = _share(list(pairwise(lines)), lambda pair: pair[0][:1].casefold() <= pair[1][:1].casefold())
    return sorted_by_letter or 3 * several >= len(lines)


def _share(items: Sequence[_Item], holds: Callable[[_Item], bool]) -> bool:
    return sum(map(holds, items)) >= _ALIKE * len(items)
