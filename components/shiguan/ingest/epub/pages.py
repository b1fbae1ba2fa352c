"""Finds the numbers of printed pages and where these begin: by page list, breaks, and anchors named after pages."""

import re
from collections import Counter
from collections.abc import Sequence

from shiguan.ingest.epub.notes import BookFile, Note
from shiguan.ingest.epub.package import Entry
from shiguan.ingest.epub.trees import Element, element_text, short_text, tokens
from shiguan.text.places import page_label

_PAGE_TYPES = frozenset(("pagebreak", "doc-pagebreak"))
_PAGE_CLASS = re.compile(r"page-?(?:num(?:ber)?|break)?|pb|pagenum")
_LINE_CLASS = re.compile(r"lnum|line-?num(?:ber)?|lineno|poetry-line-number")
_NUMBER = re.compile(
    r"(?i)[\s\[({·—–-]*(?:p(?:age|g|\.)?\s*)?(?:\d{1,5}|[ivxlcdm]{1,8}|第\s*\d+\s*[页頁])[\s\])}·—–-]*"
)
_NAMED = re.compile(r"(?i)(?:page|pg)[-_.]?(\d{1,5}|[ivxlcdm]{1,8})")
# At least this many anchors that are named after pages are not a coincidence.
_FEWEST_NAMED = 3
# At most this many pages may be missing between two that are listed; of more, nothing shows where they begin.
_WIDEST_GAP = 10


def is_number(element: Element) -> bool:
    """Return whether an element is the number of a printed page or line, which is no text of the book."""
    if not (_is_break(element) or _has_class(element, _PAGE_CLASS) or _has_class(element, _LINE_CLASS)):
        return False
    text = short_text(element)
    return not text or bool(_NUMBER.fullmatch(text))


def _is_break(element: Element) -> bool:
    return bool(tokens(element, "type", "role") & _PAGE_TYPES)


def _has_class(element: Element, pattern: re.Pattern[str]) -> bool:
    return element.tag in ("span", "a", "div", "p") and any(map(pattern.fullmatch, tokens(element, "class")))


def begin_pages(
    files: Sequence[BookFile], listed: Sequence[Entry], notes: Sequence[Note]
) -> tuple[dict[Element, str], list[str]]:
    """
    Return the elements at which pages begin, and what is wrong with the book's page list; also set the pages of notes.

    A page list takes precedence over the labels of page breaks; classes and ids count only without a page list. If
    pages are missing after one, its label is that of all of them, `63–65`, because which page it is cannot be known.
    """
    places: dict[tuple[str, str], str] = {}
    for entry in listed:
        places.setdefault(entry.target, page_label(entry.label))
    marks: list[tuple[Element, str, str]] = []
    met: set[tuple[str, str]] = set()
    for file in files:
        for element in file.root.iter():
            ids = [value for value in (element.get("id"), element.get("name")) if value]
            keys = [(file.href, name) for name in ("", *ids)] if element is file.root else [(file.href, n) for n in ids]
            own = next((key for key in keys if key in places and key not in met), None)
            met.update(keys)
            if own is not None and places[own]:
                marks.append((element, places[own], "listed"))
            elif _is_break(element):
                marks.append((element, _own_label(element), "typed"))
            elif listed or not file.href:
                continue  # not on web pages either, whose `page` classes are those of menus
            elif _has_class(element, _PAGE_CLASS):
                marks.append((element, _own_label(element), "class"))
            elif element.tag in ("a", "span") and (found := _NAMED.fullmatch(element.get("id", ""))):
                marks.append((element, found[1], "named"))
    named = sum(how == "named" for *_, how in marks)
    # Of a book that marks its pages in two ways, explicit marks count.
    weak = {"named"} if named < _FEWEST_NAMED or named < len(marks) else set()
    chosen = [(element, label) for element, label, how in marks if label and how not in weak]
    begins = dict(_with_gaps(chosen))
    if begins and notes:
        _place_notes(files, begins, notes)
    return begins, _faults(listed, places, met)


def _own_label(element: Element) -> str:
    stated = (element.get(name, "") for name in ("title", "aria-label", "value"))
    label = next(filter(None, map(page_label, stated)), "") or page_label(element_text(element))
    return label or (page_label(found[1]) if (found := _NAMED.fullmatch(element.get("id", ""))) else "")


def _with_gaps(marks: Sequence[tuple[Element, str]]) -> list[tuple[Element, str]]:
    """Write each page with those that are missing after it."""
    found = []
    following = run = ""
    for element, label in reversed(marks):
        if label != run:
            following, run = run, label
        missing = int(following) - int(label) - 1 if label.isdecimal() and following.isdecimal() else 0
        wide = f"{label}–{int(label) + missing}" if 0 < missing < _WIDEST_GAP else label
        found.append((element, "" if missing >= _WIDEST_GAP else wide))
    return found[::-1]


def _place_notes(files: Sequence[BookFile], begins: dict[Element, str], notes: Sequence[Note]) -> None:
    by_element = {note.element: note for note in notes}
    page = ""
    for file in files:
        for element in file.root.iter():
            page = begins.get(element, page)
            if element in by_element:
                by_element[element].page = page


def _faults(listed: Sequence[Entry], places: dict[tuple[str, str], str], met: set[tuple[str, str]]) -> list[str]:
    labels = Counter(filter(None, places.values()))
    faults = {
        "{} of its entries lead nowhere": sum(entry.target not in met for entry in listed),
        "{} have no label that a page can have": sum(not page_label(entry.label) for entry in listed),
        "{} pages are in it twice": sum(count > 1 for count in labels.values()),
    }
    return [about.format(f"{count:,}") for about, count in faults.items() if count]
