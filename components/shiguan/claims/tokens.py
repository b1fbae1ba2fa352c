"""A text as the words that matter to what it states: those that may be added or left out anywhere are not in it."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from shiguan.reading.folded import SIGNS
from shiguan.reading.text import read_text
from shiguan.resources import read_table
from shiguan.text.languages import HAN
from shiguan.text.quantities import Quantity
from shiguan.text.terms import UNSPACED, fold_text, is_wide

_TABLE = read_table(Path(__file__).with_name("restatement.yaml"))
WORDS = {name: frozenset(fold_text(words).split()) for name, words in _TABLE.items()}
"""The lists of words of `restatement.yaml`."""
_SPELLINGS = read_table(Path(__file__).with_name("spellings.yaml"))
_ALIKE = {word: words[0] for words in map(str.split, _SPELLINGS["words"].split(",")) for word in words[1:]}
_ENDS = [(re.compile(pattern), end) for pattern, end in _SPELLINGS["ends"].items()]
_ABBREVIATED = {short: full for kind in ("titles", "parts", "firms") for short, full in _SPELLINGS[kind].items()}
_UNITS = {
    unit: (base, float(factor)) for base, all_of in _SPELLINGS["units"].items() for unit, factor in all_of.items()
}
_MEASURE = re.compile(
    rf"[\s-]?[个個]?({'|'.join(sorted(_UNITS, key=len, reverse=True))})(?![A-Za-z²³]|(?<=[A-Za-z])\d)"
)
_TITLE, _PART, _FIRM = (rf"(?:{'|'.join(_SPELLINGS[kind])})" for kind in ("titles", "parts", "firms"))
ABBREVIATION = (
    rf"\b(?:{_TITLE}\.?(?= [A-Z])|(?i:{_TITLE})\.(?= [a-z])|{_PART}\.(?= ?(?:\d|[IVX]+\b))|(?i:{_FIRM})\."
    r"|(?i:\bU\.S(?:\.A\b)?|\bU\.[KN]\b)|\b[A-Z](?:\.[A-Z])+\b(?!\.[A-Z]|\.? [A-Z][a-z])|\bPh\.D\b|[ap]\.m\b)"
)
"""The short forms of words that are written out elsewhere, as a pattern: Gen. before a name, Fig. before a number."""
_FORMS = [verb.split() for verb in _TABLE["irregular"].split(",")]
IRREGULAR = {form: verb for verb, *forms in _FORMS for form in forms}
"""The verbs by their forms that are not regular."""
WORDS["finite"] |= WORDS["unchanged"] | {past for _, past, _ in _FORMS}
_TENSES = frozenset(frozenset(pair.split()) for pair in _TABLE["tenses"].split(","))
_PRESENT, _PAST = frozenset({"is", "are", "has", "have", "does"}), frozenset({"was", "were", "had", "did"})
_LETTERS = f"[^\\W_{UNSPACED}]+"
NOBODY = r"(?i:\bno(?:body|[- ]one|ne(?= of\b)| members?(?= of\b)|t one(?= of\b))\b)"
"""The words for nobody, as a pattern."""
_NO_ONE = frozenset({"nobody", "none", "no one", "no-one", "no member", "no members", "not one"})
_CONTRACTED = {"cannot": ("can", "not"), "can't": ("can", "not"), "won't": ("will", "not"), "shan't": ("shall", "not")}
_ENDINGS_OF_VERBS = {"n't": "not", "'re": "are", "'ve": "have", "'ll": "will", "'m": "am"}
_IS = frozenset({"it", "he", "she", "there", "here", "what", "who", "where"})
_MONEY = "$€£¥₹₽₩₺₴"
_TOKEN = re.compile(
    rf"{NOBODY}|{ABBREVIATION}"
    rf"|[公西]元(?=[\d〇一二三四五六七八九十])|[{HAN}]|(?:(?![{HAN}])[{UNSPACED}])+|{_LETTERS}(?:['’](?!s\b){_LETTERS})*"
    rf"|['’]s\b|[{_MONEY}+−-](?=\d)|(?<![\w–‑])[–‑](?=\d)|(?<!\d)~(?=\d)|(?<=\d) ?(?:[%‰°′″]|[{_MONEY}](?!\d))"
    rf"|(?<=[A-Za-z])(?:\+\+|#|[+-](?=[^\w\s]|$))(?![A-Za-z0-9])|[¬±∀-∘√-⋿]|[×÷](?=\s?[\w(])|[←-⇿☐-☒■□✓✔✗✘👍👎▲▼△▽★☆♂♀]"
    rf"|[<>＜＞](?=\s?\d)|(?<=[（(])[+＋－-](?=[)）])|(?<=[ (\[`])--?(?=[a-z])|{SIGNS}"
)
_YUAN, _BEEN = re.compile("[元块塊]."), re.compile(r" (?:been|had|got)\b")
_POSSESSIVE, _PERCENT = "'s", frozenset({"%", "percent", "per", "cent"})
# A hyphen, an apostrophe or an asterisk between two words is no break; the end of a sentence is a hard one.
_BREAK, _STOP = re.compile(r"[^\w\s'’\-‐‑·•*]|\n"), re.compile(r"[。！？；\n]")
# 十余万 is more than 十万, 二三万 and 十五六 are no certain number.
_ABOUT = re.compile(r"[余馀餘多]|[一二两三四五六七八九]{2}(?=[十百千万亿])|(?<=十)[一二两三四五六七八九]{2}\Z")
# What belongs to the number that it is written to: 1960s, 3rd.
_OF_NUMBER = re.compile(r"(?:0s|\d(?:st|nd|rd|th))\Z", re.IGNORECASE)
_MINUS = re.compile("^[−–‑]$")
# Behind a number, capitals tell these units apart: MW and mW, Mb and MB.
_UNIT = re.compile(r"[mM](?:[WVAJNF]|g|Hz|Pa)|[kKMGT]i?[bB](?:ps)?")
_ENDINGS = ("ies", "ied", "es", "ed", "s", "d")
_SHORTEST_WORD = 3
# Behind these letters an e tells verbs apart: robbed and robed.
_SHORT = re.compile("[^aeiou]*[aeiouy][^aeiouwxy]")
# A claim of fewer words stands anywhere by chance, but for a clause of two.
_FEWEST = 3

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a Han character or a number of a text."""

    key: str
    base: str
    """The word without its ending, if it is one that may have one."""
    start: int
    end: int
    number: Quantity | None
    breaks: str
    """The punctuation between it and the token before it; a stop where it is the first."""
    stops: bool
    """Whether it begins a sentence."""
    is_capital: bool
    article: str = ""
    """The article before it: a or the."""

    @property
    def is_han(self) -> bool:
        return is_wide(self.key[:1] or "0")

    def same(self, other: "Token") -> bool:
        if self.number and other.number:
            alike = self.number.comparable_with(other.number) and self.key == other.key
            # That it was the second year of an era is more than that it was the second.
            shared, mine = self.number.values & other.number.values, self.number.values
            names_era = self.number.kind != "time" and len(mine) > 1 and shared == {min(mine)}
            return alike and not names_era and self.number.agrees_with(other.number)
        if self.number or other.number:
            return False
        if self.key == other.key:
            # A cause is not the cause; most famous men are not the most famous men.
            is_most = self.key in ("most", "number") and self.article != other.article
            return not is_most and (self.article, other.article) != ("the", "a")
        # What was so need not be so: it was the capital.
        if frozenset((self.key, other.key)) in _TENSES:
            return not (self.key in _PRESENT and other.key in _PAST)
        short, long = sorted((self.key, other.key), key=len)
        is_other = long in (short + "e", short + "s", short + "es", short.removesuffix("y") + "ies")
        return bool(self.base) and self.base == other.base and not is_other


