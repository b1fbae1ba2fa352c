"""Reads the JSON that a model was asked for, even if it is not quite JSON; a value that is cut off is left out."""

import json
import re
from contextlib import suppress
from typing import Any

import json_repair

# No prompt of ours needs a longer reply; repairing takes the square of the length.
_LONGEST, _LONGEST_MENDED = 50_000, 8_000
_DEEPEST = 40
# The number of pieces of JSON that are tried.
_MOST_PIECES = 20
_MARK = "\x1a"  # a control character, which JSON never has unescaped
_CUT = "cut" + _MARK
_THINKING = "think|thinking|reasoning|thought|seed:think"
# How models write it whose prompts a server did not read: Mistral's, Gemma's, gpt-oss's.
_RAW_THINKING = (
    r"\[THINK\].*?(?:\[/THINK\]|\Z)|<unused94>.*?(?:<unused95>|\Z)"
    r"|<\|channel\|>(?:analysis|commentary)\b.*?(?:(?=<\|(?:start|channel)\|>)|\Z)"
)
THOUGHT = re.compile(rf"<({_THINKING})>.*?(?:</\1>|\Z)|{_RAW_THINKING}", re.DOTALL | re.IGNORECASE)
"""A model's reasoning, even if the reply ends within it."""
_BEGUN = re.compile(rf"(?:<({_THINKING})>(?:(?!</?\1>).)*+)++(</\1>)?", re.DOTALL | re.IGNORECASE)
END_OF_THOUGHT = re.compile(rf"</(?:{_THINKING})>", re.IGNORECASE)
# Some models' prompts open the block, so that the replies have only its end.
_HEADLESS = re.compile(rf"\A.*</(?:{_THINKING})>", re.DOTALL | re.IGNORECASE)
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+"|["{}\[\]]', re.DOTALL)
_WIDE_COLON, _WIDE_COMMA = re.compile(r'(?<=")\s*：'), re.compile(r'，(?=\s*")')
_APOSTROPHE = re.compile(r"(?<=[A-Za-z])'(?=[A-Za-z])")
_SCORE = re.compile(r"^\s*([+-]?\d+(?:\.\d+)?)\s*(?:/\s*\d+(?:\.\d+)?|分|points?)?\s*$")


def without_closed_thoughts(text: str) -> str:
    """Remove the model's reasoning from the beginning of a reply, where it has ended."""
    return _BEGUN.sub(lambda found: " " if found[2] else found[0], text)


def without_thoughts(reply: str) -> str:
    """Remove the model's reasoning from a reply."""
    text = _HEADLESS.sub(" ", THOUGHT.sub(" ", reply)) if "<" in reply or "[" in reply else reply
    return reply if text == reply else text.strip()


def json_object(reply: str, key: str | None = None) -> dict[str, Any] | None:
    """Find the object in a reply, of several the one that has the key; None if there is none."""
    value = _find(reply, "{", key)
    return value if isinstance(value, dict) else None


def json_strings(reply: str, key: str) -> list[str]:
    """Read a list of strings from a reply such as `{"queries": ["…"]}`, also in other forms: trimmed, each once."""
    found = json_object(reply, key)
    if found is None:
        value = _find(reply, "[")
    elif key in found:
        value = found[key]
    else:
        lists = [item for item in found.values() if isinstance(item, list)]
        value = lists[0] if len(lists) == 1 else None
    items = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    strings = (_only_string(item) for item in items)
    return list(dict.fromkeys(string for string in strings if string))


def json_number(value: Any, *, low: float, high: float) -> float | None:
    """Read a score as models write it (8, 8.5, "8", "8/10"); None if it is not a number, or outside its range."""
    if isinstance(value, str):
        match = _SCORE.match(value)
        value = float(match[1]) if match else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if low <= value <= high else None


def _only_string(item: Any) -> str:
    if isinstance(item, dict):
        strings = [value for value in item.values() if isinstance(value, str)]
        item = strings[0] if len(strings) == 1 else ""
    return item.strip() if isinstance(item, str) else ""


def _find(reply: str, opening: str, key: str | None = None) -> Any:
    """Read each separate piece of JSON, and choose the one that has the key, else the longest."""
    text = without_thoughts(reply[:_LONGEST])
    best: Any = None
    at = text.find(opening)
    for _ in range(_MOST_PIECES):
        if at < 0:
            break
        end, cut = _end_of(text, at)
        value = None
        if not cut:
            with suppress(ValueError):
                strict = json.loads(text[at:end])
                json.dumps(strict, ensure_ascii=False).encode()  # half a character is an error, and mended
                value = strict
        if value is None and at < _LONGEST_MENDED:
            mended_end, mark = (end, cut) if end <= _LONGEST_MENDED else _end_of(text[:_LONGEST_MENDED], at)
            value = _mended(text[at:mended_end] + mark, opening)
        if value is not None and (best is None or _weight(value, key) > _weight(best, key)):
            best = value
        at = -1 if cut else text.find(opening, end)
    return best


def _weight(value: Any, key: str | None) -> tuple[bool, int]:
    return (isinstance(value, dict) and key in value, len(value))


def _end_of(text: str, start: int) -> tuple[int, str]:
    """Return the end of the value that the bracket at `start` opens, and the mark to add if it is cut off."""
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(text, start):
        if match[0] == '"':
            return match.start(), f'"{_CUT}"'
        depth += (match[0] in "{[") - (match[0] in "}]")
        if depth > _DEEPEST:
            return start, _CUT
        if depth == 0:
            return match.end(), ""
    return len(text), _CUT


def _mended(text: str, opening: str) -> Any:
    text = _APOSTROPHE.sub(r"\'", text)
    for reading in dict.fromkeys((text, _WIDE_COLON.sub(":", _WIDE_COMMA.sub(",", text)))):
        try:
            value = json_repair.loads(reading, skip_json_loads=True)
        except (ValueError, RecursionError):
            continue
        if opening == "{" and isinstance(value, list) and value:
            value = value[0]  # what follows was taken for further values
        if isinstance(value, dict if opening == "{" else list) and (kept := _without_cut(value)):
            return kept
    return None


def _without_cut(value: Any) -> Any:
    """Leave out what the end of the reply cut off, and join surrogate pairs."""
    if isinstance(value, dict):
        pairs = ((_without_cut(key), _without_cut(item)) for key, item in value.items())
        return {key: item for key, item in pairs if key is not Ellipsis and item is not Ellipsis}
    if isinstance(value, list):
        return [item for item in map(_without_cut, value) if item is not Ellipsis]
    if isinstance(value, str):
        return ... if _MARK in value else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value
