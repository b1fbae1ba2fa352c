"""Makes of a true sentence others that still follow from it, and others that one small change makes false."""

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise
from pathlib import Path

import yaml

from bench.judge.synonyms import synonyms_en, synonyms_zh, words_zh
from shiguan.text.name_forms import capitalised_words

SUPPORTED, NOT_SAID, CONTRADICTED, NOT_SUPPORTED = 0, 1, 2, 3
"""Labels of claims; the last is one of the two before it."""
ANSWERED, NOT_ANSWERED = 4, 5
"""Labels of questions."""

HAN = re.compile("[\u3400-\u9fff]")
TABLE = yaml.safe_load(Path(__file__).with_name("changes.yaml").read_text(encoding="utf-8"))


def _pairs(name: str) -> list[tuple[str, str]]:
    pairs = [tuple(pair.split("/")) for pair in TABLE[name].split()]
    return [(a.replace("_", " "), b.replace("_", " ")) for a, b in pairs]


_OPPOSITES = {kind: [p for a, b in _pairs(f"opposites_{kind}") for p in ((a, b), (b, a))] for kind in ("en", "zh")}
_SYNONYMS = {kind: _pairs(f"synonyms_{kind}") for kind in ("en", "zh")}
_NEGATIONS_ZH = _pairs("negations_zh")
_AUXILIARY = r"\b(is|was|were|are|has|had|have|can|could|will|would|did|does|may|must|should)\b"
_DIGITS = re.compile(r"\d[\d,.]*\d|\d")
_HAN_NUMBER = re.compile("[一二三四五六七八九十百千]{1,5}(?=[年月日人岁歲名万萬里州县縣口户級级十百千])")
_HAN_DIGITS = "一二三四五六七八九"
_CLAUSE = re.compile("[，、；,;]")


@dataclass(frozen=True)
class Claim:
    """A sentence or question about a passage; `wrong`, `was` and `answer` are places in code points, if known."""

    text: str
    label: int
    wrong: tuple[tuple[int, int], ...] | None = ()
    was: tuple[tuple[int, int], ...] = ()
    answer: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Example:
    """A passage with its claims and questions."""

    set: str
    passage: str
    claims: tuple[Claim, ...]


def replaced(text: str, start: int, end: int, other: str, label: int) -> Claim:
    """Put something else in the place of a part of a text."""
    result = text[:start] + other + text[end:]
    # What is left out cannot be marked: its neighbours are.
    return Claim(result, label, (_marked(start, len(other), result),), (_marked(start, end - start, text),))


def _marked(start: int, length: int, text: str) -> tuple[int, int]:
    return (start, start + length) if length else (max(0, start - 1), min(len(text), start + 1))


@cache
def _pattern(word: str) -> re.Pattern[str]:
    return re.compile(re.escape(word) if HAN.search(word) else rf"\b{re.escape(word)}\b")


def _found(word: str, text: str) -> re.Match[str] | None:
    return _pattern(word).search(text) if word in text else None


def _of(table: Sequence[tuple[str, str]], text: str, chance: random.Random) -> tuple[re.Match[str], str] | None:
    found = [(match, other) for word, other in table if (match := _found(word, text))]
    return chance.choice(found) if found else None


def _kind(text: str) -> str:
    return "zh" if HAN.search(text) else "en"


def opposite(text: str, chance: random.Random) -> Claim | None:
    """Exchange a word for its opposite."""
    if not (found := _of(_OPPOSITES[_kind(text)], text, chance)):
        return None
    return replaced(text, *found[0].span(), found[1], CONTRADICTED)


def negation(text: str, chance: random.Random) -> Claim | None:
    """Deny what is said, or say what is denied."""
    if _kind(text) == "zh":
        if not (found := _of(_NEGATIONS_ZH, text, chance)):
            return None
        return replaced(text, *found[0].span(), found[1], CONTRADICTED)
    if match := re.search(_AUXILIARY + " (not|never)", text):
        return replaced(text, match.end(1), match.end(), "", CONTRADICTED)
    if not (match := re.search(_AUXILIARY, text)):
        return None
    return replaced(text, match.end(), match.end(), chance.choice([" not", " not", " never"]), CONTRADICTED)


