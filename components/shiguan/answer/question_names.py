"""Finds the names of a question that no passage or nothing in the library has, and the names probably meant."""

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any

from haystack import Document
from haystack.document_stores.types import DocumentStore

from shiguan.reading.passage import MOST_QUOTED, Passage, words_of
from shiguan.reading.text import read_text
from shiguan.tenants import TermStore
from shiguan.text.dictionary import dictionary_words
from shiguan.text.languages import fold_han, has_han
from shiguan.text.name_forms import capitalised_words, foreign_names, han_names, names_of
from shiguan.text.names import reading
from shiguan.text.terms import terms

_LATIN_NAME = re.compile(r"(?<![\w'’-])[A-Z][^\W\d_]{3,}")
# The similarity of two spellings of one name: one different letter in seven is enough (Ismael is Ishmael).
_ALIKE = 0.8
_PRIVATE = 0xE000
"""The first of Unicode's private-use characters."""
# Languages that write a name with the same characters, and those in which its dictionary has it.
_IN_HAN, _READ = frozenset({"zh", "ja"}), frozenset({"zh", "ja", "en"})
_SHORT_NAME = 2  # characters


def near_names(question: str, passages: Sequence[Document]) -> list[str]:
    """Suggest a name of the passages, alike in letters or in sound, for each name of a question that no passage has."""
    in_chinese = read_text(question).language == "zh"
    note = "没有一段提到“{}”。是否指“{}”？" if in_chinese else "No passage has “{}”. Did you mean “{}”?"
    return [note.format(*pair) for pair in _near(question, passages).items()]


def absent_names(
    question: str, passages: Sequence[Document], store: DocumentStore, filters: dict[str, Any] | None
) -> list[dict[str, Any]]:
    """
    Find the names of a question that occur nowhere in a library, each as `term`, with names like it as `near`.

    None is returned where what is shown is in a language that may have a name in a form that is not known here.
    """
    language = read_text(question).language
    searched = _READ if language in _IN_HAN else frozenset({language})
    # Passages after those that are shown may be in any language of the library.
    shown = {str(passage.meta.get("language", language)) for passage in passages[:MOST_QUOTED]}
    if not isinstance(store, TermStore) or not shown <= searched:
        return []
    named = {name: own for name, own in _names_by_terms(question).items() if own}
    read = words_of(passages) if named else set[str]()
    names = {name: own for name, own in named.items() if read.isdisjoint(own)}
    asked = {term for own in names.values() for term in own}
    known = set[str]().union(*(store.known_terms(asked, each, filters) for each in searched)) if names else set()
    missing = [name for name, own in names.items() if known.isdisjoint(own)]
    near = _near(question, passages) if missing else {}
    told = dict.fromkeys(name if name in near else _whole_name(name, question) for name in missing)
    return [{"term": name, "near": [near[name]] if name in near else []} for name in told]


def _whole_name(word: str, question: str) -> str:
    """Return the whole name that a word is part of: Samuel Ward for Ward, and for Ward's."""
    parts = (part for name in names_of(question) for part in re.split(r"(?<=['’]s) ", name))
    whole = next((part for part in parts if word in part.split(" ")), word)
    return re.sub(r"['’]s$", "", whole)


def _names_by_terms(question: str) -> dict[str, list[str]]:
    """Return the names of a question, each with terms of which a library that has the name knows at least one."""
    found = {name: terms(name) for name in capitalised_words(question)}
    for characters, meanings in dictionary_words(question, translated=False) if has_han(question) else ():
        # Contemporaries call a dynasty and its rulers, 秦朝 and 唐宪宗, just 秦 and 宪宗.
        if len(characters) > _SHORT_NAME and meanings and all(meaning[:1].isupper() for meaning in meanings):
            # Not the first word, which of a person is the surname, and that of many others.
            words = [terms(meaning) for meaning in meanings]
            found["".join(characters)] = ["".join(characters[-2:]), *(one for own in words for one in own[1:] or own)]
    return found


def _near(question: str, passages: Sequence[Document]) -> dict[str, str]:
    if not has_han(question) and not capitalised_words(question):
        return {}
    known, folded = words_of(passages), fold_han(question)
    latin = [match[0] for name in foreign_names(question, known) if (match := _LATIN_NAME.match(name))]
    # Two syllables sound alike too often.
    han = [name for name in _han_names(folded) if len(name) > _SHORT_NAME and name[:2] not in known]
    if not latin and not han:
        return {}
    text = "\n".join(f"{Passage(passage).headings} {passage.content or ''}" for passage in passages)
    return dict([*_latin(latin, text), *_han(han, folded, text)])


def _latin(missing: Sequence[str], text: str) -> Iterator[tuple[str, str]]:
    known = {name.lower(): name for name in _LATIN_NAME.findall(text)} if missing else {}
    for name in missing:
        for close in get_close_matches(name.lower(), known, n=1, cutoff=_ALIKE):
            # African is not a misspelling of Africa.
            if not (name.lower().startswith(close) or close.startswith(name.lower())):
                yield name, known[close]


def _han(missing: Sequence[str], question: str, text: str) -> Iterator[tuple[str, str]]:
    if not missing:
        return
    text = fold_han(text)
    # A character for each sound, so that a name is found by its sound as it is by its letters.
    sounds = {sound: chr(_PRIVATE + at) for at, sound in enumerate(set(map(reading, {*question, *text})) - {""})}
    codes = {ord(character): sounds.get(reading(character), character) for character in {*question, *text}}
    coded = text.translate(codes)
    for name in missing:
        places = (match.start() for match in re.finditer(re.escape(name.translate(codes)), coded))
        alike = (text[at : at + len(name)] for at in places)
        if other := next((one for one in alike if _han_names(one) == [one]), ""):
            yield name, other


def _han_names(text: str) -> list[str]:
    return [text[slice(*span)] for span in han_names(text)]
