"""One sentence as it is compared with another: its names, its words, and its numbers with what they count."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from shiguan.resources import read_patterns, read_table
from shiguan.text.dictionary import dictionary_words
from shiguan.text.languages import HAN, character_weight, fold_han
from shiguan.text.name_forms import CLEAR_SURNAMES
from shiguan.text.names import SURNAMES, capitalised_words, sounds_of_text
from shiguan.text.quantities import COUNTED, FULL_MONTHS, Quantity, quantities
from shiguan.text.terms import fold_text, rarity, terms

Span = tuple[int, int]

_PATH = Path(__file__).with_name("disagreements.yaml")
TABLE: dict[str, Any] = read_patterns(_PATH) | {name: read_table(_PATH)[name] for name in ("doer", "place")}
_HAN_RUN = re.compile(f"[{HAN}]+")
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
# A year at the end of a line that nothing leads to and no stop follows is a heading.
_BEFORE_YEAR = "于在自至为是：:(（"
_CLAUSE = re.compile(r"[,，;；:：、()（）]")
# So many characters before and behind a number tell what it is, and so many words what it counts.
_NEAR = 24
# Sentences that share fewer of their terms are not compared; fewer shared ones are chance.
_ALIKE, _FEWEST = 0.3, 3
_GIVEN, _IN_NO_LIST = 2, 0.9
_CUES = {
    name: (
        frozenset(terms(word)[-1] for word in words.split()),
        re.compile("|".join(word if _HAN_RUN.match(word) else rf"\b{word}\b" for word in words.split()), re.I),
    )
    for name, words in (TABLE["doer"] | TABLE["place"]).items()
}
_CUE_TERMS = frozenset().union(*(known for known, _ in _CUES.values()))


@dataclass(frozen=True)
class Amount:
    """A number with what stands around it: what it is, measures and counts, and how exact it is."""

    number: Quantity
    sort: str
    years: frozenset[float]
    measure: str
    size: float
    hedges: frozenset[str]
    thing: str
    lunar: bool

    @property
    def span(self) -> Span:
        return self.number.start, self.number.end


@dataclass(frozen=True)
class Word:
    """A word that tells something, where it stands, and how much it tells."""

    key: str
    span: Span
    weight: float


class Statement:
    """One sentence, of which more is read the more it looks like another one."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.terms = frozenset(terms(text))
        self.wide = bool(_HAN_RUN.search(text))
        tells = bool(TABLE["number"].search(text)) or not _CUE_TERMS.isdisjoint(self.terms)
        self.tells = tells and not TABLE["no_statement"].search(text)

    def may_match(self, other: "Statement") -> bool:
        """Tell whether it is worth while to read more of two sentences: most pairs end here."""
        if self.wide != other.wide:
            return bool(self.numbers and other.numbers) or not self.cues.keys().isdisjoint(other.cues)
        shared = len(self.terms & other.terms)
        return shared >= _FEWEST and shared >= _ALIKE * min(len(self.terms), len(other.terms))

    @cached_property
    def folded(self) -> str:
        return fold_han(self.text)

    @cached_property
    def plain(self) -> str:
        return fold_text(self.text)

    @cached_property
    def sounds(self) -> frozenset[str]:
        return frozenset(sounds_of_text(self.folded))

    @cached_property
    def numbers(self) -> list[Quantity]:
        return quantities(self.text) if TABLE["number"].search(self.text) else []

    @cached_property
    def amounts(self) -> list["Amount"]:
        return [_amount(self, number) for number in self.numbers]

    @cached_property
    def names(self) -> list[Span]:
        found = list(_han_names(self.folded)) if self.wide else _latin_names(self.text)
        return [one for one in found if not any(q.start < one[1] and one[0] < q.end for q in self.numbers)]

    @cached_property
    def words(self) -> list[Word]:
        """What it says beside names and numbers."""
        taken = [(one.start, one.end + (self.text[one.end : one.end + 1] in COUNTED)) for one in self.numbers]
        taken += [match.span() for match in TABLE["light"].finditer(self.text)]
        taken += self.names
        if self.wide:
            pieces = ((self.folded[slice(*span)], span) for span, _ in _segments(self.folded))
            found = [Word(word, span, sum(map(character_weight, word))) for word, span in pieces]
        else:
            matches = ((match, term) for match in _WORD.finditer(self.text) for term in terms(match[0]))
            found = [Word(term, match.span(), rarity(term)) for match, term in matches]
        return [one for one in found if one.weight and not any(s < one.span[1] and one.span[0] < e for s, e in taken)]

    @cached_property
    def bound(self) -> frozenset[str]:
        return frozenset(name for name, pattern in TABLE["bound"].items() if pattern.search(self.text))

    @cached_property
    def cues(self) -> dict[str, Span]:
        """The words that only one can go with, by what they mean."""
        near = ((name, one) for name, (known, one) in _CUES.items() if not known.isdisjoint(self.terms))
        found = ((name, match.span()) for name, one in near for match in one.finditer(self.folded))
        return {name: span for name, span in reversed(list(found)) if not self.wide or self._is_word(span)}

    def _is_word(self, span: Span) -> bool:
        """Tell whether what stands here in Han characters is not a part of another word: 帅 in 元帅."""
        start = next((start for (start, end), _ in _segments(self.folded) if start <= span[0] < end), span[0])
        return self.folded[start : span[0]] in ("", "被", "所")

    def says(self, word: Word) -> float:
        """Give the share of a word of the same language, 0 to 1, that it says."""
        if not self.wide:
            return float(word.key in self.terms)
        telling = [character for character in word.key if character_weight(character)]
        return sum(character in self.terms for character in telling) / len(telling) if telling else 1.0

    def near(self, at: Span) -> list[Word]:
        """Give the words of the clause in which something stands, of the sentence where that has none or opens it."""
        cuts = [0, *(match.end() for match in _CLAUSE.finditer(self.text)), len(self.text)]
        start, end = max(cut for cut in cuts if cut <= at[0]), min(cut for cut in cuts if cut >= at[1])
        found = [word for word in self.words if start <= word.span[0] < end]
        return found if len(found) > 1 and start else self.words


