"""Reads of style sheets what they raise, show as lines and boxes of their own, or do not show."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from lxml import etree

from shiguan.ingest.epub.notes import RAISED
from shiguan.ingest.epub.trees import AS_BLOCK, FLOATING, INLINE, UNSHOWN, Element

_COMMENT, _BRACES = re.compile(r"/\*(?:(?!\*/).)*+(?:\*/|\Z)", re.DOTALL), re.compile(r"[{}]|[^{}]+")
_BOXES = re.compile(r"display\s*:\s*(?:inline-)?(?:flex|grid)\b", re.IGNORECASE)
_DISPLAY = re.compile(r"display\s*:", re.IGNORECASE)
# What a rule in anything else hides, such as `@media print`, is shown elsewhere.
_EVERYWHERE = re.compile(r"@(?:media\s+(?:screen|all)|layer\b[^,]*|supports\b.*)", re.DOTALL)
# A step of a selector, and the name, the classes and the id in it.
_STEP, _NAMES = re.compile(r"(?:[a-z][a-z0-9]*)?(?:[.#]-?[a-z_][\w-]*)*"), re.compile(r"[.#]?[^.#]+")
_MARKED = re.compile(r"[.#][\w-]+")
_EFFECTS = ((AS_BLOCK, ";display:block"), (FLOATING, ";float:left"), (RAISED, ";vertical-align:super"))
_MOST_RULES, _ALWAYS_SHOWN = 300, frozenset(("html", "body", "main", "article"))
_STYLED = etree.XPath("//*[@style]")


class Rule(NamedTuple):
    """A rule for elements that have some names (`p`, `.class`, `#id`) below others that have some."""

    above: frozenset[str]
    own: frozenset[str]
    style: str
    boxes: bool = False
    hides: bool = False


def rules_of(sheet: str) -> list[Rule]:
    """Return the rules of a style sheet that set words apart or hide them, by selectors of names, classes and ids."""
    found: dict[Rule, None] = {}
    opened = set[str]()  # the classes and ids of what some rule shows: what a script or a click opens is read
    for selector, style, conditional in _blocks(sheet):
        hides, boxes = bool(UNSHOWN.search(style)), bool(_BOXES.search(style))
        effects = "".join(effect for pattern, effect in _EFFECTS if pattern.search(style))
        steps_of_parts = [part.replace(">", " ").split() for part in selector.split(",")]
        if not hides and _DISPLAY.search(style):
            opened.update(name for steps in steps_of_parts if steps for name in _MARKED.findall(steps[-1]))
        hides = hides and not conditional
        for steps in steps_of_parts if effects or boxes or hides else ():
            if steps and all(map(_STEP.fullmatch, steps)):
                *above, own = (frozenset(_NAMES.findall(step)) for step in steps)
                found[Rule(frozenset[str]().union(*above), own, effects, boxes, hides)] = None
    rules = [rule._replace(hides=rule.hides and not rule.own & opened) for rule in found]
    return [rule for rule in rules if rule.style or rule.boxes or rule.hides][:_MOST_RULES]


def _blocks(sheet: str) -> Iterator[tuple[str, str, bool]]:
    """Yield selectors, their declarations, and whether these hold on some devices alone."""
    around = [("", False)]
    text = ""
    for piece in _BRACES.findall(_COMMENT.sub(" ", sheet).lower()):
        if piece == "{":
            selector, conditional = around[-1]
            conditional = conditional or bool(selector and not _EVERYWHERE.fullmatch(selector))
            around.append((text.rpartition(";")[2].strip(), conditional))
        elif piece == "}" and around[1:]:
            selector, conditional = around.pop()
            yield selector, text, conditional
        text = "" if piece in "{}" else piece


def mark_styled(root: Element, rules: Iterable[Rule]) -> None:
    """Give the elements of a page the styles of the rules for them, as if they were their own."""
    found: list[tuple[Element, list[Rule]]] = list(_matched(root, rules))
    styled: Any = _STYLED(root)
    laid_out = [element for element in styled if _BOXES.search(element.get("style"))]
    for box in [*laid_out, *(element for element, own in found if any(rule.boxes for rule in own))]:
        for child in box.iterchildren(*INLINE):
            _add(child, ";display:block")
    for element, own in found:
        if element.tag in INLINE:
            _add(element, "".join(dict.fromkeys(rule.style for rule in own)))
        if (
            any(rule.hides for rule in own)
            and element.tag not in _ALWAYS_SHOWN
            and not _DISPLAY.search(element.get("style", ""))
        ):
            _add(element, ";display:none")


def _add(element: Element, style: str) -> None:
    if style:
        element.set("style", element.get("style", "") + style)


def _matched(root: Element, rules: Iterable[Rule]) -> Iterator[tuple[Element, list[Rule]]]:
    """Walk through a page once, so that the time for it does not grow with how deep it is nested."""
    by_name: defaultdict[str, list[Rule]] = defaultdict(list)
    for rule in rules:
        by_name[max(rule.own, key=lambda name: (name[0] in ".#", name))].append(rule)
    if not by_name:
        return
    outer = frozenset[str]().union(*(rule.above for some in by_name.values() for rule in some))
    above: list[frozenset[str]] = [frozenset()]
    for event, element in etree.iterwalk(root, events=("start", "end"), tag="*"):
        if event == "end":
            above.pop()
            continue
        own = {str(element.tag), *(f".{name}" for name in element.get("class", "").lower().split())}
        own |= {f"#{element.get('id', '').lower()}"} if element.get("id") else set()
        known = [rule for name in own & by_name.keys() for rule in by_name[name]]
        if fits := [rule for rule in known if rule.own <= own and rule.above <= above[-1]]:
            yield element, fits
        above.append(above[-1] | (own & outer) if own & outer else above[-1])
