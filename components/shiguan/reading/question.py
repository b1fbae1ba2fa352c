"""A question: the words that carry it, what kind of answer it asks for, when, and its words in another language."""

import re
from collections.abc import Set
from functools import cached_property, partial
from pathlib import Path
from typing import Literal

from shiguan.reading.text import Text, kept, memory, read_text
from shiguan.resources import read_patterns
from shiguan.text.asked_times import AskedTimes, asked_times, date_weights
from shiguan.text.dictionary import Translations, translated_terms, translations
from shiguan.text.languages import has_han, search_weights
from shiguan.text.library_questions import asked_chapter
from shiguan.text.quantities import Quantity, quantities
from shiguan.text.terms import question_weights

Shape = Literal["time", "number", "person", "place", "reason", "manner", "definition"]

_SHAPES = read_patterns(Path(__file__).with_name("question_shapes.yaml"))
_WHICH = re.compile(r"(?<=哪)[一1](?=[年月日天])")


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
        return asked_times(self.string, self.dates)

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


read_question = partial(memory.read, Question)
"""Return a question, with what was worked out of it before."""