def number(text: str, chance: random.Random) -> Claim | None:
    """Change a number: one digit, or one cut off."""
    found = [*_DIGITS.finditer(text), *_HAN_NUMBER.finditer(text)]
    if not found:
        return None
    match = chance.choice(found)
    value = match[0]
    if value[0].isdigit():
        at = chance.choice([at for at, character in enumerate(value) if character.isdigit()])
        other = value[:at] + chance.choice([c for c in "123456789" if c != value[at]]) + value[at + 1 :]
        if len(value) > 1 and chance.random() < 0.25:
            other = value[1:].lstrip(",.0") or value + "0"
    else:
        at = chance.randrange(len(value))
        other = value[:at] + chance.choice([c for c in _HAN_DIGITS if c != value[at]]) + value[at + 1 :]
    return replaced(text, *match.span(), other, CONTRADICTED)


def exchange(text: str, names: Sequence[str], chance: random.Random) -> Claim | None:
    """Exchange two names of a sentence, so that each does what the other did."""
    places = _places(text, names)
    if len(places) < 2:
        return None
    (a, b), (c, d) = sorted(chance.sample(places, 2))
    first, between, second = text[a:b], text[b:c], text[c:d]
    # In a list both stand for the same.
    if first == second or between.strip(" ,、和与與及") in ("", "and", "or", "of", "or the", "and the"):
        return None
    result = text[:a] + second + between + first + text[d:]
    end = a + len(second) + len(between)
    return Claim(result, CONTRADICTED, ((a, a + len(second)), (end, end + len(first))), ((a, b), (c, d)))


_VERBS = "破败攻讨击杀斩擒执遣使命召谓告语请劝谏荐举代从随事附助救援见谒迎送追围逐怨恨畏爱信疑责问杖鞭诱纳拒"
_ACTED = (
    re.compile(
        rf"(?:^|(?<=[，。；：「“]))([\u4e00-\u9fff]{{2,4}}?)[{_VERBS}]([\u4e00-\u9fff]{{2,4}}?)(?=[，。；曰于])"
    ),
    re.compile(
        r"\b((?:the|an?|his|her|their|this|that) (?:\w+ )?\w+) (?:\w+ly )?(?:was \w+ed by|were \w+ed by|\w+ed|said to|"
        r"saw|gave|told|took|met|made|left|found|knew|heard|loves?|kept|sent to|is|was|of|than|from|with|to|under|"
        r"over|for) ((?:the|an?|his|her|their|this|that) (?:\w+ )?\w+)\b",
        re.IGNORECASE,
    ),
)


def reversal(text: str, chance: random.Random) -> Claim | None:
    """Exchange who acts and who is acted on, whatever they are called."""
    found = [match for pattern in _ACTED for match in pattern.finditer(text)]
    if not found:
        return None
    match = chance.choice(found)
    (a, b), (c, d) = match.span(1), match.span(2)
    first, between, second = text[a:b], text[b:c], text[c:d]
    if first[0].isupper() and first.split()[0].lower() in ("the", "a", "an", "his", "her", "their", "this", "that"):
        first, second = first[0].lower() + first[1:], second[0].upper() + second[1:]
    if first.lower() == second.lower():
        return None
    end = a + len(second) + len(between)
    result = text[:a] + second + between + first + text[d:]
    return Claim(result, CONTRADICTED, ((a, a + len(second)), (end, end + len(first))), ((a, b), (c, d)))


def other_name(
    text: str, passage: str, names: Sequence[str], others: Sequence[str], chance: random.Random
) -> Claim | None:
    """Put another name in the place of one, of the same surname or first word where there is one."""
    places = _places(text, names)
    if not places:
        return None
    a, b = chance.choice(places)
    usable = [o for o in others if o not in text and (o in passage or chance.random() < 0.5) and o not in text[a:b]]
    alike = [o for o in usable if o[:1] == text[a] and len(o) <= b - a + 8]
    inside = [o for o in usable if o in passage]
    pool = chance.choice([pool for pool in (alike, inside, usable) if pool] or [[]])
    if not pool:
        return None
    return replaced(text, a, b, chance.choice(pool), NOT_SUPPORTED)


_AFTER_ARTICLE = re.compile(r"\b(?:the|an?|his|her|their|its|of|with|and|in) ([a-z]{4,}(?<!ing)(?<!ly))\b")


