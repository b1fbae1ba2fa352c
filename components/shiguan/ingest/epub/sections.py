"""Tracks the headings above a passage: the table of contents and the headings in the text, combined."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from shiguan.ingest.epub.package import Entry

# Longer headings are text in large type; joined ones stay readable.
MAX_HEADING = 300
_MAX_JOINED = 200
_NUMBER = re.compile(r"^\s*(?:chapter\s+)?(?:\d{1,4}|[ivxlc]{1,7})[\s.:)—–-]+(?=\S)", re.IGNORECASE)


@dataclass(eq=False)
class Heading:
    """A heading of the text, and whether it is in the path of any passage."""

    text: str
    depth: int
    level: int
    href: str
    parent_path: str
    absorbed: bool = False
    joined: bool = False
    seen: bool = False


class SectionTracker:
    """
    Follows a book in reading order and knows the section path of the current place, outermost heading first.

    A heading ends where another of its rank or higher comes, or where the `section` that contains it ends. An entry of
    the table of contents and the first heading at or after its target are the same thing: the path has the fuller of
    the two texts once. Entries extend over several files until a heading or entry ends them.
    """

    def __init__(self, entries: Iterable[Entry], skipped_labels: Iterable[str]) -> None:
        self._targets: dict[tuple[str, str], Entry] = {}
        for entry in entries:
            # If a part and its first chapter lead to the same place, the entry of the chapter has both.
            before = self._targets.get(entry.target)
            if entry.target.href and (before is None or entry.depth > before.depth):
                self._targets[entry.target] = entry
        self._skipped = {_letters(label) for label in skipped_labels}
        self._matches: dict[Entry, Heading] = {}
        self._entry: Entry | None = None
        self._entry_href = ""
        self._awaits_heading = False
        self._headings: list[Heading] = []
        self._orphans: list[Heading] = []
        self._text_since_heading = True
        self._href = ""

    def start_file(self, href: str) -> None:
        self._href = href
        self._headings, self._orphans = [], []
        self._text_since_heading, self._awaits_heading = True, False
        self._arrive(self._targets.get((href, "")))

    def start_element(self, element_id: str) -> None:
        """Note an element with an id, which an entry of the table of contents may lead to."""
        self._arrive(self._targets.get((self._href, element_id)))

    def add_heading(self, text: str, level: int, depth: int, parent_path: str) -> Heading:
        self._orphans = []
        last = self._headings[-1] if self._headings and not self._text_since_heading else None
        beside = last and (last.parent_path, last.depth) == (parent_path, depth) and level <= last.level
        if (
            last is not None
            and beside
            and not (self._awaits_heading or last.joined or len(last.text + text) >= _MAX_JOINED)
        ):
            # It is the second line of the one before it.
            last.text, last.level, last.joined = f"{last.text} {text}", level, True
            self._pop_above(depth, level, keep=last)
            return last
        self._pop_above(depth, level)
        heading = Heading(text, depth, level, self._href, parent_path)
        if self._awaits_heading and self._entry is not None:
            # A part whose first chapter is at the same place shares the place but not the heading.
            self._matches[self._entry] = heading
            heading.seen = _letters(text) in _letters(self._entry.label)
        elif last is not None and self._entry is not None:
            heading.absorbed = _letters(text) in _letters(self._entry.label)
        self._awaits_heading = False
        self._headings.append(heading)
        self._text_since_heading = False
        return heading

    def end_section(self, depth: int) -> None:
        ended = [heading for heading in self._headings if heading.depth > depth]
        if not ended:
            return
        self._headings = [heading for heading in self._headings if heading.depth <= depth]
        if not self._text_since_heading:
            # The headings of a section with nothing else belong to what comes after it.
            for heading in ended:
                heading.depth = depth
            self._orphans = ended

    def path(self) -> list[str]:
        """Return the section path of a passage at the current place."""
        self._headings, self._orphans = [*self._headings, *self._orphans], []
        self._text_since_heading, self._awaits_heading = True, False
        for heading in self._headings:
            heading.seen = True
        return self.combined()

    def _arrive(self, entry: Entry | None) -> None:
        if entry is not None and entry is not self._entry:
            # The target may be the heading, before it, or inside it.
            self._entry, self._entry_href, self._awaits_heading = entry, self._href, True

    def _pop_above(self, depth: int, level: int, keep: Heading | None = None) -> None:
        self._headings = [h for h in self._headings if h is keep or (h.depth, h.level) < (depth, level)]

    def _open_entries(self) -> list[Entry]:
        """Return the entries that still hold here, without those whose heading has ended."""
        chain: list[Entry] = []
        entry = self._entry
        while entry is not None:
            chain.insert(0, entry)
            entry = entry.parent
        while chain:
            heading = self._matches.get(chain[-1])
            if heading is None:
                foreign = self._entry_href != self._href and chain[-1] is self._entry
                if not (foreign and self._headings):
                    break
            elif heading in self._headings:
                break
            elif heading.href != self._href:
                first = self._headings[0] if self._headings else None
                if first is None or (first.depth, first.level) > (heading.depth, heading.level):
                    break
            chain.pop()
            # A line without a link of its own groups its children and ends with them.
            while chain and not chain[-1].target.href:
                chain.pop()
        return [entry for entry in chain if entry.label and _letters(entry.label) not in self._skipped]

    def combined(self) -> list[str]:
        """Return the path, although no passage is here."""
        entries = self._open_entries()
        path: list[str] = []
        waiting: list[str] = []
        done = 0
        for heading in self._headings:
            if heading.absorbed:
                continue
            same = (
                self._matches.get(e) is heading or _letters(e.label) == _letters(heading.text) for e in entries[done:]
            )
            index = next((at for at, found in enumerate(same, start=done) if found), None)
            if index is None:
                waiting.append(heading.text)
                continue
            path += [entry.label for entry in entries[done:index]] + waiting
            waiting = []
            # One text for an entry and its heading if one contains the other, else both.
            label, text = entries[index].label, heading.text
            if _letters(text) in _letters(label):
                path.append(label)
            else:
                path += [text] if _letters(label) in _letters(text) else [label, text]
            done = index + 1
        path += [entry.label for entry in entries[done:]] + waiting
        return [text for i, text in enumerate(path) if i == 0 or _title(text) != _title(path[i - 1])]


def _title(text: str) -> str:
    """Strip a heading of its number, so that "190 The Clover", "II. The Clover" and "The Clover" are one."""
    return _letters(_NUMBER.sub("", text)) or _letters(text)


@lru_cache(maxsize=4096)
def _letters(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum()) or text.strip()
