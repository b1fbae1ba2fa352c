"""Dates what a passage describes: by the dates that it has and, in annals, by those before it that still hold."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from typing import Any

from haystack import Document

from shiguan.text.dates import BELOW, CHANGED, Mention, counted, find_dates, resolved, that_year, within_year
from shiguan.text.languages import fold_han
from shiguan.text.reigns import Reign, eras, reigns
from shiguan.text.sentences import sentence_spans
from shiguan.text.times import WHEN_FROM, WHEN_TO, When, month_name, time_meta

# An annal: at least this many sentences begin with a date; one in this many with a month or a day, or one in this many
# passages with any date; and this share of the years does not run backwards. In the Old History of Tang, .17 to .64 of
# the sentences of annals begin with a month or day, .08 of lives and treatises except those on heaven and portents.
_FEWEST, _OF_SENTENCES, _OF_PASSAGES, _FORWARD = 5, 7, 3, 0.8
_CHANGE = re.compile(r"改元(?:曰|为|号)?(\w\w)(?![一二三四五六七八九十元])")
# A new era begins at most this many years after the last year that was read.
_LONGEST_GAP = 3
_OPENING = re.compile(r"[\s【\[（(○◎《「“『·]*")


def with_times(children: Sequence[Document], parents: Iterable[Document]) -> list[Document]:
    """
    Add `when`, the times that they describe, to the meta of children, and the years that these span to that of parents.

    A date counts for the child that has it. In an annal, a chapter whose sentences begin with dates, mostly parts of
    dates (三月, 甲辰), in ascending years, it holds until the next one. A time in the text is `written`, one that holds
    from before `carried`.
    """
    dated: list[Document] = []
    spans: dict[str, list[int]] = {}
    # The rows of a file may be the entries of one annal.
    for _, chapter in groupby(children, key=lambda child: [child.meta.get(k) for k in ("file_id", "title", "section")]):
        passages = list(chapter)
        for child, times in zip(passages, _times(passages), strict=True):
            if not (meta := time_meta(times)):
                dated.append(child)
                continue
            # Content stored under an id never changes, so a passage with another date gets another id.
            identifier = hashlib.sha256(f"{child.id} {json.dumps(meta)}".encode()).hexdigest()
            dated.append(replace(child, id=identifier, meta={**child.meta, **meta}))
            if WHEN_FROM in meta:
                spans.setdefault(child.meta["parent_id"], []).extend((meta[WHEN_FROM], meta[WHEN_TO]))
    for parent in parents:
        if parent.id in spans:
            parent.meta.update({WHEN_FROM: min(spans[parent.id]), WHEN_TO: max(spans[parent.id])})
    return dated


def _times(children: list[Document]) -> Iterator[list[When]]:
    context = "\n".join([str(children[0].meta.get("title") or ""), *(children[0].meta.get("section") or ())])
    texts = [child.content or "" for child in children]
    found = [find_dates(text, context) for text in texts]
    certain = [mention.times[0].first for mentions in found for mention in mentions if len(mention.times) == 1]
    found = [[resolved(mention, certain) for mention in mentions] for mentions in found]
    annal = _is_annal(texts, found)
    reckoning = _Reckoning()
    for text, mentions in zip(texts, found, strict=True):
        if annal:
            yield list(reckoning.times_of(text, mentions))
        else:
            yield [*(when for mention in mentions for when in mention.times), *that_year(text, mentions)]


def _starts(text: str) -> list[int]:
    """Return where the words of each sentence and of each line begin, because headings are not sentences."""
    starts = {start for start, _ in sentence_spans(text)} | {found.end() for found in re.finditer("\n+", text)}
    opened = {found.end() for start in starts if (found := _OPENING.match(text, start))}
    return [at for at in sorted(opened) if at < len(text)]


class _Reckoning:
    """The year, month and reign that an annal has reached."""

    def __init__(self) -> None:
        self._now: When | None = None
        self._reign: Reign | None = None
        self._year = ""
        self._last: int | None = None

    def times_of(self, text: str, mentions: Sequence[Mention]) -> Iterator[When]:
        """Yield the times of the next passage, and advance to its last."""
        plain = fold_han(text)
        starts = _starts(text)
        whole = {mention.start: mention for mention in mentions}
        inside = [(mention.start, mention.end) for mention in mentions]
        changes = {found.start(): found[1] for found in _CHANGE.finditer(plain) if found[1] in eras()}
        for at in sorted({*starts, *whole, *changes}):
            if at in changes:
                self._change(changes[at])
            elif at in whole:
                yield from whole[at].times
                self._advance(whole[at], plain, begins=at == starts[0])
            elif any(start < at < end for start, end in inside):
                continue
            elif (when := self._below(plain, at)) is not None:
                yield when
            elif at == starts[0] and self._now is not None:
                yield self._now

    def _advance(self, mention: Mention, plain: str, *, begins: bool) -> None:
        changed = bool(CHANGED.search(plain, 0, mention.start))
        if len(mention.times) != 1 or not (mention.at_head or changed):
            return
        when, now = mention.times[0], self._now
        if now is not None and ((when.first < now.first and not begins) or (changed and when.first != now.first)):
            return  # the text looks back, and the year goes on
        kept = (now.month, now.leap) if now is not None and changed else (when.month, when.leap)
        self._reign = mention.reigns[0] if mention.reigns else None
        self._year = mention.label[: mention.year_end] if self._reign else mention.label
        self._set(when.first, kept[0], leap=kept[1])

    def _change(self, era: str) -> None:
        """Begin the era that a text proclaims: 改元曰至德."""
        last = self._now.first if self._now is not None else self._last
        near = [reign for reign in reigns()[era] if last is not None and 0 <= reign.first - last <= _LONGEST_GAP]
        if near:
            now = self._now if self._now is not None and self._now.first == near[0].first else None
            self._reign, self._year = near[0], f"{near[0].name}元年"
            self._set(near[0].first, now.month if now else None, leap=now.leap if now else False)

    def _set(self, year: int, month: int | None, *, leap: bool) -> None:
        label = f"{self._year}{month_name(month, leap=leap)}" if self._reign else self._year
        precision: Any = "year" if month is None else "month"
        calendar: Any = "reign" if self._reign else "western"
        self._last = year
        self._now = When(year, year, precision, month, leap, calendar, "carried", label)

    def _below(self, plain: str, at: int) -> When | None:
        """Read a date whose year, or month, is that of the text before."""
        parts = _parts_at(plain, at)
        if not parts or self._now is None:
            return None
        year, written = self._now.first, False
        if parts["number"]:
            found = self._reign.year(counted(parts["number"])) if self._reign else None
            if found is None or found < year:
                # A year of another reign, which was not recognized: no year is better than a wrong one.
                self._now = None
                return None
            year, written, self._year = found, True, f"{self._reign.name}{parts['year']}"  # type: ignore[union-attr]
        if parts["alone"] and not (parts["month"] or parts["year"]):
            return replace(self._now, how="carried", label=f"{self._now.label}{parts['alone']}")
        when, _ = within_year(When(year, year, calendar=self._now.calendar), parts)
        if when is None:
            return None
        if not parts["number"] and (when.month or 12) < (self._now.month or 0):
            self._now = None  # a new year has begun that was not recognized
            return None
        self._set(year, when.month, leap=when.leap)
        tail = "".join(parts[part] or "" for part in ("season", "month", "day"))
        return replace(when, how="written" if written else "carried", label=f"{self._year}{tail}")


def _parts_at(plain: str, at: int) -> dict[str, str]:
    """Return the parts of a date without a reign that begins at a place; none if there is no date."""
    found = BELOW.match(plain, at)
    parts = found.groupdict() if found else {}
    return parts if any(parts.values()) else {}


def _is_annal(texts: list[str], found: list[list[Mention]]) -> bool:
    sentences = below = begun = 0
    years: list[int] = []
    for text, mentions in zip(texts, found, strict=True):
        plain, starts = fold_han(text), _starts(text)
        whole = {found.start: found.times[0] for found in mentions if found.at_head and len(found.times) == 1}
        years += [when.first for when in whole.values()]
        parts = {at: _parts_at(plain, at) for at in starts if at not in whole}
        closer = [
            at
            for at in starts
            if (whole[at].month if at in whole else parts[at].get("month") or parts[at].get("alone"))
        ]
        sentences += len(starts)
        below += len(closer)
        begun += starts[:1] == closer[:1] != [] or starts[:1] == sorted(whole)[:1] != []
    forward = sum(later >= earlier for earlier, later in pairwise(years))
    return (
        len(years) + below >= _FEWEST
        and bool(years)
        and (below * _OF_SENTENCES >= sentences or begun * _OF_PASSAGES >= len(texts))
        and forward >= _FORWARD * (len(years) - 1)
    )
