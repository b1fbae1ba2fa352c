"""Checks whether a quotation is where a text says: in that work, by that author, in that chapter, on that page."""

import re
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from pathlib import PurePath
from typing import Any

from shiguan.llm.run import raise_if_cancelled
from shiguan.reading.edges import NUMERALS
from shiguan.reading.folded import Folded, fold
from shiguan.reading.text import read_text
from shiguan.text.quantities import numeral
from shiguan.text.terms import fold_text, size_of

_WORD_NUMBER = r"(\d+|[ivxlc]+)\b"
_NUMBER = rf"(\d+|[{''.join(NUMERALS)}]+)"
_REFERENCES = {
    "chapter": re.compile(rf"\b(?:chapters?|chap\.|ch\.)\s*{_WORD_NUMBER}|第?{_NUMBER}(?:章|回)"),
    "book": re.compile(rf"\b(?:book|volume|vol\.)\s*{_WORD_NUMBER}|(?:卷|巻)第?{_NUMBER}|第{_NUMBER}卷"),
    "part": re.compile(rf"\bpart\s*{_WORD_NUMBER}|第?{_NUMBER}(?:部|编)"),
    "page": re.compile(rf"\b(?:page|pages|p\.|pp\.)\s*{_WORD_NUMBER}|第?{_NUMBER}页"),
}
_TITLE = re.compile(r"《([^《》]+)》")
_ASIDE = re.compile(r"[(（\[［【][^()（）\[\]［］【】]*[)）\]］】]|\s+(?:et al\.?|等)$|[;:；：].*")
# Of more names than this in one text all are meant, also the shorter ones in longer ones.
_MOST_NAMES = 100
_APART = re.compile(r"[,，、;；:：·•()（）《》〈〉\[\]›»>/|\n]|\s[-–—]+\s|\.\s")


class Attribution:
    """The names of a library's works, authors and headings."""

    def __init__(self, metas: Iterable[Mapping[str, Any]]) -> None:
        self._names: dict[str, dict[str, tuple[Folded, set[str]]]] = {"source": {}, "author": {}, "section": {}}
        # What a text names is the same for each place of its quotation.
        self._meant = lru_cache(16)(self._find_meant)
        for meta in metas:
            raise_if_cancelled()
            source, author = str(meta.get("source") or ""), str(meta.get("author") or "")
            title = str(meta.get("title") or "")
            for name in (source, PurePath(source).stem, title, _ASIDE.sub("", title)):
                self._add("source", name, source)
            last = author.rsplit(maxsplit=1)[-1] if author.isascii() and author.split() else ""
            for name in (author, _ASIDE.sub("", author), last):
                self._add("author", name, author)
            for name in meta.get("section") or ():
                self._add("section", name, name)

    def _add(self, field: str, name: str, value: str) -> None:
        if name.strip():
            folded = fold(name)
            if size_of(folded.key) >= 5:
                self._names[field].setdefault(folded.key, (folded, set()))[1].add(value)

    def allows(self, named: str, place: Mapping[str, Any], passage: str = "", *, in_context: bool = False) -> bool:
        """Return whether a place is the one that a text names; `in_context` only known names and 《titles》 count."""
        values = {"source": [place["source"]], "author": [place.get("author") or ""], "section": place["section"]}
        known = False
        for field, own in values.items():
            meant = self._meant(field, named, in_context)
            known = known or bool(meant)
            if meant and meant.isdisjoint(own):
                return False
        headings = read_text(" ".join(place["section"]))
        for kind in _REFERENCES:
            wanted = read_text(named).once(_numbers, kind)
            if not wanted:
                continue
            known = True
            page = (place["anchor"] or {}).get("page")
            there = ({page} if page else set()) if kind == "page" else headings.once(_numbers, kind)
            if there.isdisjoint(wanted) and (there or kind in self._numbered):
                return False
        titles = _TITLE.findall(named) if in_context else [named]
        return known or all(fold(title).key in passage for title in titles)

    @cached_property
    def _numbered(self) -> set[str]:
        """The kinds of references that a heading of the library has."""
        headings = {value for _, values in self._names["section"].values() for value in values}
        return {kind for kind in _REFERENCES if any(read_text(heading).once(_numbers, kind) for heading in headings)}

    def _find_meant(self, field: str, named: str, in_context: bool) -> set[str]:
        """Find the library's names that occur in a text, or that contain a part of it."""
        raise_if_cancelled()
        text, names = fold(named), self._names[field]
        least = 15 if in_context and field == "section" else 6
        found = [key for key, (name, _) in names.items() if size_of(key) >= least and name.is_in(text)]
        if len(found) <= _MOST_NAMES:
            found = [key for key in found if not any(key != other and key in other for other in found)]
        if not found:
            pieces = [fold(piece) for piece in (_TITLE.findall(named) if in_context else _APART.split(named))]
            pieces = [piece for piece in pieces if size_of(piece.key) >= (6 if field != "section" else 12)]
            found = [key for key, (name, _) in names.items() if any(piece.is_in(name) for piece in pieces)]
        return {value for key in found for value in names[key][1]}


def _numbers(text: str, kind: str) -> set[float]:
    found: set[float] = set()
    for match in _REFERENCES[kind].finditer(fold_text(text)):
        found.add(numeral(next(group for group in match.groups() if group)))
    return found
