"""Finds the phrases of a sentence that say when: in 1778, 天宝十四载十一月."""

from collections.abc import Sequence

from shiguan.claims.tokens import WORDS, Span, Token

_INSIDE, _OPENS = WORDS["units_of_date"] | WORDS["when"] | {"of"}, WORDS["dated"] | WORDS["when"] | {"between"}
_LONGEST, _SPANS = 10, {("from", "to"), ("from", "until"), ("between", "and")}


def dates_in(tokens: Sequence[Token]) -> list[Span]:
    """Return where phrases that say when begin and end."""
    found: list[Span] = []
    at = 0
    while at < len(tokens):
        end = _end(tokens, at)
        if end:
            found.append((at, end))
        at = end or at + 1
    return found


def _end(tokens: Sequence[Token], at: int) -> int:
    end, is_date = at, False
    while end < min(len(tokens), at + _LONGEST):
        token = tokens[end]
        if end > at and (token.stops or "(" in token.breaks or (token.breaks and not token.number)):
            break
        is_span = (tokens[at].key, token.key) in _SPANS
        if token.number is None and not is_span and token.key not in (_INSIDE if end > at else _OPENS):
            break
        is_date = is_date or _is_date(tokens, end)
        end += 1
    return end if is_date else 0


def _is_date(tokens: Sequence[Token], at: int) -> bool:
    number = tokens[at].number
    if number is None or number.kind == "percent":
        return False
    counted = at + 1 < len(tokens) and tokens[at + 1].key in WORDS["units_of_date"]
    likely = number.kind == "number" and any(100 <= value <= 2100 for value in number.values)
    led = at > 0 and tokens[at - 1].key in _OPENS | {"of"}
    return counted or number.kind in ("year", "month", "day") or (likely and led)