statement_of = lru_cache(1024)(Statement)
"""The statement that a sentence makes; quotations of a conversation come again."""


def western_years(text: str, number: Quantity) -> frozenset[float]:
    """Give the Western years that a number of a text may be: as written, or by its reign."""
    if number.kind == "year" and (years := frozenset(value for value in number.values if value >= 100)):
        # The last two months of a Chinese year reach into the next Western one.
        late = re.match(r".?(?:闰|閏)?十[一二]月", text[number.end :]) and len(number.values) > 1
        return years | {year + 1 for year in years} if late else years
    likely = number.kind == "number" and all(100 <= value <= 2100 and value.is_integer() for value in number.values)
    leads = TABLE["in_year"].search(text[: number.start][-_NEAR:])
    if not (likely and leads and text[number.start : number.end].isdigit()):
        return frozenset()
    # In 450 the city fell; with a garrison of 450 men.
    counts = re.match(r"\s+([a-z]\w*)", text[number.end :])
    return frozenset() if counts and terms(counts[1]) and not counts[1].endswith("ed") else number.values


def _latin_names(text: str) -> list[Span]:
    words = capitalised_words(text)
    # What opens a sentence has a capital in any case; a word that is in no list of words is a name.
    opening = _WORD.match(text)
    if opening and opening[0][0].isupper() and not text.startswith(tuple(words[:1])):
        words[:0] = [opening[0]] if any(rarity(term) > _IN_NO_LIST for term in terms(opening[0])) else []
    names: list[Span] = []
    at = 0
    for word in words:
        start = text.index(word, at)
        at = start + len(word)
        if names and text[names[-1][1] : start] == " ":
            names[-1] = (names[-1][0], at)
        else:
            names.append((start, at))
    return names


@lru_cache(1024)
def _segments(folded: str) -> list[tuple[Span, bool]]:
    """Cut Han text into words, each with whether it is a name: of the dictionary, or where a place stands."""
    found = []
    for run in _HAN_RUN.finditer(folded):
        at = run.start()
        for parts, meanings in dictionary_words(run[0], translated=False):
            capitals = [meaning[:1].isupper() or meaning == "place name" for meaning in meanings]
            # 太平 is peace as well, and a place behind 于.
            capital = any(capitals) and len(parts) > 1 and (all(capitals) or not at or folded[at - 1] in "于在")
            found.append(((at, at + len(parts)), capital))
            at += len(parts)
    return found


