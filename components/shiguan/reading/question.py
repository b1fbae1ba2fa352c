"""A question: its words, also in another language, what kind of answer it asks for, when, and of which chapter."""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

from shiguan.errors import RefusedError
from shiguan.reading.text import Text, kept, memory, read_text
from shiguan.resources import read_patterns
from shiguan.text.dates import find_dates
from shiguan.text.dictionary import Translations, translated_terms, translations
from shiguan.text.languages import detect_language, fold_han, has_han, search_weights
from shiguan.text.quantities import ORDINALS, Quantity, numeral, quantities
from shiguan.text.terms import has_subject, is_wide, question_weights, terms
from shiguan.text.times import When, western_of

Shape = Literal["time", "number", "person", "place", "reason", "manner", "definition"]

_SHAPES = read_patterns(Path(__file__).with_name("question_shapes.yaml"))
_WHICH = re.compile(r"(?<=哪)[一1](?=[年月日天])")

# Questions about the library itself: which books it has, who wrote one, what a chapter is about.
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
_phrases = partial(read_patterns, Path(__file__).with_name("library_questions.yaml"))


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
        wanted, title = map(_without_article, (self.book, book))
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
    numbered: dict[str, re.Pattern[str]] = _phrases()["numbered"]
    question, english, chinese = fold_han(question), numbered["en"], numbered["zh"]
    if has_han(chinese.sub("", question)):
        return english.sub(lambda found: f"第{_number(found['n'])}{_level(found['u'])}", question)
    words = {level: f" {word} " for word, level in reversed(_LEVELS.items()) if word.isascii()}
    return chinese.sub(lambda one: f"{words[_level(one['u'] or '卷')]}{_number(one['n'] or one['m'])} ", question)


def _level(word: str) -> str:
    return _LEVELS.get(word.lower().rstrip("."), word.lower())


def _number(written: str) -> int | None:
    in_words = (value for one in quantities(written) for value in one.values)
    return ORDINALS.get(written.lower()) or numeral(written) or int(min(in_words, default=0)) or None


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, fold_han(unicodedata.normalize("NFKC", text)).casefold()))


# The other words of a question that asks for all of a time: a work, and that something happened.
_WORK = re.compile("《[^》]*》")
_EVENTS = re.compile(
    r"[^\W\d_]{0,2}(?:史书|史書|[书書]|史官|史家|编年史|編年史|史料|史籍|文献|文獻)[中里裡内內上]?|记载|記載|"
    r"记录|記錄|记下|記下|所记|所記|记述|記述|叙述|敘述|描述|收录|收錄|提到|说到|說到|写|寫|讲|講|[记記说說]|"
    r"发生|發生|内容|條目|条目|情况|情況|变化|變化|大事|事件|事情|事|年|月|日|告诉我|告訴我|关于|關於|有关|"
    r"有關|重要|重大|主要|[这這那][一]?[条條年月]|之?下面?|[条條請请都過过了些的在于於当當里裡中有何]|"
    r"\b(?:happen(?:ed|s|ing)?|events?|occur(?:red|s)?|record(?:ed|s)?|t(?:ook|akes?) place|important|major|"
    r"notable|main|things?|years?|months?|tell|me|says?|said|report(?:ed|s)?|mention(?:ed|s)?|describe[ds]?|"
    r"entry|entries|falls?|fell|dated?|went|going|on|under|for|about|books?|chronicles?|annals?|histor(?:y|"
    r"ies)|texts?|sources?|library|according|everything|all)\b|\bthe(?-i:(?: [A-Z]\w+)+)(?= (?:says?|records?|"
    r"reports?|describes?|mentions?|tells?)\b)",
    re.IGNORECASE,
)
_OF_SOMEBODY = re.compile(r"谁|誰|\bwho(?:m|se)?\b", re.IGNORECASE)
# A year that is no date in running text is one in a question: "What does it record for 755?"
_ASKED_YEAR = re.compile(r"\b(?:for|under|about)(?=(?: the year)? \d{3,4}\W*$)")
# In a Chinese date the order matters: 元年十月 and 十年元月 have the same characters. With these weights words and
# vectors rank first what a chronicle has under a date for .957 of such questions (words alone .978), with the weights
# of other words for .859 (.880); BM25 of pairs .935 (`bench/quality/dated.py`). They make it worse where the question
# has a subject too: the passage about that often leaves the year to the one before.
_PAIR_OF_DATE, _CHARACTER_OF_DATE = 2.0, 0.3


@dataclass(frozen=True)
class AskedTimes:
    """The times that a question names, and whether it asks for nothing else."""

    times: tuple[When, ...]
    alone: bool
    reigns: tuple[str, ...]


