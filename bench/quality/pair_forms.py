"""Writes a true sentence in another form that says the same: a clause dropped, a date moved, other signs."""

import re
from collections.abc import Callable

from bench.quality.pair_rules import converter

# Each gives the sentence itself where it has nothing to do.
_ASIDE = re.compile(r"\s?\([^()]{2,60}\)|（[^（）]{1,40}）")
_CLAUSE = re.compile(
    r", (?:which|who|where|whose) [^,.;]{5,80}(?=[,.])"
    r"|^(?:However|In addition|Moreover|Furthermore|For example|Also|Additionally), "
)
_HAN_CLAUSE = re.compile(r"^(?:但是?|然而|此外|因此|同时|同時|另外|其后|其後|后来|後來|而且|不过|不過)，?")
_DATE_FIRST = re.compile(
    r"^(?P<d>(?:In|On|During|By|Since) [^,]{0,25}\d{2,4}[^,]{0,8}), (?P<r>(?:[A-Z]|the |a |an )[^,;]{15,110})\.$"
)
_DATE_LAST = re.compile(
    r"^(?P<r>[A-Z][^,;]{15,110}) (?P<d>(?:in|on|by|since|during) (?:[A-Z][a-z]+ )?(?:\d{1,2},? )?\d{4})\.$"
)
_YEAR = re.compile(r"(?<!\d)\d{4}(?!\d)")
_HAN_DATE_INNER = re.compile(
    r"^(?P<a>[^，。在于於]{2,10})(?:于|於|在)(?P<d>\d{4}年(?:\d{1,2}月)?(?:\d{1,2}日)?)(?=[\u4e00-\u9fff])"
)
_HAN_DATE_FIRST = re.compile(
    r"^(?P<d>\d{4}年(?:\d{1,2}月)?(?:\d{1,2}日)?)，(?P<a>[\u4e00-\u9fff·]{2,6})(?=[被曾率获獲参參加出成发發击擊])"
)


def drop_clause(text: str) -> str:
    """Leave a bracket, a relative clause or a word of connection out."""
    shorter = _ASIDE.sub("", text)
    shorter = _CLAUSE.sub("", shorter, count=1)
    shorter = (
        re.sub(r"^(\w[^,]{1,80}),(?= (?:was|were|is|are|had|has|became)\b)", r"\1", shorter)
        if shorter != text
        else shorter
    )
    shorter = _HAN_CLAUSE.sub("", shorter)
    return shorter[0].upper() + shorter[1:] if shorter else text


def move_date(text: str) -> str:
    """Put the date from the end to the front, or back; of two dates none is moved past what the other dates."""
    if len(_YEAR.findall(text)) > 1:
        return text
    if match := _DATE_FIRST.match(text):
        rest = match["r"]
        return f"{rest[0].upper()}{rest[1:]} {match['d'][0].lower()}{match['d'][1:]}."
    if match := _DATE_LAST.match(text):
        rest = match["r"]
        rest = (
            rest[0].lower() + rest[1:]
            if rest.split()[0] in ("The", "A", "An", "This", "It", "He", "She", "They")
            else rest
        )
        return f"{match['d'][0].upper()}{match['d'][1:]}, {rest}."
    if match := _HAN_DATE_INNER.match(text):
        return f"{match['d']}，{match['a']}{text[match.end() :]}"
    if match := _HAN_DATE_FIRST.match(text):
        return f"{match['a']}于{match['d']}{text[match.end() :]}"
    return text


def other_script(text: str) -> str:
    """Write Chinese in the other script, English in small letters."""
    if not re.search(r"[\u4e00-\u9fff]", text):
        return text.lower()
    plain = converter("t2s").convert(text)
    return plain if plain != text else converter("s2t").convert(text)


def other_signs(text: str) -> str:
    """Write other stops and widths, as people who retype do."""
    if re.search(r"[\u4e00-\u9fff]", text):
        inner = text.rstrip("。").replace("，", ",").replace("、", "，").replace("；", ",")
        return (
            re.sub(
                r"(?<!\d)\d{4}(?!\d)", lambda m: m[0].translate({ord(c): ord(c) + 0xFEE0 for c in "0123456789"}), inner
            )
            + "。"
        )
    return re.sub(r"(?<=[a-z]),(?= )", "", text).replace("—", " - ").replace("’", "'")


FORMS: dict[str, Callable[[str], str]] = {
    "verbatim": str,
    "clause dropped": drop_clause,
    "date moved": move_date,
    "script or case": other_script,
    "signs": other_signs,
}
