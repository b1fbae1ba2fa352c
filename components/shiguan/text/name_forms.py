"""Finds the names of a sentence, and the forms in which another text, of another script too, may have them."""

import re
from collections.abc import Collection, Iterator

from shiguan.text.dictionary import dictionary_words
from shiguan.text.languages import HAN, HAN_RUN, fold_han
from shiguan.text.names import (
    LONG_SURNAMES,
    NEVER_GIVEN,
    NO_NAMES,
    SURNAMES,
    TRANSLITERATED,
    reading,
    syllables,
)
from shiguan.text.quantities import FULL_MONTHS
from shiguan.text.terms import fold_accents, fold_text, terms

_CAPITAL = re.compile("[A-Z]")
_DIGIT, _CAPITALISED = re.compile(r"\d"), re.compile(rf"[^\W\d_{HAN}](?:[^\W{HAN}]|['’.-])*")
_SENTENCE_START = re.compile(r"(?:^|[.!?:;]\s|[\n\"“(])\s*$")
_IS_NAME = re.compile(r"(?:[A-Z][\w'’.-]*(?: (?:of|the|and|de|von) | |$))+")
_IS_PLACE = re.compile(r"[A-Z][\w'’-]* (?:[\w-]+ ){0,3}(?:city|county|district|prefecture|province)\b")
# All surnames but those that begin more words than names.
CLEAR_SURNAMES = frozenset(SURNAMES) - frozenset("于安常任从方高时何全应解管会金马水江白石毛黄路车花包和向成连明门国平")
_PLACE_ENDS, _NO_PLACE = "州县郡阳原陵京津", NEVER_GIVEN.union("诸列远近首本邻别属他各府州县郡")
_STATES = "英倭齐楚燕赵韩魏秦晋吴越蜀鲁宋卫郑陈蔡曹梁"
_VERBS = frozenset("于任从全应会成连和向")
_NEVER_NAMES = frozenset("陛下 殿下 阁下 上帝 皇上 大人 公元 公元前 西元 西元前".split())
_SHORTEST_FOREIGN, _MOST_GIVEN = 3, 2
_FEWEST_CONSONANTS = 2
# One in three consonants may differ in the other script.
_SLIP = 3
Span = tuple[int, int]


def names_of(sentence: str) -> tuple[str, ...]:
    """Return the names of a sentence: runs of capitalised words, and what looks like a name in Han characters."""
    return tuple(dict.fromkeys([*_latin_names(sentence), *(sentence[slice(*span)] for span in han_names(sentence))]))


def foreign_names(text: str, known: Collection[str]) -> list[str]:
    """Return the names of a text, Latin ones word by word, that another one, whose terms are given, does not have."""
    found = [word for word in capitalised_words(text) if not all(term in known for term in terms(word))]
    for span in han_names(text):
        forms = forms_of_name(fold_text(text[slice(*span)]))
        if not any(all(form[at : at + 2] in known for at in range(max(1, len(form) - 1))) for form in forms):
            found.append(text[slice(*span)])
    return list(dict.fromkeys(found))


def capitalised_words(text: str) -> list[str]:
    """Return the capitalised words of a text that look like parts of names."""
    names = []
    for match in _CAPITALISED.finditer(text):
        word = match[0].rstrip(".'’-")
        if not word[0].isupper() or word in NO_NAMES or not terms(word):
            continue
        # In `16 Dec 755` and `Dec 16, 755` this is a month, which is compared as a number, and not a name.
        if word in FULL_MONTHS and _DIGIT.search(text, max(0, match.start() - 3), match.end() + 3):
            continue
        opens = bool(_SENTENCE_START.search(text[max(0, match.start() - 4) : match.start()]))
        following = _CAPITALISED.search(text, match.end())
        # The first word of a sentence is a name if another capitalised word follows at once.
        joined = following is not None and following.start() == match.end() + 1 and following[0][0].isupper()
        if not opens or joined or word.isupper():
            names.append(word)
    return names


def _latin_names(sentence: str) -> list[str]:
    runs: list[str] = []
    at = 0
    for word in capitalised_words(sentence):
        start = sentence.index(word, at)
        if runs and sentence[at:start] == " ":
            runs[-1] += f" {word}"
        else:
            runs.append(word)
        at = start + len(word)
    return runs


def han_names(text: str) -> tuple[Span, ...]:
    """Find the names in Han characters: of the dictionary, persons, rulers (玄宗), places (范阳), transliterations."""
    found: list[Span] = []
    for run in HAN_RUN.finditer(text):
        at, singles = run.start(), run.start()
        for parts, meanings in dictionary_words(run[0], translated=False):
            if len(parts) > 1:
                found += _in_singles(text, singles, at)
                if _is_name("".join(parts), meanings):
                    found.append((at, at + len(parts)))
                singles = at + len(parts)
            at += len(parts)
        found += _in_singles(text, singles, at)
    return tuple(found)


def _is_name(word: str, meanings: list[str]) -> bool:
    """Return whether a word of the dictionary is a name, and all it means: Rome, capital of Italy."""
    named = any((_IS_NAME.fullmatch(one) or _IS_PLACE.match(one)) and one not in NO_NAMES for one in meanings)
    return named and word not in _NEVER_NAMES | LONG_SURNAMES and all(map(_CAPITAL.search, meanings))


