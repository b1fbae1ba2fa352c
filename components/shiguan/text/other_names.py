"""Finds other names of a person in texts that state them: 杜甫，字子美; Mark Twain, born Samuel Clemens."""

import re
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any

from haystack.document_stores.types import DocumentStore

from shiguan.tenants import TermStore
from shiguan.text.dictionary import dictionary_words
from shiguan.text.languages import HAN, fold_han, has_han, search_weights
from shiguan.text.names import LONG_SURNAMES, SURNAMES, plain_spelling
from shiguan.text.terms import fold_text, terms

Pair = tuple[str, str]
"""A person's name and another one."""

_SENTENCE, _CLAUSE = re.compile(r"[^。！？；;!?\n○]+"), re.compile(r"[^，,、：:（）()「」“”\s]+")
_SAYS_SO = re.compile("[字号名讳]")
_PERSON = f"(?P<person>(?:{'|'.join(sorted(LONG_SURNAMES))}|[{SURNAMES}])[{HAN}]{{1,2}}?)"
_ALONE = re.compile(f"{_PERSON}者?")
# 字子美; 自号香山居士; 本名药师; 太宗文武大圣大广孝皇帝讳世民. Without 字 before it, 号 mostly means a shout.
_OTHER = re.compile(
    f"(?:{_PERSON})?(?:[又小]?字(?P<zi>[{HAN}]{{2}})|[自又别晚]号[曰为]?(?P<own>[{HAN}]{{2,5}})|号(?P<hao>[{HAN}]{{2,5}})"
    f"|[本原又]名(?P<ming>[{HAN}]{{2,3}}))"
)
_RULER = re.compile(f"(?P<person>[{HAN}][祖宗])[{HAN}]{{0,16}}皇帝(?:姓.氏)?讳(?P<hui>[{HAN}]{{2}})")
_MOST_CLAUSES = 6
_WORD = r"(?<![\w'’-])(?:[A-Z]\.|[A-Z][\w'’-]{1,30})"
_WORDS = rf"{_WORD}(?: (?:of |the |de |von )?{_WORD}){{0,4}}"
_NAME = rf"(?!(?:The|In|As|When|After|But|His|Her|He|She) ){_WORDS}"
_PEN_NAME = "(?:courtesy|style|art|pen) name"
_LATIN = re.compile(
    rf"(?P<name>{_NAME})(?: was|,? who was|,| ?\()(?: (?:his|her|the))? ?"
    rf"(?P<kind>{_PEN_NAME}|(?:birth|personal|temple|real) name"
    r"|(?:also|better|formerly|originally|later) (?:known as|called)|born|née?)(?: of| was)?:? "
    rf"[\"“‘']?(?P<other>{_NAME})(?=[\"”’']?(?:[,;.)]| (?:was|is|and)\b|$))"
)
_RUN, _CAPITALISED = re.compile(f"[{HAN}]{{2,}}"), re.compile(_WORDS)
_LONGEST, _MOST_READ, _MOST_NAMES = 5, 200, 4


def other_names(text: str) -> Iterator[Pair]:
    """Yield the pairs of names that a text says are one person's."""
    folded = fold_han(text)
    for sentence in _SENTENCE.finditer(folded):
        if _SAYS_SO.search(sentence[0]):
            yield from _in_sentence(text, folded, sentence)
    for found in _LATIN.finditer(text):
        name, other = found["name"], found["other"]
        if (" " in other or re.fullmatch(_PEN_NAME, found["kind"])) and other not in name and name not in other:
            yield name, other


