"""Counts the labels that Word writes before paragraphs (Article 5, 第三条), and reads the values of its elements."""

import re
from collections.abc import Iterable

from shiguan.ingest.epub.trees import Element

_NUMBER = re.compile(r"%([1-9])")
_HAN = "零一二三四五六七八九"
_ROMAN = {1000: "m", 900: "cm", 500: "d", 400: "cd", 100: "c", 90: "xc", 50: "l", 40: "xl", 10: "x", 9: "ix", 5: "v",
          4: "iv", 1: "i"}  # fmt: skip
_LARGEST = 999
DELETED = frozenset(("del", "moveFrom"))
TEXTS = ("t", "m_t", "o_t")


class Labels:
    """The labels of numbered paragraphs; a number or bullet alone is none, as in the lists of a page."""

    def __init__(self, definitions: Iterable[Element]) -> None:
        """Read the children of `numbering.xml`."""
        self._levels: dict[str, dict[int, Element]] = {}
        self._lists: dict[str, tuple[str, Element]] = {}
        self._counts: dict[str, dict[int, int]] = {}
        for node in definitions:
            if node.tag == "abstractNum":
                levels = {_whole(value(level, "ilvl")): level for level in node.findall("lvl")}
                self._levels[value(node, "abstractNumId")] = levels
            elif node.tag == "num":
                self._lists[value(node, "numId")] = value_at(node, "abstractNumId"), node

    def label(self, list_id: str, level: str, style: str) -> str:
        """Count a paragraph of a list, and return its label; empty where it is no words."""
        name, own = self._lists.get(list_id, ("", None))
        levels = self._levels.get(name, {})
        of_style = (str(at) for at, each in levels.items() if style and value_at(each, "pStyle") == style)
        at = _whole(level or next(of_style, "0"))
        if at not in levels or own is None:
            return ""
        counts = self._counts.setdefault(name, {})
        for override in own.findall("lvlOverride"):
            if start := value_at(override, "startOverride"):
                counts[_whole(value(override, "ilvl"))] = _whole(start) - 1
                own.remove(override)  # it holds for the first paragraph alone
        counts[at] = counts.get(at, _whole(value_at(levels[at], "start") or "1") - 1) + 1
        for deeper in [each for each in counts if each > at]:
            del counts[deeper]
        text = value_at(levels[at], "lvlText")
        drawn = len(text) == 1 and value_at(levels[at], "numFmt") == "bullet"  # `o` in Courier New is Word's own
        if drawn or not re.search(r"\w", _NUMBER.sub("", text)):
            return ""
        shown = {number: _written(counts.get(number, 1), levels.get(number)) for number in range(at + 1)}
        found = [int(number) - 1 for number in _NUMBER.findall(text)]
        return _NUMBER.sub(lambda n: shown[int(n[1]) - 1], text) if all(shown.get(number) for number in found) else ""


def list_of(element: Element) -> tuple[str, str]:
    """Return the list whose paragraph an element or its style is, and the level in it."""
    return value_at(element, "pPr/numPr/numId"), value_at(element, "pPr/numPr/ilvl")


def _written(number: int, level: Element | None) -> str:
    form = "decimal" if level is None else value_at(level, "numFmt")
    if not 0 < number <= _LARGEST or form == "decimal":
        return str(number)
    if form.endswith("Letter"):
        text = chr(ord("a") + (number - 1) % 26) * (1 + (number - 1) // 26)
    elif form.endswith("Roman"):
        text, rest = "", number
        for worth, letters in _ROMAN.items():
            text, rest = text + letters * (rest // worth), rest % worth
    else:
        return _in_han(number) if re.match(r"(?:chinese|japanese|taiwanese)Counting", form) else ""
    return text.upper() if form.startswith("upper") else text


def _in_han(number: int) -> str:
    hundreds, tens, ones = number // 100, number // 10 % 10, number % 10
    text = f"{_HAN[hundreds]}百" if hundreds else ""
    text += (
        f"{_HAN[tens]}十" if tens > 1 or (tens and hundreds) else "十" if tens else "零" if hundreds and ones else ""
    )
    return text + (_HAN[ones] if ones else "")


def _whole(text: str) -> int:
    return int(text[:6]) if text[:6].isdecimal() else 0


def value(element: Element, name: str) -> str:
    """Return an attribute, whatever its namespace."""
    return next((element.get(key, "") for key in element.attrib if str(key).rpartition("}")[2] == name), "")


def value_at(element: Element, path: str) -> str:
    """Return the value of an element below another."""
    found = element.find(path)
    return "" if found is None else value(found, "val")


def is_hidden(element: Element) -> bool | None:
    """Return whether a run or a style hides its text, or None where it does not say."""
    hidden = element.find("rPr/vanish")
    return None if hidden is None else value(hidden, "val") not in ("0", "false", "off")


def length(element: Element, *names: str) -> int:
    """Count the characters of the texts in an element."""
    return sum(len((text.text or "").strip()) for text in element.iter(*(names or TEXTS)))


def chosen_entry(field: Element) -> str:
    """Return the entry that is chosen in a list of a form; empty for any other field."""
    entries = [value(entry, "val") for entry in field.iterfind("ffData/ddList/listEntry")]
    at = _whole(value_at(field, "ffData/ddList/result") or value_at(field, "ffData/ddList/default"))
    return entries[at] if at < len(entries) else ""
