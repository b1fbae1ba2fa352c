"""A text, and the memory that finds it again by its string, with all that was worked out of it before."""

from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property, partial
from threading import Lock
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from shiguan.reading.names import NamedText
from shiguan.text.content_words import ContentWord, content_words
from shiguan.text.dates import Mention, find_dates
from shiguan.text.languages import detect_language
from shiguan.text.name_forms import names_of
from shiguan.text.quantities import Quantity, quantities
from shiguan.text.sentences import sentence_spans
from shiguan.text.terms import terms

Result = TypeVar("Result")
More = ParamSpec("More")


class Text:
    """A text; what is asked of it is worked out on first use and kept with it. Nothing kept may be changed."""

    def __init__(self, string: str) -> None:
        self.string = string
        self._kept: dict[Any, Any] = {}

    def once(
        self, function: Callable[Concatenate[str, More], Result], *given: More.args, **named: More.kwargs
    ) -> Result:
        """Return what a function of a module makes of the text and further values: it is called once for each."""
        key = (function, given, *named.items())
        if key not in self._kept:
            self._kept[key] = function(self.string, *given, **named)
        found: Result = self._kept[key]
        return found

    @cached_property
    def language(self) -> str:
        return detect_language(self.string)

    @cached_property
    def sentences(self) -> tuple[tuple[int, int], ...]:
        return tuple(sentence_spans(self.string))

    @cached_property
    def terms(self) -> tuple[str, ...]:
        return tuple(terms(self.string))

    @cached_property
    def words(self) -> frozenset[str]:
        """Its terms, each once."""
        return frozenset(self.terms)

    @cached_property
    def shingles(self) -> frozenset[tuple[str, ...]]:
        """Overlapping runs of three of its terms, which are the same in simplified and traditional characters."""
        words = self.terms
        if len(words) < 3:
            return frozenset([words or (self.string.strip(),)])
        return frozenset(zip(words, words[1:], words[2:], strict=False))

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        return tuple(quantities(self.string))

    @cached_property
    def dates(self) -> tuple[Mention, ...]:
        return tuple(find_dates(self.string))

    @cached_property
    def names(self) -> tuple[str, ...]:
        return names_of(self.string)

    def content_words(self, *, translated: bool = False, names: bool = True) -> tuple[ContentWord, ...]:
        """Return its content words; see the function of this name."""
        return self.once(content_words, translated=translated, names=names)

    @cached_property
    def named(self) -> NamedText:
        """The same text, to look for names in."""
        return NamedText(self.string, self.words)


Kind = TypeVar("Kind", bound=Text)
_LEAST: Final = 50


class Memory:
    """
    The texts read last, for all threads: at most so many characters, and none longer than a share of them.

    A longer text is read as well, but only whoever holds it keeps what was worked out of it: a hostile one of megabytes
    neither stays nor makes others go.
    """

    def __init__(self, most: int, longest: int) -> None:
        """
        Set the limits.

        :param most: Characters of all texts together, each of which counts as at least 50.
        :param longest: Characters of one text.
        """
        self._most, self._longest = most, longest
        self._texts: OrderedDict[str, Text] = OrderedDict()
        self.size = 0
        self._lock = Lock()

    def read(self, kind: type[Kind], string: str) -> Kind:
        """Return the text with this string, and make it if it is not there, or there as another kind."""
        with self._lock:
            known = self._texts.get(string)
            if isinstance(known, kind):
                self._texts.move_to_end(string)
                return known
            made = kind(string)
            if len(string) > self._longest:
                return made
            if known is not None:
                vars(made).update(vars(known))  # what is known of it does not depend on the kind
            else:
                self.size += max(len(string), _LEAST)
            self._texts[string] = made
            self._texts.move_to_end(string)
            while self.size > self._most:
                self.size -= max(len(self._texts.popitem(last=False)[0]), _LEAST)
        return made


# All that can be kept of a text takes 400 bytes for each Chinese character, 200 for a Latin one; mostly it is half.
memory = Memory(most=200_000, longest=50_000)


read_text = partial(memory.read, Text)
"""Return a text, with what was worked out of it before."""