def _han_names(folded: str) -> Iterator[Span]:
    """Find names: those of the dictionary, and a surname with one or two characters that are no words."""
    segments = _segments(folded)
    at = 0
    while at < len(segments):
        (start, end), capital = segments[at]
        at += 1
        if capital:
            yield start, end
        elif end - start == 1 and folded[start] in SURNAMES and character_weight(folded[start]):
            # Some surnames are words more often, and then take two characters that are none.
            clear, before, stop = folded[start] in CLEAR_SURNAMES, at, end
            for given in (1, 2):
                (begin, finish), known = segments[at] if at < len(segments) else ((0, 0), False)
                if begin != stop or known or finish - end > _GIVEN or not _is_given(folded[begin:finish], given):
                    break
                stop, at = finish, at + 1
            if stop > end and (clear or at == before + _GIVEN):
                yield start, stop
            else:
                at = before


def _is_given(word: str, place: int) -> bool:
    """Tell whether a word may be the given name behind a surname, or the second half of it."""
    if len(word) > _GIVEN // place or word[0] in _CUE_TERMS or word in "生死卒":
        return False
    return all(map(character_weight, word)) and not TABLE["light"].search(word)


def _amount(statement: Statement, number: Quantity) -> "Amount":
    text = statement.text
    years = western_years(text, number)
    before, after = text[max(0, number.start - _NEAR) : number.start], text[number.end : number.end + _NEAR].lstrip()
    if before.endswith("前") or re.match(r"b\.?c", after, re.I):
        years = frozenset(-year for year in years)
    behind = re.split(r"[^\w\s%'’-]|\d", re.sub("^[余餘多]?[个個]?", "", after))[0]
    sizes = ((name, size) for name, units in TABLE["units"].items() for size, one in units.items() if one.match(behind))
    measure, size = next(sizes, ("", 1.0))
    hedges = {name for name in ("about", "above", "below") if TABLE[name].search(before)}
    hedges |= {name for name, one in (("above", "and_more"), ("about", "or_so")) if TABLE[one].match(after)}
    counted = TABLE["counted_before"].search(before)
    if counted and any(one.search(counted[1]) for one in TABLE["counted"].values()):
        behind = counted[1]
    thing = behind[:4] if _HAN_RUN.search(behind[:4]) else " ".join(behind.split()[:3])
    heads = statement.wide and after in ("年", "载") and before[-1:] not in _BEFORE_YEAR
    sort = "ordinal" if heads else "year" if years else _sort(statement, number, before, after)
    lunar = statement.wide and not text[number.start].isdigit()
    return Amount(number, sort, years, measure, float(size), frozenset(hedges), thing, lunar)


def _sort(statement: Statement, number: Quantity, before: str, after: str) -> str:
    """Tell parts of dates from amounts, and both from numbers that only name something: Line 8, 8号线."""
    label, opens = re.search(r"\b([A-Z]\w*)[ -]$", before), not _WORD.search(before) or before[-1:] in "，,；;。（("
    of_reign = "opens_reign_year" if opens else "reign_year"
    if (
        (TABLE["naming"]["before"].search(before) or TABLE["naming"]["behind"].match(after))
        or (opens and TABLE["naming"]["item"].match(after))
        or (number.kind in ("year", "day") and before[-1:] != "月" and TABLE["naming"][of_reign].match(after))
        or TABLE["naming"]["edition"].match(statement.text[number.start :])
        or (number.kind == "number" and label and terms(label[1]) and label[1] not in FULL_MONTHS.values())
    ):
        return "ordinal"
    if any(other.kind == "month" and other.start - number.end == 1 for other in statement.numbers):
        return "day"
    if number.kind == "year" or (number.kind == "day" and statement.wide and before[-1:] != "月"):
        return "number"  # so many years or days
    return number.kind
