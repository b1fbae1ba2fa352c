"""How Han characters sound, so that a name romanised in a question meets the characters of the text."""

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from itertools import groupby, pairwise
from pathlib import Path
from unicodedata import normalize

from shiguan.errors import ConfigurationError
from shiguan.text.han import HAN

_RUN = re.compile(f"[{HAN}]{{2,}}")
# Names are capitalised, in one word or several: An Lushan, Guo Zi-yi, Chang'an, Li Shimin's.
_NAME = re.compile(r"[A-Z][a-zü]+(?:['’-]?[A-Za-zü]+)*")
_FULL_NAME = re.compile(rf"{_NAME.pattern}(?: {_NAME.pattern})+")
_PARTS = re.compile("['’-]")
# No name in one word is longer (Heilongjiang has twelve letters); a hostile one would take its length squared.
_LONGEST = 24


def sounds_of_text(text: str) -> Iterator[str]:
    """Give the sound of every two neighbouring Han characters, without tones: 安禄山 gives "an lu" and "lu shan"."""
    known = _readings().get
    for run in _RUN.findall(text):
        yield from _pairs([known(character, "") for character in run])


def sounds_of_names(question: str) -> Iterator[str]:
    """Give what `sounds_of_text` gives for the names of a question that can be read as pinyin."""
    surname, end = "", -1
    for name in _NAME.finditer(question):
        syllables = _syllables_of(name[0])
        yield from _pairs([surname if question[end : name.start()] == " " else "", *syllables])
        surname, end = (syllables or [""])[-1], name.end()


def share_sounds(one: str, other: str) -> bool:
    """Tell whether a name of one text sounds like Han characters of the other, either way round."""
    heard = set(sounds_of_names(one)).intersection(sounds_of_text(other))
    return bool(heard or set(sounds_of_names(other)).intersection(sounds_of_text(one)))


def unheard_names(text: str, other: str) -> list[str]:
    """
    Find the full names of a text that can be read as pinyin and whose end is not heard in Han characters.

    Only those of three syllables or more (An Lushan is 禄山): books call a person with two by one, 韩愈 is 愈.
    """
    heard = set(sounds_of_text(other))
    found = []
    for several in _FULL_NAME.findall(text) if heard else ():
        for readable, words in groupby(several.split(" "), key=lambda word: bool(_syllables_of(word))):
            name = list(words)
            sounds = list(_pairs([syllable for word in name for syllable in _syllables_of(word)]))
            if readable and 1 < len(name) <= len(sounds) and sounds[-1] not in heard:
                found.append(" ".join(name))
    return found


def _pairs(syllables: list[str]) -> Iterator[str]:
    return (f"{one} {other}" for one, other in pairwise(syllables) if one and other)


def _syllables_of(name: str) -> list[str]:
    """Cut a name into syllables of pinyin, the longest first; empty if it is none."""
    parts = _PARTS.split(name.lower().replace("ü", "u"))
    found: list[str] = []
    for part in parts[:-1] if parts[-1] == "s" else parts:
        cut = _cut(part)
        if not cut:
            return []
        found += cut
    return found


def _cut(word: str) -> list[str]:
    """Cut a word so that nothing is left; empty if there is no way."""
    syllables = _syllables() if len(word) <= _LONGEST else frozenset()
    ends: list[list[str] | None] = [None] * len(word) + [[]]
    for start in range(len(word) - 1, -1, -1):
        for end in range(min(start + 6, len(word)), start, -1):
            rest = ends[end]
            if rest is not None and word[start:end] in syllables:
                ends[start] = [word[start:end], *rest]
                break
    return ends[0] or []


@cache
def _syllables() -> frozenset[str]:
    return frozenset(filter(re.compile("[aeiou]").search, _readings().values()))


@cache
def _readings() -> dict[str, str]:
    """Read the first sound of each character."""
    # From the file alone: imported, `pypinyin` reads megabytes of phrases.
    spec = find_spec("pypinyin")
    path = (Path(spec.origin).parent if spec and spec.origin else Path("pypinyin")) / "pinyin_dict.json"
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"The table of Chinese sounds could not be read: {error}. It comes with the package `pypinyin`; install it "
            "again with `pip install --force-reinstall pypinyin`."
        ) from error
    plain = normalize("NFD", "\n".join(sounds.split(",")[0] for sounds in table.values()))
    return dict(zip(map(chr, map(int, table)), plain.encode("ascii", "ignore").decode().split("\n"), strict=True))
