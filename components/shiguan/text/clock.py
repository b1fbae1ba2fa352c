"""Finds times of day in Chinese and English text, as minutes."""

import re

_ONES = ["", *"一二三四五六七八九"]
_HAN = {
    tens + one: 10 * at + ones
    for at, tens in enumerate(["", "十", "二十", "三十", "四十", "五十"])
    for ones, one in enumerate(_ONES)
}
_HAN |= {"两": 2, "零": 0, "半": 30, "一刻": 15, "三刻": 45}
_NUMBER = rf"(\d\d?|{'|'.join(sorted(filter(None, _HAN), key=len, reverse=True))})"
# 3 p.m., 9:15 am and 9.15am.
_HALVED = re.compile(r"(?<![\d:.,])(\d\d?)(?:[:.]([0-5]\d))? ?(?:([ap])\.m\b\.?|([ap])m\b)", re.IGNORECASE | re.ASCII)
# 15:00, and 15时30分; what has no hour over twelve and no zero before it may be of either half of the day.
_WHOLE = re.compile(
    r"(?<![\d:.,])([01]?\d|2[0-3])[:：]([0-5]\d)(?![\d:：])"
    rf"|(?<![\d:.十])(1[3-9]|2[0-3]|十[三四五六七八九]|二十[一二三]?)[时時](?![间間期代至])(?:{_NUMBER}分)?",
    re.ASCII,
)
# 下午三点半.
_NAMED = re.compile(
    rf"(凌晨|清晨|早[上晨]|上午|[中下]午|午[后後]|傍晚|晚[上间間]|夜[里裡间間]){_NUMBER}[点點时時](?:{_NUMBER}分?)?",
    re.ASCII,
)
_NOON, _MORNING, _SMALL_HOURS = 12, "凌清早上", 6


def times_of_day(text: str) -> list[tuple[tuple[int, int], set[float]]]:
    """Find the times of day, each with the minutes of the day that it may be."""
    found: list[tuple[tuple[int, int], set[float]]] = []
    for match in _HALVED.finditer(text):
        hour = int(match[1])
        if 1 <= hour <= _NOON:
            hour = hour % _NOON + _NOON * ((match[3] or match[4]).lower() == "p")
            found.append((match.span(), {60.0 * hour + int(match[2] or 0)}))
    for match in _NAMED.finditer(text):
        part, hour = match[1], _value(match[2])
        if part[0] in "晚夜" and hour == _NOON:  # midnight
            hour = 0
        elif hour < _NOON and not (
            part[0] in _MORNING or (part == "中午" and hour > _SMALL_HOURS) or (part[0] == "夜" and hour < _SMALL_HOURS)
        ):
            hour += _NOON
        found.append((match.span(), {60.0 * (hour % 24) + _value(match[3] or "零")}))
    for match in _WHOLE.finditer(text):
        hour, minute = _value(match[1] or match[3]), _value(match[2] or match[4] or "零")
        is_either = 1 <= hour <= _NOON and match[0][0] != "0"
        hours = (hour % _NOON, hour % _NOON + _NOON) if is_either else (hour,)
        found.append((match.span(), {60.0 * at + minute for at in hours}))
    return found


def _value(written: str) -> int:
    return int(written) if written.isdecimal() else _HAN[written]