def read_tokens(text: str) -> list[Token]:
    """Read the tokens of a text that matter; a number is one token."""
    numbers = {number.start: number for number in read_text(text).quantities}
    found: list[tuple[str, int, int, Quantity | None]] = []
    at = end = 0
    while (match := _TOKEN.search(text, at)) is not None:
        number = next((numbers[place] for place in range(match.start(), match.end()) if place in numbers), None)
        # Of 5kg, 12B and 10⁵ the rest is a token of its own.
        at = number.end if number else match.end()
        at = max(at, match.end()) if _OF_NUMBER.search(match[0]) else at
        if number and number.kind == "number" and (unit := _MEASURE.match(text, number.end)):  # 12公里 for 12千米
            base, factor = _UNITS[unit[1]]
            number = replace(number, values=frozenset(round(value * factor, 6) for value in number.values))
            found += [(match[0], match.start(), at, number), (base, *unit.span(1), None)]
            at = unit.end()
            continue
        found += [
            (part, match.start(), at, number)
            for part in ((text[match.start() : at],) if number else words_of(match[0]))
        ]
        if number and number.kind == "number" and _YUAN.search(text, match.start(), at):  # 六元八角 for 6.8元
            found.append(("元", at, at, None))
    tokens: list[Token] = []
    breaks, stops, begun, article = ".", True, 0, ""
    sentences = [start for start, _ in read_text(text).sentences]
    # All words are folded at once, each as if it stood alone.
    keys = fold_text("\n".join(one[0].strip() for one in found)).split("\n")
    for (word, start, at, number), folded in zip(found, keys, strict=False):
        between = text[end:start]
        before, begun, end = begun, bisect_right(sentences, start), at
        breaks += "".join(_BREAK.findall(between))
        stops = stops or begun > before or bool(_STOP.search(between))
        # The 1960s are more than 1960.
        about = _ABOUT.search(text, start, at) if number else None
        more = re.sub("[馀餘多]", "余", about[0]) if about else "s" if word.endswith("0s") else ""
        key = more if number else _MINUS.sub("-", folded.replace("’", "'"))
        key = "余" if key == "多" and between == "" and tokens and tokens[-1].number else key
        key = word if tokens and tokens[-1].number and not breaks and _UNIT.fullmatch(word) else key
        key = "到" if key == "至" and tokens and tokens[-1].number and not between else key  # 3至5天
        if key == _POSSESSIVE and tokens and tokens[-1].key in _IS and not between:
            key = "has" if _BEEN.match(text, at) else "is"
        # A few men came; few came.
        is_some = key in ("few", "little") and text[max(0, start - 3) : start].lower().split()[-1:] == ["a"]
        key = "a" + key if is_some else key
        capital, glued = word[0].isupper(), bool(tokens) and tokens[-1].number and tokens[-1].end == start
        if tokens and tokens[-1].number and tokens[-1].number.kind == "percent" and key in _PERCENT:
            tokens[-1] = replace(tokens[-1], end=at)
            continue
        # The An of An Lushan is no article, nor the A of vitamin A.
        is_letter = key == "a" and (
            (capital and not stops) or glued or text[start - 1 : start] + text[at : at + 1] == "()"
        )
        key = "A" if is_letter else key
        if key not in WORDS["harmless"] or (capital and key in ("a", "an") and text[at + 1 : at + 2].isupper()):
            # Not so the 's of a word that was left out: That's what he said.
            owns = key == _POSSESSIVE and not (between == "" and tokens and tokens[-1].end < start)
            tokens.append(Token(key, _base(key), start, at, number, "" if owns else breaks, stops, capital, article))
            breaks, stops, article = "", False, ""
        elif key in ("a", "an", "the"):
            article = "the" if key == "the" else "a"
    return tokens


