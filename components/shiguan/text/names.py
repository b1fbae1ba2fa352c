"""Names: what they are made of, how they sound, so that pinyin matches characters, and which are one person's."""

import json
import re
from collections.abc import Iterable, Iterator, Set
from functools import cache
from itertools import accumulate, chain, islice, pairwise, product
from operator import contains
from pathlib import Path
from typing import Any
from unicodedata import normalize

from haystack.document_stores.types import DocumentStore

from shiguan.resources import read_table
from shiguan.tenants import TermStore
from shiguan.text.dictionary import dictionary_words
from shiguan.text.languages import HAN, fold_han, has_han, search_weights
from shiguan.text.terms import fold_text, packaged_table, terms

_CLUES = read_table(Path(__file__).with_name("names.yaml"))
NO_NAMES = frozenset(_CLUES["no_names"].split())
SURNAMES = "".join(_CLUES["surnames"].split())
LONG_SURNAMES = frozenset(_CLUES["long_surnames"].split())
NEVER_GIVEN = frozenset([*"".join(_CLUES["never_given"].split()), ""])
"""Characters that no given name has, and the end of a text."""
TRANSLITERATED = frozenset("".join(_CLUES["transliterated"].split()))
_SYLLABLES = frozenset(_CLUES["syllables"].split())
_RUN = re.compile(f"[{HAN}]{{2,}}")
# Names are capitalised, in one word or several: An Lushan, Guo Zi-yi, Chang'an, Li Shimin's, T'ai-tsung.
_NAME = re.compile(r"[A-Z](?:[a-zü]+|(?=['-]))(?:['-]?[A-Za-zü]+)*")
_PARTS = re.compile("['-]")
_TONE = re.compile("[\u0300-\u0302\u0304\u0306\u030c]|(?<=[a-z\u0308])[1-5](?![0-9])")
_APOSTROPHES = str.maketrans(dict.fromkeys("‘’ʻʼ`", "'"))
# Wade-Giles: a syllable, the initials that aspiration changes, and where it was written.
_WADE_GILES = re.compile("(ch|ts|tz|ss|sz|sh|hs|[ptkmnfhljswy]?)('?)([aeiouü][a-zü]*)")
_BREATHS = {"p": "bp", "t": "dt", "k": "gk", "ts": "zc", "tz": "zc", "ch": ("zh", "ch"), "front": "jq"}
_BREATH = re.compile("(?:p|t|k|ch|ts|tz)'", re.IGNORECASE)
_INITIALS = {"hs": "x", "j": "r", "ss": "s", "sz": "s"}
_FINALS = (
    ("ien", "ian"), ("ieh", "ie"), ("[uü]eh", "ue"), ("ung", "ong"), ("uei", "ui"), ("ih", "i"), ("erh", "er"),
    ("ü", "u"),
)  # fmt: skip
_PINYIN_ALONE = frozenset({"ong", "iong", "ian", "ie", "ue"})
_MOST_SPELLINGS = 16
# No name in one word is longer (Heilongjiang has twelve letters); a hostile one would take time squared in its length.
_LONGEST = 24


def sounds_of_text(text: str) -> Iterator[str]:
    """Yield the sound of every two neighbouring Han characters, without tones: "an lu" and "lu shan" for 安禄山."""
    for run in _RUN.findall(text):
        yield from (f"{first} {second}" for first, second in pairwise(map(reading, run)) if first and second)


def reading(character: str) -> str:
    """Return the first sound of a character, without its tone; empty for one that is not a Han character."""
    return _readings().get(character, "")


def sounds_of_names(question: str) -> Iterator[str]:
    """Yield what `sounds_of_text` yields, for the names of a question that can be read as pinyin or Wade-Giles."""
    for _, read in _read_names(question):
        for pair in pairwise(chain(*read)):
            yield from map(" ".join, product(*pair))


def heard_names(question: str, sounds: Set[str]) -> list[str]:
    """Find the names of a question that can be read and whose sounds are all among those of a text."""
    names = ((" ".join(words), list(pairwise(chain(*read)))) for words, read in _read_names(question))
    return [
        name
        for name, pairs in names
        if pairs and all(any(" ".join(sound) in sounds for sound in product(*pair)) for pair in pairs)
    ]


def written_in_han(question: str, name: str, texts: Iterable[str]) -> set[str]:
    """Find the characters of texts that are read as the one name of a question, of which `name` is all or the end."""
    names = list(_read_names(question))
    if len(names) != 1 or not " ".join(names[0][0]).endswith(plain_spelling(name)):
        return set()
    asked = list(chain(*names[0][1]))
    if len(asked) < 2:
        return set()
    runs = chain.from_iterable(map(_RUN.findall, texts))
    written = (run[at : at + len(asked)] for run in runs for at in range(len(run) - len(asked) + 1))
    return {one for one in written if all(map(contains, asked, map(reading, one)))}


def names_in_pinyin(question: str) -> list[str]:
    """Write the names of a question in plain pinyin: Kuo Tzu-i gives "guo" and "ziyi", Guo Zi-yi as well."""
    names = (read for _, read in _read_names(question) if sum(map(len, read)) > 1)
    return ["".join(spelling) for word in chain(*names) for spelling in islice(product(*word), _MOST_SPELLINGS)]


def plain_spelling(text: str) -> str:
    """Write names without tone marks or tone numbers, and with one kind of apostrophe; an ü stays."""
    return normalize("NFC", _TONE.sub("", normalize("NFD", text).translate(_APOSTROPHES)))


