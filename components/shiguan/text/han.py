"""What a Han character is, and what it tells: its simplified form, classical prose, and what a retelling keeps."""

import re

from shiguan.text.terms import terms

HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""The Han characters, with the sign that repeats one and the round zero, for the brackets of a regular expression."""

_ONE = re.compile(f"[{HAN}]")
# Characters without which hardly a modern sentence does, and which classical prose does not use so.
_MODERN = frozenset("的了们这那着吗呢吧很么啊她它")
_SAMPLE = 2000
_FEWEST = 12
_MODERN_SHARE = 0.012
_CLASSICAL = frozenset("之其者也曰乃遂以于矣焉哉乎尔吾汝弗勿岂皆既谓")
_CLASSICAL_SHARE = 0.03
# Characters that a modern sentence has for its grammar; the classical one says the same without them.
_GRAMMAR = frozenset(
    "的了在是我有和就不人都一上也很到说要去你会着没看好自己这他她那们把被让使给对从向以于为与而其之所者并但却又还因如果虽然即便后"
    "来时候当等个些什么怎样地得过起出可能够已经正将曾再最更非常十分"
)
# A character outside the commonest 3,755 (level one of GB 2312) is mostly a name or a telling word.
_RARE, _COMMON = 1.6, 1.0


class _Folding(dict[int, int]):
    """Maps a Han character to the one under which it is searched for."""

    def __missing__(self, code: int) -> int:
        found = terms(chr(code)) if is_wide(chr(code)) else []
        self[code] = ord(found[0]) if len(found) == 1 and len(found[0]) == 1 else code
        return self[code]


_FOLDING = _Folding()


def has_han(text: str) -> bool:
    """Tell whether a text has a Han character."""
    return bool(_ONE.search(text))


def is_wide(character: str) -> bool:
    """Tell whether a character is of an East Asian script, whose words have no spaces between them and no stems."""
    return character > "\u2e7f"


def fold_han(text: str) -> str:
    """Fold traditional Han characters to simplified ones as search terms are, one for one, so that offsets stay."""
    return text.translate(_FOLDING)


def is_classical(text: str) -> bool:
    """Tell whether a passage is classical Chinese."""
    letters = _ONE.findall(fold_han(text[:_SAMPLE]))
    count = len(letters)
    if count < _FEWEST or sum(letter in _MODERN for letter in letters) >= _MODERN_SHARE * count:
        return False
    return sum(letter in _CLASSICAL for letter in letters) >= _CLASSICAL_SHARE * count


def character_weight(character: str) -> float:
    """
    Weigh a character of a modern sentence by how much it tells about a classical one.

    Modern words are mostly classical ones with a second character added (勤奋 for 勤), so what survives a retelling is
    single characters, and not the pairs that compare two modern texts.
    """
    if character in _GRAMMAR:
        return 0.0
    try:
        encoded = character.encode("gb2312")
    except UnicodeEncodeError:
        return _RARE
    # Level one ends with row 55.
    return _COMMON if encoded[0] < 0xD8 else _RARE
