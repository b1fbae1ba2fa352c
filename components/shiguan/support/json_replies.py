"""
Reads the JSON that a language model was asked for, also where it is not quite JSON.

Pure and linear in the reply's length. What is broken is mended where only one reading is possible and dropped where a
value would have to be guessed: a value cut off in the middle is left out, never completed.
"""

import json
import math
import re
from typing import Any, Final

# A reply longer than this is no reply to any of our prompts.
_LONGEST = 50_000
_DEEPEST = 40
# At so many opening brackets a reading is tried; the text around a reply holds few.
_MOST_STARTS = 20
_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"```[ \t]*(?:[A-Za-z0-9_+-]*)[ \t]*\n?(.*?)(?:```|\Z)", re.DOTALL)
_SPACE = re.compile(r"(?:[\s\ufeff\u200b]|//[^\n]*|/\*.*?(?:\*/|\Z))*", re.DOTALL)
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_BARE = re.compile(r"[^\s,，:：{}\[\]\"'“”‘’「」]{1,80}")
_WORDS = {
    "true": True,
    "false": False,
    "null": None,
    "none": None,
    "nan": None,
    "infinity": None,
    "undefined": None,
}
_CLOSING_QUOTE = {'"': '"', "'": "'", "“": "”", "”": "”", "‘": "’", "「": "」", "`": "`"}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_CUT: Final = object()
_SCORE = re.compile(r"^\s*([+-]?\d+(?:\.\d+)?)\s*(?:/\s*\d+(?:\.\d+)?|分|points?)?\s*$")


def json_object(reply: str, key: str | None = None) -> dict[str, Any] | None:
    """
    Find the object in a reply.

    Takes strict JSON first; then JSON in a code fence or with text around it; then JSON with trailing or missing
    commas, single or curly or full-width punctuation, comments, unquoted keys, Python's `True` and `None`, raw line
    breaks in strings, or without its end. Hidden thoughts (`<think>`) are skipped.

    :param reply: The text of the reply.
    :param key: A key that was asked for: of several objects in a reply the one that has it is taken.
    :returns: The object, without what was cut off; None if there is none, or nothing of it is left.
    """
    value = _find(reply, dict, key)
    return value if isinstance(value, dict) else None


def json_list(reply: str) -> list[Any] | None:
    """
    Find the list in a reply, as `json_object` finds an object.

    :param reply: The text of the reply.
    :returns: The list, without what was cut off; None if there is none, or nothing of it is left.
    """
    value = _find(reply, list)
    return value if isinstance(value, list) else None


def json_strings(reply: str, key: str) -> list[str]:
    """
    Read a list of strings from a reply such as `{"queries": ["…", "…"]}`.

    A bare list, a single string under the key, an object with one list under another key and items that are objects
    with one string in them are understood too: these are what models send when they miss the format.

    :param reply: The text of the reply.
    :param key: The key that was asked for.
    :returns: The strings, trimmed, without empty and repeated ones; empty if there are none.
    """
    found = json_object(reply, key)
    if found is None:
        value: Any = json_list(reply)
    elif key in found:
        value = found[key]
    else:
        lists = [item for item in found.values() if isinstance(item, list)]
        value = lists[0] if len(lists) == 1 else None
    items = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    strings = (_only_string(item) for item in items)
    return list(dict.fromkeys(string for string in strings if string))


def json_number(value: Any, *, low: float, high: float) -> float | None:
    """
    Read a score as models write it: 8, 8.5, "8", "8/10".

    :param value: The value under a key.
    :param low: The least that is allowed.
    :param high: The most that is allowed.
    :returns: The number; None if it is none, or outside its range.
    """
    if isinstance(value, str):
        match = _SCORE.match(value)
        value = float(match[1]) if match else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and low <= value <= high else None


def _only_string(item: Any) -> str:
    if isinstance(item, dict):
        strings = [value for value in item.values() if isinstance(value, str)]
        item = strings[0] if len(strings) == 1 else ""
    return item.strip() if isinstance(item, str) else ""


def _find(reply: str, kind: type, key: str | None = None) -> Any:
    text = _THOUGHT.sub(" ", reply[:_LONGEST])
    candidates = [text, *(match[1] for match in _FENCE.finditer(text))]
    for candidate in candidates:
        try:
            value = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, kind):
            return value
    opening = "{" if kind is dict else "["
    for candidate in [*candidates[1:], text]:
        value = _tolerant(candidate, opening, key)
        if value:
            return value
    return None


def _tolerant(text: str, opening: str, key: str | None) -> Any:
    # Skips what was read as a whole, so that a list inside an object is not taken for the reply's own list, and tries
    # again after a bracket that opens nothing, such as one in a sentence before the JSON.
    best: Any = None
    at = text.find(opening)
    for _ in range(_MOST_STARTS):
        if at < 0:
            break
        reader = _Reader(text, at)
        try:
            value = reader.value(0)
        except ValueError:
            value = None
        if value and value is not _CUT and (best is None or _weight(value, key) > _weight(best, key)):
            best = value
        at = text.find(opening, max(reader.at, at + 1) if value else at + 1)
    return best