def _in_sentence(text: str, folded: str, sentence: re.Match[str]) -> Iterator[Pair]:
    """Read the clauses of a sentence that begins with a name: 李白，字太白，号青莲居士."""
    person, styled = "", False
    for at, clause in enumerate(_CLAUSE.finditer(folded, *sentence.span())):
        found = _OTHER.fullmatch(clause[0]) or _RULER.fullmatch(clause[0])
        if at == 0:
            # A heading may be glued to the text below it: 李密李密，字玄邃.
            half = clause[0][: len(clause[0]) // 2]
            first = found or _ALONE.fullmatch(half if half * 2 == clause[0] else clause[0])
            person = text[clause.start() : clause.start() + len(first["person"] or "")] if first else ""
        if not person or at > _MOST_CLAUSES:
            return
        if found and found.lastgroup and not (at and found["person"]):
            styled = styled or found.lastgroup == "zi"
            start, end = found.span(found.lastgroup)
            if styled or found.lastgroup != "hao":
                yield person, text[clause.start() + start : clause.start() + end]


def name_terms(text: str) -> Iterator[str]:
    """Yield the terms by which a passage with a person's other name is found; they differ from the terms of words."""
    for pair in other_names(text):
        yield from (f"={_folded(name)}" for name in pair)


def names_in_library(question: str, store: DocumentStore, filters: dict[str, Any] | None) -> list[Pair]:
    """Find other names for those in a question, as `name, other`, where passages of the library state them."""
    asked = _candidates(question)
    if not asked or not isinstance(store, TermStore):
        return []
    found = _of_question(question, asked, store.texts_with(sorted(f"={name}" for name in asked), filters))
    return sorted(found, key=lambda pair: -len(pair[0]))[:_MOST_NAMES]


def other_name_weights(pairs: Iterable[Pair]) -> dict[str, float]:
    """Weight the terms of other names: full names as those of the question, others half and without characters."""
    weights: dict[str, float] = {}
    for _, other in pairs:
        person = has_han(other) and _ALONE.fullmatch(fold_han(other))
        for term, weight in search_weights(other).items():
            if person or not has_han(other):
                weights[term] = weight
            elif len(term) > 1:
                weights.setdefault(term, weight / 2)
    return weights


def _of_question(question: str, asked: set[str], texts: Iterable[str]) -> set[Pair]:
    folded = _folded(question)
    found = set()
    for name, other in {pair for text in texts for pair in other_names(text)}:
        person, second = _folded(name), _folded(other)
        if person in asked and second not in folded:
            found.add((name, other))
        elif second in asked and person not in folded and _is_meant(second, person, folded):
            found.add((other, name))
    return found


def _is_meant(second: str, person: str, question: str) -> bool:
    """Return whether the characters of a name are meant as a name: 白乐天 and 子美, not 卑微之意 or 中立."""
    if not _RUN.match(second) or person[-1] in "祖宗" or any(f"{person[:size]}{second}" in question for size in (1, 2)):
        return True
    for run in filter(lambda run: second in run, _RUN.findall(question)):
        start, end = (at := run.index(second)), at + len(second)
        words = list(dictionary_words(run, translated=False))
        ends = list(accumulate((len(word) for word, _ in words), initial=0))
        ordinary = (len(word) > 1 and not any(m[:1].isupper() for m in meanings) for word, meanings in words)
        within = any(common and ends[place] < end and ends[place + 1] > start for place, common in enumerate(ordinary))
        if not within and (start == 0 or run[start - 1] not in SURNAMES):
            return True
    return False


def _candidates(question: str) -> set[str]:
    """Return all that may be a name in a question."""
    question = question[:_MOST_READ]
    found = set()
    for run in _RUN.findall(_folded(question)):
        found |= {run[at : at + size] for size in range(2, _LONGEST + 1) for at in range(len(run) - size + 1)}
    for run in _CAPITALISED.findall(plain_spelling(question)):
        words = _folded(run).removesuffix("'s").split(" ")
        names = {" ".join(words[at:end]) for at in range(len(words)) for end in range(at + 1, len(words) + 1)}
        found |= set(filter(terms, names))  # a question that begins with Who names nobody
    return found


def _folded(name: str) -> str:
    return fold_text(plain_spelling(name))