def other_word(text: str, passage: str, others: str, chance: random.Random) -> Claim | None:
    """Put another common word of the passage, or of its neighbourhood, in the place of one."""
    near = passage if chance.random() < 0.7 else others
    if _kind(text) == "zh":
        said = [(at, text[at : at + 2]) for at in range(len(text) - 1)]
        said = [(at, word) for at, word in said if word in _nouns_zh() and word in passage]
        found = sorted({near[at : at + 2] for at in range(len(near) - 1)} & _nouns_zh())
        found = [word for word in found if word not in text]
        if not said or not found:
            return None
        at, _ = chance.choice(said)
        return replaced(text, at, at + 2, chance.choice(found), NOT_SUPPORTED)
    places = list(_AFTER_ARTICLE.finditer(text))
    found = sorted({match[1] for match in _AFTER_ARTICLE.finditer(near)} - set(re.findall(r"\w+", text)))
    if not places or not found:
        return None
    match = chance.choice(places)
    other = chance.choice([w for w in found if w.endswith("s") == match[1].endswith("s")] or found)
    if (other.endswith("s") != match[1].endswith("s")) or other[:4] == match[1][:4]:
        return None
    return replaced(text, *match.span(1), other, NOT_SUPPORTED)


@cache
def _nouns_zh() -> frozenset[str]:
    forbidden = set(TABLE["in_no_name"])
    return frozenset(word for word in words_zh() if not set(word) & forbidden)


def _places(text: str, names: Sequence[str]) -> list[tuple[int, int]]:
    places: list[tuple[int, int]] = []
    for name in sorted(set(names), key=lambda name: (-len(name), name)):
        at = text.find(name)
        if at >= 0 and all(at + len(name) <= start or at >= end for start, end in places):
            places.append((at, at + len(name)))
    return places


def falsehoods(
    text: str, passage: str, names: Sequence[str], others: Sequence[str], chance: random.Random, around: str = ""
) -> list[Claim]:
    """Make false sentences of a true one, each by one change, in random order."""
    makers: list[Callable[[], Claim | None]] = [
        lambda: exchange(text, names, chance),
        lambda: exchange(text, names, chance),
        lambda: other_name(text, passage, names, others, chance),
        lambda: other_name(text, passage, names, others, chance),
        lambda: reversal(text, chance),
        lambda: reversal(text, chance),
        lambda: reversal(text, chance),
        lambda: other_word(text, passage, around or passage, chance),
        lambda: other_word(text, passage, around or passage, chance),
        lambda: opposite(text, chance),
        # What rules find without a judge is made less often.
        lambda: negation(text, chance) if chance.random() < 0.4 else None,
        lambda: number(text, chance) if chance.random() < 0.5 else None,
    ]
    chance.shuffle(makers)
    found = {claim.text: claim for make in makers if (claim := make()) and claim.text not in passage}
    return [claim for claim in found.values() if claim.text != text]


def rewritings(text: str, chance: random.Random) -> list[str]:
    """Say the same, or less, in other words; in random order."""
    makers = [_shorter, _reordered, _with_synonyms, _with_synonyms, _turned]
    chance.shuffle(makers)
    found = [other for make in makers if (other := make(text, chance)) and other != text and len(other) > 3]
    return list(dict.fromkeys(found))


def _shorter(text: str, chance: random.Random) -> str | None:
    if _kind(text) == "zh":
        stop = text[-1] if text[-1] in "。！？" else "。"
        clauses = [clause for clause in _CLAUSE.split(text.rstrip("。！？”")) if clause]
        if len(clauses) < 3:
            return None
        start = chance.randrange(len(clauses) - 1)
        return "，".join(clauses[start : start + chance.randint(1, 3)]) + stop
    plain = re.sub(r" \([^)]*\)", "", text)
    clauses = plain.split(", ")
    kept = ", ".join(clauses[: chance.randint(1, max(1, len(clauses) - 1))]).rstrip(".;") + "."
    return kept if len(kept.split()) > 4 else None


_DATE_AT_END = re.compile(
    r"^(.{15,}?),? ((?:in|on|by|during|after|before) (?:[A-Z]\w+ )?(?:\d{1,2}, )?\d{4})([.,;].*)$"
)
_DATE_AT_START = re.compile(r"^((?:In|On|By|During|After) (?:[A-Z]\w+ )?(?:\d{1,2}, )?\d{4}), (.{15,})$")