def _weight(value: Any, key: str | None) -> tuple[bool, int]:
    return (isinstance(value, dict) and key in value, len(value))


class _Reader:
    """Reads one value from where it stands; `_CUT` stands for a value that the text's end cut off."""

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at

    def value(self, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ValueError("too deep")
        self._skip_space()
        character = self._peek()
        if character == "":
            return _CUT
        if character == "{":
            return self._object(depth)
        if character == "[":
            return self._list(depth)
        if character in _CLOSING_QUOTE:
            return self._string()
        return self._bare()

    def _object(self, depth: int) -> Any:
        result: dict[str, Any] = {}
        self.at += 1
        while True:
            self._skip(",，;；")
            character = self._peek()
            if character in ("", "}"):
                self.at += 1
                return result
            key = self._string() if character in _CLOSING_QUOTE else self._word()
            self._skip_space()
            if key is _CUT or self._peek() == "":
                self.at = len(self.text)
                return result
            if self._peek() not in ":：=":
                raise ValueError("no value after a key")
            self.at += 1
            value = self.value(depth + 1)
            if value is not _CUT:
                result[key] = value

    def _list(self, depth: int) -> Any:
        result: list[Any] = []
        self.at += 1
        while True:
            self._skip(",，;；")
            character = self._peek()
            if character in ("", "]"):
                self.at += 1
                return result
            if character in "}:：":
                raise ValueError("a list that never ends")
            value = self.value(depth + 1)
            if value is not _CUT:
                result.append(value)

    def _string(self) -> Any:
        opening = self.text[self.at]
        closing = _CLOSING_QUOTE[opening]
        self.at += 1
        parts: list[str] = []
        while self.at < len(self.text):
            character = self.text[self.at]
            if character == "\\":
                parts.append(self._escape())
            elif character == closing and self._ends_here():
                self.at += 1
                return "".join(parts)
            else:
                parts.append(character)
                self.at += 1
        return _CUT

    def _ends_here(self) -> bool:
        # A quotation mark inside a string, left without a backslash, is followed by more of the sentence.
        after = _SPACE.match(self.text, self.at + 1)
        end = after.end() if after else self.at + 1
        if end >= len(self.text) or self.text[end] in "}]:：`":
            return True
        if self.text[end] in ",，":
            following = _SPACE.match(self.text, end + 1)
            at = following.end() if following else end + 1
            return at >= len(self.text) or self.text[at] in "\"'“‘「{[}]-0123456789tfnTFN" or self._is_key(at)
        return "\n" in self.text[self.at + 1 : end] and self.text[end] in "\"'“"

    def _is_key(self, at: int) -> bool:
        word = _BARE.match(self.text, at)
        return bool(word and word.end() - at < 40 and self.text[word.end() : word.end() + 1] in (":", "："))

    def _escape(self) -> str:
        following = self.text[self.at + 1 : self.at + 2]
        if following == "u":
            digits = self.text[self.at + 2 : self.at + 6]
            if re.fullmatch(r"[0-9a-fA-F]{4}", digits):
                self.at += 6
                return self._surrogates(int(digits, 16))
        self.at += 2
        return _ESCAPES.get(following, following)

    def _surrogates(self, code: int) -> str:
        low = re.match(r"\\u(d[c-f][0-9a-f]{2})", self.text[self.at : self.at + 6], re.IGNORECASE)
        if 0xD800 <= code < 0xDC00 and low:
            self.at += 6
            return chr(0x10000 + ((code - 0xD800) << 10) + int(low[1], 16) - 0xDC00)
        return "\ufffd" if 0xD800 <= code < 0xE000 else chr(code)

    def _bare(self) -> Any:
        number = _NUMBER.match(self.text, self.at)
        if number and (number.end() == len(self.text) or self.text[number.end()] in ",，}] \t\r\n;/`#"):
            self.at = number.end()
            if self.at == len(self.text):
                return _CUT  # 8 may be the beginning of 85
            return _number(number[0])
        word = self._word()
        if word.lower() in _WORDS:
            return _WORDS[word.lower()]
        if self.at == len(self.text):
            return _CUT
        raise ValueError("a word that is no value")

    def _word(self) -> str:
        word = _BARE.match(self.text, self.at)
        if word is None:
            raise ValueError("no word")
        self.at = word.end()
        return word[0]

    def _skip(self, characters: str) -> None:
        self._skip_space()
        while self.at < len(self.text) and self.text[self.at] in characters:
            self.at += 1
            self._skip_space()

    def _skip_space(self) -> None:
        space = _SPACE.match(self.text, self.at)
        if space:
            self.at = space.end()

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]


def _number(digits: str) -> int | float | None:
    if re.fullmatch(r"[+-]?\d{1,300}", digits):
        return int(digits)
    value = float(digits)
    return value if math.isfinite(value) else None
