"""Folds traditional Han characters to simplified ones, one character for one, so that offsets stay."""

from shiguan.text.terms import terms


class _Folding(dict[int, int]):
    """Maps a Han character to the one under which it is searched for."""

    def __missing__(self, code: int) -> int:
        found = terms(chr(code)) if code > 0x2E7F else []
        self[code] = ord(found[0]) if len(found) == 1 and len(found[0]) == 1 else code
        return self[code]


_FOLDING = _Folding()


def fold_han(text: str) -> str:
    """Fold the Han characters of a text as the search terms do."""
    return text.translate(_FOLDING)
