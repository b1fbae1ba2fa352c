"""Finds the names of a text that another text lacks, and how names sound, so that pinyin matches characters."""

import json
import re
from collections.abc import Iterator, Set
from functools import cache
from itertools import chain, islice, pairwise, product
from pathlib import Path
from unicodedata import normalize

from shiguan.resources import read_table
from shiguan.text.languages import HAN
from shiguan.text.quantities import FULL_MONTHS
from shiguan.text.terms import packaged_table, terms

_DIGIT = re.compile(r"\d")
_CAPITALISED = re.compile(r"[^\W\d_][\w'’.-]*")
_SENTENCE_START = re.compile(r"(?:^|[.!?:;]\s|[\n\"“(])\s*$")
_CLUES = read_table(Path(__file__).with_name("names.yaml"))
_NO_NAMES = frozenset(_CLUES["no_names"].split())
SURNAMES = "".join(_CLUES["surnames"].split())
LONG_SURNAMES = frozenset(_CLUES["long_surnames"].split())
NEVER_GIVEN = frozenset([*"".join(_CLUES["never_given"].split()), ""])
"""Characters that no given name has, and the end of a text."""
TRANSLITERATED = frozenset("".join(_CLUES["transliterated"].split()))
_SYLLABLES = frozenset(_CLUES["syllables"].split())
_FOLD = str.maketrans(
    "趙錢孫吳鄭馮陳衛蔣韓楊許呂張嚴華謝鄒竇雲蘇魯韋馬鳳袁費賀湯羅畢樂於傅齊顧黃蕭龐紀項賈顏鍾駱盧應鄧單陸榮龔儲車寧欒厲劉龍葉黨翟譚貢喬聞",
    "赵钱孙吴郑冯陈卫蒋韩杨许吕张严华谢邹窦云苏鲁韦马凤袁费贺汤罗毕乐于傅齐顾黄萧庞纪项贾颜钟骆卢应邓单陆荣龚储车宁栾厉刘龙叶党翟谭贡乔闻",
)
_HAN_RUN = re.compile(f"[{HAN}·•]+")
_PLACE_END = "州县郡省市国国镇道关城山河江湖岛洲都府"


def foreign_names(text: str, known: set[str]) -> list[str]:
    """
    Find what looks like a name in a text and does not occur in another one, whose terms are given.

    English: capitalised words inside a sentence, and other capitalised words that are not common ones. Chinese: runs of
    characters that the other text does not have and that look like a person (a surname and one or two characters), a
    place, or a foreign name. Rules only; a name that is also a common word is missed.
    """
    found = [name for name in capitalised_words(text) if not known.issuperset(terms(name))]
    found.extend(_han_names(text, known))
    return list(dict.fromkeys(found))


def capitalised_words(text: str) -> list[str]:
    """Return the capitalised words of a text that look like parts of names."""
    names = []
    for match in _CAPITALISED.finditer(text):
        word = match[0].rstrip(".'’-")
        if not word[0].isupper() or word in _NO_NAMES or not terms(word):
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


def _han_names(text: str, known: set[str]) -> list[str]:
    names = []
    for run in _HAN_RUN.finditer(text):
        plain = run[0]
        at = 0
        while at < len(plain):
            end = at
            # A pair of neighbours that the other text does not have belongs to something new.
            while end + 1 < len(plain) and not known.issuperset(terms(plain[end : end + 2])[-1:]):
                end += 1
            if end > at and (name := _name_in(plain[at : end + 1], known)):
                names.append(name)
            at = max(end, at + 1)
    return names


def _name_in(piece: str, known: set[str]) -> str:
    new = [at for at, character in enumerate(piece) if not known.intersection(terms(character))]
    if not new:
        return ""
    folded = piece.translate(_FOLD)
    core, fold = piece[new[0] : new[-1] + 1], folded[new[0] : new[-1] + 1]
    if sum(character in TRANSLITERATED for character in fold) >= max(3, 0.75 * len(fold)):
        return core
    before, after = folded[: new[0]][-1:], folded[new[-1] + 1 :][:1]
    if len(core) in (2, 3) and fold[0] in SURNAMES:
        return core
    if len(core) <= 2 and before and before in SURNAMES and before not in "于安常任从方高时何全应解管会":
        return before + core
    if len(core) in (2, 3) and fold[-1] in _PLACE_END:
        return core
    return core + after if len(core) <= 2 and after and after in "州县郡省市镇" else ""


def looks_like_name(run: str) -> bool:
    """Return whether a run of Han characters looks like a name by itself: of a person, a place or something foreign."""
    folded = run.translate(_FOLD)
    if "·" in run or "•" in run:
        return True
    if len(folded) >= 2 and sum(character in TRANSLITERATED for character in folded) >= max(2, 0.75 * len(folded)):
        return True
    place = len(folded) >= 2 and folded[-1] in f"{_PLACE_END}阳京原津陵"
    return place or (2 <= len(folded) <= 4 and folded[0] in SURNAMES)


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
    """
    Read a syllable of Wade-Giles as pinyin; a text without aspiration marks or without ü may have left them out.

    Syllables are separated by hyphens, so that English words are rarely read: Hitchin is not hi-tchin.
    """
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