def _read_names(question: str) -> Iterator[tuple[list[str], list[list[tuple[str, ...]]]]]:
    """Yield the words of each name of a question, with the possible readings of each syllable of each word."""
    text, end = plain_spelling(question), -1
    runs: list[list[str]] = []
    for name in _NAME.finditer(text):
        readable = syllables(name[0]) or _all_wade_giles(name[0])
        if readable and text[end : name.start()] == " ":
            runs[-1].append(name[0])
        elif readable:
            runs.append([name[0]])
        end = name.end() if readable else -1
    for words in runs:
        # A name is read in both ways if all its words can be (Tu Fu), but not if one is only pinyin (Tang Taizong).
        both = all(map(_all_wade_giles, words))
        yield words, [_options(word, text, both=both) for word in words]


def _options(word: str, text: str, *, both: bool) -> list[tuple[str, ...]]:
    pinyin: list[tuple[str, ...]] = [(syllable,) for syllable in syllables(word)]
    if pinyin and not both:
        return pinyin
    wade_giles = [_wade_giles(part, text) for part in _parts(word)]
    if len(pinyin) != len(wade_giles):
        return wade_giles
    return [tuple(dict.fromkeys(first + second)) for first, second in zip(pinyin, wade_giles, strict=True)]


def _parts(word: str) -> list[str]:
    return word.lower().removesuffix("'s").split("-")


def _all_wade_giles(word: str) -> bool:
    return all(_wade_giles(part, "") for part in _parts(word))


def _wade_giles(syllable: str, text: str) -> tuple[str, ...]:
    """Read a syllable of Wade-Giles as pinyin; a text without aspiration marks or without ü may have left them out."""
    found = _WADE_GILES.fullmatch(syllable)
    if not found or (found[2] and found[1] not in _BREATHS) or found[3] in _PINYIN_ALONE:
        return ()
    initial, breath, final = found.groups()
    breaths = [True] if breath else [False] if initial not in _BREATHS or _BREATH.search(text) else [False, True]
    finals = [final] if final[0] != "u" or initial not in ("ch", "y") or "ü" in text else [final, f"ü{final[1:]}"]
    read = (_pinyin(initial, final, breathed=breathed) for breathed in breaths for final in finals)
    return tuple(spelling for spelling in dict.fromkeys(read) if spelling in _SYLLABLES)


def _pinyin(initial: str, final: str, *, breathed: bool) -> str:
    if initial in ("tz", "ss", "sz"):
        final = "i" if final == "u" else "-"
    elif initial == "ch" and final[0] in "iü" and final != "ih":
        initial = "front"
    elif initial == "y":
        final = {"u": "ou", "en": "an", "eh": "e"}.get(final, final)
    elif final == "o":
        final = "e" if initial in ("k", "h", "") else "o" if initial in ("p", "m", "f", "w") else "uo"
    elif not initial and final == "i":
        return "yi"
    for spelled, pinyin in _FINALS:
        final = re.sub(f"{spelled}$" if spelled != "ü" else spelled, pinyin, final)
    return (_BREATHS[initial][breathed] if initial in _BREATHS else _INITIALS.get(initial, initial)) + final


def syllables(name: str) -> list[str]:
    """Cut a name into syllables of pinyin, the longest first; empty if it is not pinyin."""
    parts = _PARTS.split(plain_spelling(name).lower().replace("ü", "u"))
    found: list[str] = []
    for part in parts[:-1] if parts[-1] == "s" else parts:
        cut = _cut(part)
        if not cut:
            return []
        found += cut
    return found


def _cut(word: str) -> list[str]:
    """Cut a word into syllables so that nothing is left; empty if that is impossible."""
    syllables = _SYLLABLES if len(word) <= _LONGEST else frozenset()
    ends: list[list[str] | None] = [None] * len(word) + [[]]
    for start in range(len(word) - 1, -1, -1):
        for end in range(min(start + 6, len(word)), start, -1):
            rest = ends[end]
            if rest is not None and word[start:end] in syllables:
                ends[start] = [word[start:end], *rest]
                break
    return ends[0] or []


@cache
def _readings() -> dict[str, str]:
    """Read the first sound of each character."""
    table = json.loads(packaged_table("pypinyin", "pinyin_dict.json", "pypinyin"))
    plain = normalize("NFD", "\n".join(sounds.split(",")[0] for sounds in table.values()))
    return dict(zip(map(chr, map(int, table)), plain.encode("ascii", "ignore").decode().split("\n"), strict=True))


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
_LATIN_NAME = rf"(?!(?:The|In|As|When|After|But|His|Her|He|She) ){_WORDS}"
_PEN_NAME = "(?:courtesy|style|art|pen) name"
_LATIN = re.compile(
    rf"(?P<name>{_LATIN_NAME})(?: was|,? who was|,| ?\()(?: (?:his|her|the))? ?"
    rf"(?P<kind>{_PEN_NAME}|(?:birth|personal|temple|real) name"
    r"|(?:also|better|formerly|originally|later) (?:known as|called)|born|née?)(?: of| was)?:? "
    rf"[\"“‘']?(?P<other>{_LATIN_NAME})(?=[\"”’']?(?:[,;.)]| (?:was|is|and)\b|$))"
)
_CAPITALISED = re.compile(_WORDS)
_LONGEST_CANDIDATE, _MOST_READ, _MOST_NAMES = 5, 200, 4


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
        found |= {run[at : at + size] for size in range(2, _LONGEST_CANDIDATE + 1) for at in range(len(run) - size + 1)}
    for run in _CAPITALISED.findall(plain_spelling(question)):
        words = _folded(run).removesuffix("'s").split(" ")
        names = {" ".join(words[at:end]) for at in range(len(words)) for end in range(at + 1, len(words) + 1)}
        found |= set(filter(terms, names))  # a question that begins with Who names nobody
    return found


def _folded(name: str) -> str:
    return fold_text(plain_spelling(name))