class Question(Text):
    """A question; like any text, it is read once, and what is kept with it may not be changed."""

    weights = kept(question_weights)
    chapter = kept(asked_chapter)

    @cached_property
    def search_weights(self) -> dict[str, float]:
        """The terms that are searched, with their weights."""
        return search_weights(self.string) | date_weights(self.times)

    @cached_property
    def times(self) -> AskedTimes:
        """The times of the dates in it; a date that does not exist has none."""
        written = _ASKED_YEAR.sub("in", self.string)
        mentions = self.dates if written == self.string else find_dates(written)
        rest = _WORK.sub(" ", written)
        for mention in mentions:
            rest = rest.replace(mention.label, " ")
        rest = rest if _OF_SOMEBODY.search(rest) else _EVENTS.sub(" ", rest)
        times = tuple(when for mention in mentions for when in mention.times)
        reigns = tuple(mention.label for mention in mentions if any(when.calendar == "reign" for when in mention.times))
        return AskedTimes(times, bool(times) and not (has_subject(rest) and terms(rest)), reigns)

    def translated_terms(self, into: str) -> dict[str, float]:
        """Return the translations of its words as terms of another language, with their weights."""
        return translated_terms(self._translations(into))

    def with_translated(self, words: Set[str], into: str) -> set[str]:
        """Add to the terms of passages its words that the passages have in translation."""
        found = self._translations(into)
        return set(words).union(*(word for word, some in found if any(words >= set(meaning) for meaning in some)))

    def _translations(self, into: str) -> Translations:
        return self.once(translations, self.language, into)

    @cached_property
    def shapes(self) -> tuple[Shape, ...]:
        """The kinds of answer that it asks for."""
        question = self.string.strip()
        if _SHAPES["introduce"].search(question):
            return ("definition",)
        rules = _SHAPES["asked"]["zh" if has_han(question) else "en"]
        found = [shape for shape, pattern in rules.items() if pattern.search(question)]
        return tuple(shape for shape in found if not (shape == "manner" and len(found) > 1))

    @cached_property
    def _quantities(self) -> list[Quantity]:
        return quantities(_WHICH.sub("", self.string))  # the 一 of 哪一年 is not a number

    def answered_by(self, sentence: str, shape: Shape) -> bool:
        """Return whether a sentence has one of the kinds of thing that are asked for."""
        if shape in ("time", "number"):
            found = read_text(sentence).quantities
            new = [one for one in found if not any(one.agrees_with(other) for other in self._quantities)]
            if shape == "number":
                return any(quantity.kind in ("number", "percent", "year") for quantity in new)
            dated = any(_is_date(quantity, sentence) for quantity in new)
            return dated or bool(_SHAPES["given"]["time"].search(sentence))
        if shape == "person":
            names = _SHAPES["capitalised"].findall(sentence)
            return has_han(sentence) or any(name.lower() not in self.string.lower() for name in names)
        return bool(_SHAPES["given"][shape].search(sentence))


def _is_date(quantity: Quantity, sentence: str) -> bool:
    if quantity.kind in ("year", "month", "day"):
        return True
    if quantity.kind != "number" or not all(value.is_integer() for value in quantity.values):
        return False
    value = max(quantity.values)
    written = quantity.end - quantity.start == len(str(int(value)))
    before = sentence[max(0, quantity.start - 8) : quantity.start]
    return written and (999 < value < 2100 or (99 < value <= 999 and bool(_SHAPES["before_year"].search(before))))


def date_weights(asked: AskedTimes) -> dict[str, float]:
    """Weight the terms of reign dates in a question that asks for nothing else."""
    words = filter(lambda term: is_wide(term[0]), terms(" ".join(asked.reigns))) if asked.alone else ()
    return {term: _PAIR_OF_DATE if len(term) > 1 else _CHARACTER_OF_DATE for term in words}


def years_between(text: str) -> tuple[int, int]:
    """Read the years that a filter allows: `755`, `755..763`, `140 BC..87 BC`; `RefusedError` where they are none."""
    ends = [end.strip() for end in unicodedata.normalize("NFKC", text).split("..")]
    try:
        if len(ends) > 2 or not all(ends):
            raise ValueError("it is not a year or two with `..` between them")
        found = [_read_end(end) for end in ends]
        if len({when.calendar for when in found}) > 1:
            raise ValueError("its ends are of two calendars")
        if found[-1].last < found[0].first:
            raise ValueError(f"it runs backwards, from {western_of(found[0])} to {western_of(found[-1])}")
    except ValueError as fault:
        raise RefusedError(
            f"`when` is {text[:100]!r}: {fault}. Expected a year or two, the earlier first, both of one calendar, such "
            "as `755`, `755..763`, `140 BC..87 BC` or `天宝十四载..广德元年`."
        ) from None
    return found[0].first, found[-1].last


def _read_end(end: str) -> When:
    if year := re.fullmatch(r"(?:公元)?(前?\d{1,4})", end, re.ASCII):
        end = f"公元{year[1]}年"
    elif re.fullmatch(r"-\d+", end):
        raise ValueError(f"`{end}` may be two different years")
    mentions = find_dates(end)
    if len(mentions) != 1 or mentions[0].end - mentions[0].start < len(end):
        raise ValueError(f"`{end}` is not one date")
    if not mentions[0].times:
        raise ValueError(mentions[0].fault)
    if len(mentions[0].times) > 1:
        years = ", ".join(map(western_of, mentions[0].times))
        raise ValueError(f"`{end}` may be {years}; write the dynasty before it, such as 齐建元元年")
    return mentions[0].times[0]


read_question = partial(memory.read, Question)
"""Return a question, with what was worked out of it before."""
