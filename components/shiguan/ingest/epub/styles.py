"""Reads of style sheets what they set apart: raised letters, lines and boxes of their own."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lxml import etree

from shiguan.ingest.epub.trees import AS_BLOCK, FLOATING, INLINE, Element, tokens

_CLASS = re.compile(r"\.(-?[A-Za-z_][\w-]*)")
_SPAN = re.compile(rf"(?:span)?(?:{_CLASS.pattern})+")
_BOXES = re.compile(r"display\s*:\s*(?:inline-)?(?:flex|grid)\b", re.IGNORECASE)
_STEP, _MOST_BOXES = re.compile(rf"(?:[a-z][a-z0-9]*)?(?:{_CLASS.pattern})*"), 100
_STYLED = etree.XPath("//*[@style]")


def styled_classes(sheets: str, raised: re.Pattern[str]) -> dict[str, str]:
    """Find the classes that style sheets raise, and those that they show as lines of their own, and a style of each."""
    above, lines, floating = set[str](), set[str](), set[str]()
    for rule in sheets.split("}"):
        selector, _, style = rule.rpartition("{")
        names = {name.lower() for name in _CLASS.findall(selector)}
        above |= names if raised.search(style) else set()
        floating |= names if FLOATING.search(style) else set()
        if AS_BLOCK.search(style):
            parts = (part.split()[-1:] for part in selector.split(","))
            spans = (part[0] for part in parts if part and _SPAN.fullmatch(part[0]))
            lines.update(name.lower() for part in spans for name in _CLASS.findall(part))
    return dict.fromkeys(lines - floating, "display:block") | dict.fromkeys(above, "vertical-align:super")


_Steps = tuple[frozenset[str], frozenset[str]]


def boxes_of(sheets: str) -> list[_Steps]:
    """Return what style sheets lay out as rows or grids: the names and classes of those above it, and its own."""
    found: list[_Steps] = []
    for rule in sheets.split("}"):
        selector, _, style = rule.rpartition("{")
        for part in selector.rpartition("{")[2].split(",") if _BOXES.search(style) else ():
            steps = part.replace(">", " ").split()
            if steps and all(map(_STEP.fullmatch, steps)):
                *above, own = (frozenset(re.findall(r"\.?[^.]+", step)) for step in steps)
                found.append((frozenset().union(*above), own))
    return list(dict.fromkeys(found))[:_MOST_BOXES]


def _in_boxes(root: Element, boxes: Sequence[_Steps]) -> Iterator[Element]:
    """Walk through a page once, so that the time for it does not grow with how deep it is nested."""
    above: list[frozenset[str]] = [frozenset()]
    for event, element in etree.iterwalk(root, events=("start", "end"), tag="*"):
        if event == "end":
            above.pop()
            continue
        own = frozenset((element.tag, *(f".{name}" for name in element.get("class", "").split())))
        if any(steps <= own and outer <= above[-1] for outer, steps in boxes):
            yield element
        above.append(above[-1] | own)


def mark_styled(root: Element, classes: Mapping[str, str], boxes: Sequence[_Steps]) -> None:
    """Give the elements of a page the styles of their classes, as if they were their own."""
    styled: Any = _STYLED(root)
    laid_out = [element for element in styled if _BOXES.search(element.get("style"))]
    for box in [*laid_out, *(_in_boxes(root, boxes) if boxes else ())]:
        for child in box.iterchildren(*INLINE):
            child.set("style", f"{child.get('style', '')};display:block")
    for element in root.iter("span") if classes else ():
        for name in tokens(element, "class") & classes.keys():
            element.set("style", f"{element.get('style', '')};{classes[name]}")
