"""Recognises questions about the library itself: which books it has, who wrote one, what a chapter is about."""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from shiguan.resources import read_patterns
from shiguan.text.english_numbers import ORDINALS
from shiguan.text.languages import detect_language, fold_han, has_han
from shiguan.text.quantities import numeral, quantities

_LONGEST = 200
# Words for the same level of a book in either language.
_LEVELS = {
    "chapter": "章", "chap": "章", "ch": "章", "lecture": "章", "回": "章", "讲": "章", "part": "部", "编": "部",
    "section": "节", "book": "卷", "volume": "卷",
}  # fmt: skip
_HEADING = re.compile(
    r"(?:(?P<u>chapter|part|section|book|volume|canto|act|letter|lecture)\s+)?(?P<n>\d{1,3}|[ivxlc]{1,8}(?=[.:)\s—–-]|$)|(?<=\s)[a-z]{3,12})"
    r"(?!\.\d)(?:[.:)、，,\s—–-]|$)"
    r"|(?P<w>[〇零一二三四五六七八九十百千廿卅]{1,6})[、.:\s]"
    r"|第(?P<z>[〇零一二三四五六七八九十百千廿卅\d]{1,6})(?P<v>[章回卷部篇节編编讲])|(?:\w{1,4}\s+)?卷[第之]?(?P<m>[〇零一二三四五六七八九十百千廿卅\d]{1,6})",
    re.IGNORECASE,
)
_DOTTED = re.compile(r"\w+(?:\.\d+)+")
_phrases = partial(read_patterns, Path(__file__).with_suffix(".yaml"))