def _in_singles(text: str, start: int, end: int) -> Iterator[Span]:
    """Find names among characters that are no words of the dictionary together."""
    letters, at = fold_han(text[start:end]), 0
    while at < len(letters) - 1:
        size = _name_size(letters, at)
        if size:
            yield start + at, start + at + size
        at += size or 1


def _name_size(letters: str, at: int) -> int:
    foreign = at
    while foreign < len(letters) and letters[foreign] in TRANSLITERATED:
        foreign += 1
    if foreign - at >= _SHORTEST_FOREIGN:
        return foreign - at
    if letters[at + 1] in "宗祖" and letters[at] not in NEVER_GIVEN:
        return 2
    surname = 2 if letters[at : at + 2] in LONG_SURNAMES else int(letters[at] in SURNAMES and letters[at] not in _VERBS)
    given = 0
    while given < _MOST_GIVEN and letters[at + surname + given : at + surname + given + 1] not in NEVER_GIVEN:
        given += 1
    # Some surnames are words more often, and then take two characters.
    sure = surname > 1 or letters[at] in CLEAR_SURNAMES
    if surname and given and (sure or given == _MOST_GIVEN):
        return surname + given
    is_place = letters[at + 1] in _PLACE_ENDS and letters[at] not in _NO_PLACE
    return 2 if is_place or (letters[at + 1] == "国" and letters[at] in _STATES) else 0


def surname_size(name: str) -> int:
    """Return the length of the surname that a name in simplified characters begins with; 0 where it is no person's."""
    size = 2 if name[:2] in LONG_SURNAMES else int(name[:1] in CLEAR_SURNAMES)
    return size if size and 0 < len(name) - size <= _MOST_GIVEN else 0


def persons_of(text: str) -> frozenset[str]:
    """Return the persons of a text in folded characters, as it names them."""
    return frozenset(name for span in han_names(text) if surname_size(name := fold_text(text[slice(*span)])))


def initials_of(text: str) -> frozenset[str]:
    """Return the first letters of runs of capitalised words: US for United States."""
    runs = re.findall(r"[A-Z][\w'’]*(?:\s+(?:of|the|and|for|de)?\s*[A-Z][\w'’]*)+", text)
    return frozenset("".join(re.findall(r"\b[A-Z]", run)).lower() for run in runs)


def transliterations_of(text: str) -> frozenset[str]:
    """Return the consonants of what may be foreign names in Han characters."""
    return frozenset(map(consonants_of_han, re.findall(f"[{''.join(sorted(TRANSLITERATED))}]{{2,}}", fold_text(text))))


def capitalised_consonants(text: str) -> frozenset[str]:
    """Return the consonants of the capitalised words that are not pinyin."""
    words = re.findall(r"\b[A-Z][a-zà-ÿ'’]+", text)
    return frozenset(consonants(word) for word in words if not syllables(word))


def forms_of_name(name: str) -> list[str]:
    """Return what of a name shows that it is meant: of a person the given name, of anything else two characters."""
    surname = surname_size(name)
    if surname:
        return [name, name[surname:]] if len(name) > surname + 1 else [name]
    return [name[at : at + 2] for at in range(len(name) - 1)]


# Consonants that Chinese writes alike stand for each other; those that it leaves out (h, w, y) are left out.
_SPELLINGS = [(re.compile(a), b) for a, b in (
    ("ph", "f"), ("th", "t"), ("sh", "s"), ("t?ch", "j"), ("ck", "k"), ("gh", ""), ("c(?=[eiy])", "s"), ("c", "k"),
    ("x", "ks"), ("g(?=[eiy])", "j"), (r"\bkn", "n"), ("wh?", "f"),
)]  # fmt: skip
_CLASSES = str.maketrans("bpdtgkqlrfvmnszjc", "PPTTKKKLLFFMNSSCS")
_INITIALS = str.maketrans("bpdtgkhlrfwmnszcxjq", "PPTTKKKLLFFMNSSSSCC")


def consonants(word: str) -> str:
    """Return the consonants of a Latin word as Chinese would write them: Queequeg is KKK, and so is 魁魁格."""
    plain = fold_accents(word).removesuffix("'s").removesuffix("’s")
    for spelled, heard in _SPELLINGS:
        plain = spelled.sub(heard, plain)
    found = re.sub("[^A-Z]", "", plain.translate(_CLASSES))
    return re.sub(r"(.)\1+", r"\1", found) if not re.search(r"(.)[aeiou]+\1", plain) else found


def consonants_of_han(run: str) -> str:
    """Return those of Han characters; a small letter closes a syllable and may be nothing (班 for Ba)."""
    found = ""
    for sound in filter(None, map(reading, run)):
        first = "C" if sound[:2] in ("zh", "ch") else sound[0].translate(_INITIALS)
        found += (first if first.isupper() else "") + ("n" if sound.rstrip("g").endswith("n") else "")
        found += "l" if sound == "er" else ""
    return found


def sounds_within(own: str, other: str) -> bool:
    """Return whether consonants occur in others in order, but for one slip in three; two must be all and agree."""
    if len(own) <= _FEWEST_CONSONANTS:
        return len(own) == _FEWEST_CONSONANTS and own == other.upper()
    before = [0] * (len(other) + 1)
    for place, letter in enumerate(own, start=1):
        now = [place]
        for at, heard in enumerate(other):
            skipped = now[-1] + (0 if heard.islower() else 1)
            now.append(min(before[at] + (letter != heard.upper()), before[at + 1] + 1, skipped))
        before = now
    return min(before) <= (len(own) - _FEWEST_CONSONANTS) // _SLIP