def _reordered(text: str, chance: random.Random) -> str | None:
    if _kind(text) == "zh":
        clauses = [clause for clause in re.split("；", text.rstrip("。")) if clause]
        if len(clauses) < 2:
            return None
        chance.shuffle(clauses)
        return "；".join(clauses) + "。"
    if match := _DATE_AT_END.match(text):
        return f"{match[2][0].upper()}{match[2][1:]}, {match[1]}{match[3]}"
    if match := _DATE_AT_START.match(text):
        return f"{match[2].rstrip('.')} {match[1][0].lower()}{match[1][1:]}."
    return None


def _with_synonyms(text: str, chance: random.Random) -> str | None:
    result = text
    if _kind(text) == "zh":
        places = [(at, text[at : at + size]) for at in range(len(text)) for size in (3, 2)]
        found = [(at, at + len(word), synonyms_zh()[word]) for at, word in places if word in synonyms_zh()]
    else:
        found = [
            (*match.span(), synonyms_en()[match[0]])
            for match in re.finditer("[a-z]{4,}", text)
            if match[0] in synonyms_en()
        ]
    end = len(text)
    for at, stop, others in reversed(found):
        if stop <= end and chance.random() < 0.6:
            result, end = result[:at] + chance.choice(others) + result[stop:], at
    for word, other in chance.sample(_SYNONYMS[_kind(text)], len(_SYNONYMS[_kind(text)])):
        if chance.random() < 0.7 and (match := _found(word, result)):
            result = result[: match.start()] + other + result[match.end() :]
    return result


_PASSIVE = re.compile(r"^(.{3,40}?) (was|were) (\w+ed) by ([A-Z][\w' -]{2,30}?)( (?:in|on|at|from|for)\b.*)?\.$")
_BEI = re.compile(
    r"^([^，。被把]{2,8})被([^，。被把]{2,5}?)(打败|击败|杀死|任命|俘虏|派遣|册封|击退|逮捕|选为|封)([^，。]{0,10})。$"
)
_BA = re.compile(r"^([^，。被把]{2,8})把([^，。被把]{2,8}?)([^，。被把的]{2,4})了?。$")


def _turned(text: str, chance: random.Random) -> str | None:  # noqa: ARG001 - all makers have one form
    if match := _PASSIVE.match(text):
        what = re.sub(r"^(The|A|An|His|Her|Its|Their|This|That|These)\b", lambda m: m[0].lower(), match[1])
        return f"{match[4]} {match[3]} {what}{match[5] or ''}."
    if match := _BEI.match(text):
        return f"{match[2]}{match[3]}{match[1]}{match[4]}。"
    if match := _BA.match(text):
        return f"{match[2]}被{match[1]}{match[3]}了。"
    return None


_CAPITALISED = re.compile(
    r"(?<![.?!:;“\"(] )(?<!^)\b[A-Z][\w’'-]+(?: (?:(?:of|de|the|von|van) )?[A-Z][\w’'-]+)*|"
    r"\b[A-Z][a-z]+(?: (?:of )?[A-Z][a-z]+)+"
)


def latin_names(text: str) -> list[str]:
    """Find runs of capitalised words, without what only opens a sentence."""
    runs = (match[0] for match in _CAPITALISED.finditer(text))
    names = (
        run if " " not in run or run.split()[0] in capitalised_words(run) else run.partition(" ")[2] for run in runs
    )
    return list(dict.fromkeys(name for name in names if len(name) > 2))


def frequent_han_names(text: str, surnames: str) -> set[str]:
    """
    Find names of persons in a long Chinese text: a surname and one or two characters that come together again.

    A longer name counts where most places of its given name have the surname, or the given name stands alone elsewhere.
    """
    counts = Counter(match[1] for match in re.finditer(f"(?=([{surnames}][\u4e00-\u9fff]{{2}}))", text))
    pairs = Counter(map("".join, pairwise(text)))
    forbidden = set(TABLE["in_no_name"])
    found = set()
    for name, count in counts.items():
        if count >= 3 and count >= 0.3 * pairs[name[1:]] and not set(name[1:]) & forbidden:
            found.add(name)
    for match in re.finditer(f"([{surnames}][\u4e00-\u9fff])(?=[为為曰率卒奏等薨败敗反谓謂字将將言請请])", text):
        name = match[1]
        if name[1] not in forbidden:
            counts[name] += 1
            if counts[name] >= 4:
                found.add(name)
    return found


def names_in(text: str, known: Sequence[str]) -> list[str]:
    """Give the names of a text: the known ones, and runs of capitalised words."""
    return list(dict.fromkeys(chain((name for name in known if name in text), latin_names(text))))