@dataclass(frozen=True)
class AskedChapter:
    """A chapter that a question asks to sum up: its number or its name, and the book where one is named."""

    number: int | None
    level: str
    book: str = ""
    name: str = ""
    """
    What stands in its heading, where that is no plain number: a title, or a number such as `1.6` or `A.3`. With a
    number the part of the book that the heading begins with, such as 本纪.
    """

    def heads(self, heading: str) -> Literal["", "number", "level"]:
        """Return whether a heading is the chapter's: by its number alone, or with what a chapter is called."""
        heading = fold_han(unicodedata.normalize("NFKC", heading)).strip()
        if _DOTTED.fullmatch(self.name):
            of = re.match(rf"(?:[a-z]+\s+|第)?{re.escape(self.name)}(?:[章节]|(?!\.?\w))", heading, re.IGNORECASE)
            return "level" if of else ""
        if self.name and self.number is None:
            name, letters = _letters(self.name), _letters(heading)
            return "level" if letters.startswith(name) or (len(name) > 1 and name in letters) else ""
        found = _HEADING.match(heading)
        if found is None or _number(found["n"] or found["w"] or found["z"] or found["m"]) != self.number:
            return ""
        if not heading.startswith(self.name):
            return ""
        level = found["u"] or found["v"] or ("卷" if found["m"] else "")
        if not level:
            return "number"
        return "level" if _level(level) == self.level else ""

    def contains(self, meta: Mapping[str, Any]) -> bool:
        """Return whether a passage stands in the chapter, by its headings and its book."""
        return self.is_of(meta) and any(map(self.heads, meta.get("section") or ()))

    def headings_among(self, paths: Iterable[tuple[str, ...]]) -> set[tuple[str, str]]:
        """
        Return the source and the heading of the chapter wherever it is, among paths of a source and its headings.

        Of headings with the number alone the outermost ones of a source are chapters, and those below are sections.
        """
        named, numbered = set(), dict[tuple[str, str], int]()
        for source, *headings in paths:
            for depth, heading in enumerate(headings):
                how = self.heads(heading)
                if how == "level":
                    named.add((source, heading))
                elif how:
                    numbered[source, heading] = min(depth, numbered.get((source, heading), depth))
        tops = dict[str, int]()
        for (source, _), depth in numbered.items():
            tops[source] = min(depth, tops.get(source, depth))
        within = {place for place, depth in numbered.items() if depth > tops[place[0]]}
        return named or (within if within and self.level == "节" else numbered.keys() - within)

    def place(self, meta: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the work and the headings down to the outermost by which a passage stands in the chapter."""
        headings = list(meta.get("section") or ())
        last = next((at for at, heading in enumerate(headings) if self.heads(heading)), 0)
        return str(meta.get("source_id")), *headings[: last + 1]

    def is_of(self, meta: Mapping[str, Any]) -> bool:
        """Return whether a passage is of the book that the question names, if it names one."""
        return any(map(self.names, (meta.get("title") or "", Path(meta.get("source") or "").stem)))

    def names(self, book: str) -> bool:
        """Return whether the question means a book of this title or file name, or any."""
        wanted, title = (_letters(re.sub(r"^(?:the|a|an) ", "", text.casefold())) for text in (self.book, book))
        return not wanted or (bool(title) and (wanted in title or title in wanted))


def asks_for_books(question: str) -> bool:
    """Return whether a question asks which books the library has, and nothing else."""
    return _matched("books", question) is not None


def asked_work(question: str) -> str:
    """Return the title of the work of which a question asks who wrote it, and nothing else; "" for any other."""
    found = _matched("author", question)
    return _without_article(next(filter(None, found.groups()), "")) if found else ""


def is_titled(title: str, work: str) -> bool:
    """Return whether a title, with or without what stands in brackets or behind a colon, is that of `asked_work`."""
    return bool(work) and work in map(_without_article, (title, re.split(r"[（(:：]", title)[0]))


def _without_article(title: str) -> str:
    return _letters(re.sub(r"^(?:the|a|an) ", "", title.strip().casefold()))


def asked_chapter(question: str) -> AskedChapter | None:
    """Read a question that asks what a chapter is about, and nothing else; None for any other."""
    found = _matched("chapter", question) or _matched("chapter", _in_one_language(question))
    if found is None:
        return None
    named = found.groupdict()
    if not named["lead"] and not named["tail"]:
        return None
    number = _number(named["n"] or named.get("o") or named.get("m") or "")
    level = _level(named["u"] or named.get("v") or "卷")
    name = named["d"] or named["t"] or named["s"] or named.get("q") or (named.get("p") or "").strip()
    return None if number is None and not _letters(name) else AskedChapter(number, level, named["book"] or "", name)


def _matched(kind: str, question: str) -> re.Match[str] | None:
    text = fold_han(" ".join(unicodedata.normalize("NFKC", question).replace("’", "'").split()))
    if not text or len(text) > _LONGEST:
        return None
    table = "zh" if detect_language(text) in ("zh", "ja") else "en"
    found: re.Match[str] | None = _phrases()[kind][table].fullmatch(text)
    return found


def _in_one_language(question: str) -> str:
    """Write a chapter's number in the language around it: `Chapter 2 讲什么`, `what is 第二章 about`."""
    if len(question) > _LONGEST:
        return question
    question, english, chinese = fold_han(question), _numbered("en"), _numbered("zh")
    if has_han(chinese.sub("", question)):
        return english.sub(lambda found: f"第{_number(found['n'])}{_level(found['u'])}", question)
    words = {level: f" {word} " for word, level in reversed(_LEVELS.items()) if word.isascii()}
    return chinese.sub(lambda one: f"{words[_level(one['u'] or '卷')]}{_number(one['n'] or one['m'])} ", question)


def _numbered(language: str) -> re.Pattern[str]:
    found: re.Pattern[str] = _phrases()["numbered"][language]
    return found


def _level(word: str) -> str:
    return _LEVELS.get(word.lower().rstrip("."), word.lower())


def _number(written: str) -> int | None:
    in_words = (value for one in quantities(written) for value in one.values)
    return ORDINALS.get(written.lower()) or numeral(written) or int(min(in_words, default=0)) or None


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, fold_han(unicodedata.normalize("NFKC", text)).casefold()))