@lru_cache(maxsize=8192)
def words_of(word: str) -> Sequence[str]:
    """Return the words that one is written for: did not for didn't, nobody for no one."""
    plain = word.lower().replace("’", "'")
    if "." in word or word in _SPELLINGS["titles"]:
        short = word.rstrip(".")
        return (_ABBREVIATED.get(short) or _ABBREVIATED.get(short.capitalize()) or short.replace(".", ""),)
    if plain == "minus":
        return ("-",)
    if plain in _NO_ONE:
        return ("Nobody" if word[0].isupper() else "nobody",)
    ending = next((ending for ending in _ENDINGS_OF_VERBS if "'" in plain and plain.endswith(ending)), "")
    parts = _CONTRACTED.get(plain) or (ending and (plain.removesuffix(ending), _ENDINGS_OF_VERBS[ending]))
    if not parts or not parts[0]:
        return (word,)
    return (parts[0].capitalize() if word[0].isupper() else parts[0], parts[1])


def spelled(word: str) -> str:
    """Return a word in lower case as it is spelled in America: color for colour, organize for organise."""
    word = _ALIKE.get(word, word)
    return next((pattern.sub(end, word) for pattern, end in _ENDS if pattern.search(word)), word)


def joins_names(words: Sequence[Token], at: int) -> bool:
    """Return whether the word there joins two names: by Otto and Hale, by Otto of Parma."""
    joins = words[at].key in ("and", "of")
    return joins and 0 < at < len(words) - 1 and words[at - 1].is_capital and words[at + 1].is_capital


def says_any(tokens: Sequence[Token], words: frozenset[str]) -> bool:
    """Return whether one of some words is among tokens; a Chinese word may be two of them."""
    keys = [token.key for token in tokens]
    return not words.isdisjoint([*keys, *map("".join, pairwise(keys))])


def is_finite(token: Token) -> bool:
    """Return whether a word may be the verb of an English clause, and no name: United."""
    is_past = len(token.key) > 4 and token.key.endswith("ed") and (token.stops or not token.is_capital)
    return is_past or token.key in WORDS["finite"] or token.key.removeprefix("re") in WORDS["finite"]


def is_enough(tokens: Sequence[Token]) -> bool:
    """Return whether tokens are too many to stand anywhere by chance, or a whole clause: Karl fled."""
    return len(tokens) >= _FEWEST or (len(tokens) == _FEWEST - 1 and is_finite(tokens[1]))


def count_verbs(words: Sequence[Token]) -> int:
    """Count the verbs of some words; was born is one."""
    active = (
        token
        for at, token in enumerate(words)
        if token.key in WORDS["be"] or not says_any(words[max(0, at - 2) : at], WORDS["be"])
    )
    return sum(map(is_finite, active))


def has_one_verb(words: Sequence[Token]) -> bool:
    """Return whether a clause is long enough and has no second verb to which a phrase might belong."""
    return is_enough(words) and count_verbs(words) <= 1


@lru_cache(maxsize=8192)
def _base(word: str) -> str:
    word = spelled(IRREGULAR.get(word, word))
    if len(word) < _SHORTEST_WORD or not word.isascii():
        return ""
    endings = (ending for ending in _ENDINGS if word.endswith(ending))
    ending = next((ending for ending in endings if len(word) - len(ending) >= _SHORTEST_WORD), "")
    stem = word.removesuffix(ending)
    base = stem + "y" if ending in ("ies", "ied") else stem.removesuffix("e")
    if _SHORT.fullmatch(base):
        return base + "e" if stem.endswith("e") or ending in ("ed", "es") else base
    doubled = len(base) > _SHORTEST_WORD and base[-1] == base[-2] and base[-1] not in "ls"
    return base[:-1] if doubled and ending == "ed" else base
