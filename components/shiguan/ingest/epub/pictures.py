"""Reads pictures and formulas: the words that describe them, their TeX, and never a placeholder."""

import re
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from lxml import etree
from mathml_to_latex.converter import MathMLToLaTeX

from shiguan.ingest.epub.trees import Element, element_text, tokens, visible
from shiguan.resources import read_patterns
from shiguan.text.languages import detect_language

PICTURES = frozenset(("img", "image"))
# The same words on this many pictures of a book do not describe them.
_MOST_ALIKE = 5
_MOST_MARKUP, _MOST_NODES = 50_000, 100
_LABEL = re.compile(
    r"(?:(?:image|picture|photo|figure|description|alt(?:ernative)?[ ]text)\s*[:：]\s*)+", re.IGNORECASE
)
_PLACEHOLDERS = tuple(read_patterns(Path(__file__).with_name("pictures.yaml")).values())
_MARKS = " .,:;!?[](){}*_-–—“”\"'。，：；「」【】（）"
_FORMULA_CLASS = re.compile(r"math|tex\b|equation|formula")
_TEX_ENCODING = re.compile(r"tex$", re.IGNORECASE)
# Commands that TeX needs to typeset a formula, but nobody needs to read it.
_STYLE = re.compile(r"\\(?:display|text)style(?![a-zA-Z])")
_WRAPPED = re.compile(r"\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}|\\[(\[]((?:(?!\\[)\]]).)*)\\[)\]]|\$\$?([^$]*)\$\$?")
# Words in a formula are words.
_WORDS = re.compile(r"\\(?:text(?:rm|bf|it|sf|tt|normal)?|mbox|mathrm)\s*\{([^{}]*)\}\s*(?=([_^])?)")
_FENCE = re.compile(r"\\left(\\[a-zA-Z]+|[^\w\s])\\right\.|\\left\.\\right(\\[a-zA-Z]+|[^\w\s])")
_EMPTY_SCRIPT = re.compile(r"[\^_]\{\}|\\(?=_\{)")
_INNER_SPACE = re.compile(r"(?<=[(\[{]) | (?=[)\]},;.]|\\\})")


# Raised letters behind a letter and behind a number or a bracket, where most are exponents but not those of ordinals.
_TERM = r"[\dA-Za-z\u0391-\u03c9]{1,3}"
_EXPONENT = re.compile(rf"[ijkmnxyz]|[-−–+]{_TERM}|\d[A-Za-z]")
_RAISED = re.compile(rf"{_EXPONENT.pattern}|[a-df-np-zA-Z\u0391-\u03c9](?:[,，]\s?[a-z])*")
_INDEX = re.compile(rf"(?=.*[^\W\d])[-−–+]?{_TERM}(?:\s?[-−–+/·*=,]\s?{_TERM})+|(?P<signed>[-−–+]{_TERM})")
_SUM, _ONE_LETTER = re.compile(rf"{_TERM}(?:\s?[-−–+/·*]\s?{_TERM})+"), re.compile(r"(?<![^\W\d_])[A-Za-z]$")

# The marks of notes below a table, which stand behind words.
_OF_NOTE, _ROMAN = re.compile(r"[a-h](?:[,，]\s?[a-h])*"), re.compile(r"i{2,3}|i?[vx]i{1,3}|i[vx]|xi[vx]")


def label(alt: str) -> str:
    """Return the words that describe a picture as they stand in the text."""
    return f"[图：{alt}]" if detect_language(alt) == "zh" else f"[Image: {alt}]"


def power(base: str, raised: str, *, in_table: bool) -> str:
    """Return raised letters as they are written in a line: behind `^`, a sum in brackets; nothing if they are none."""
    of_note = in_table and base[-3:].isalpha() and base[-3:-2] and _OF_NOTE.fullmatch(raised)
    if of_note or (base[-1:].isalnum() and _ROMAN.fullmatch(raised)):
        return f"^{raised}"
    by_number = base[-1:].isdecimal() or base[-1:] in ")]}"
    if not base or not (by_number or _ONE_LETTER.search(base)):
        return ""
    if _SUM.fullmatch(raised):
        return f"^({raised})"
    return f"^{raised}" if (_RAISED if by_number else _EXPONENT).fullmatch(raised) else ""


def subscript(base: str, lowered: str) -> str:
    """Return lowered letters that are more than one term as they are written in a line; nothing for any others."""
    if not (base and (found := _INDEX.fullmatch(lowered))):
        return ""
    return f"_{lowered}" if found["signed"] else f"_({lowered})"


def repeated_alternatives(roots: Iterable[Element]) -> frozenset[str]:
    """Find the alternative texts that a book repeats for many pictures."""
    times = Counter(_alternative(picture) for root in roots for picture in root.iter(*PICTURES))
    return frozenset(text for text, count in times.items() if count > _MOST_ALIKE)


def alternative_text(element: Element, *, inline: bool, repeated: frozenset[str]) -> str:
    """Return the alternative text of a picture, if it describes the picture."""
    if tokens(element, "role") & {"presentation", "none"} or element.get("aria-hidden") == "true":
        return ""
    text = _alternative(element)
    if inline and 0 < len(text) <= 2:
        return text
    if text in repeated or is_placeholder(text):
        return ""
    wide = sum(1 for c in text if ord(c) > 0x2E80)
    return text if len(text) + 2 * wide >= 8 and (" " in text or wide >= 3) else ""


def _alternative(element: Element) -> str:
    return " ".join((element.get("alt") or element.get("aria-label") or "").split())


def is_placeholder(text: str) -> bool:
    """Return whether an alternative text is a placeholder and not a description."""
    plain = _LABEL.sub("", text.strip()).strip(_MARKS)
    return not plain or any(pattern.fullmatch(plain) for pattern in _PLACEHOLDERS)


def picture_formula(element: Element) -> str:
    """Return the TeX of a formula that is drawn as a picture and says so."""
    drawn = any(_FORMULA_CLASS.search(word) for word in tokens(element, "class"))
    text = _alternative(element) if drawn else ""
    return "" if is_placeholder(text) else readable_tex(text)


def repeats_formula_beside(element: Element) -> bool:
    """Return whether an element only repeats a formula next to it, or is an `epub:switch` case without one."""
    is_case = element.tag == "case"
    beside = [element] if is_case else [element.getprevious(), element.getnext()]
    nodes = (islice(node.iter(), _MOST_NODES) for node in beside if node is not None)
    return is_case != any(node.tag == "math" for some in nodes for node in some)


def formula_text(element: Element) -> str:
    """
    Write a MathML formula in one line of TeX, in which words are plain.

    It is taken from its annotation, else converted from its elements, else its alternative text, else its letters.
    """
    for annotation in element.iter("annotation"):
        if _TEX_ENCODING.search(annotation.get("encoding", "")) and (annotation.text or "").strip():
            return readable_tex(annotation.text or "")
    words = element.get("alttext", "")
    return (
        readable_tex(_converted(element))
        or ("" if is_placeholder(words) else readable_tex(words))
        or element_text(element)
    )


def _converted(element: Element) -> str:
    markup = etree.tostring(element, encoding="unicode", with_tail=False)
    if len(markup) > _MOST_MARKUP:
        return ""
    try:
        return str(MathMLToLaTeX.convert(markup))
    except MemoryError:
        raise
    except Exception:
        # A formula that cannot be converted is read by its alternative text or its letters.
        return ""


def readable_tex(tex: str) -> str:
    """Leave out of TeX what only typesets it: styles, outer brackets, fences without a partner."""
    text = " ".join(_STYLE.sub(" ", visible(tex)).split())
    while wrapped := _WRAPPED.fullmatch(text):
        text = next(inner for inner in wrapped.groups() if inner is not None).strip()
    text = _WORDS.sub(lambda words: f" {words[1].strip()}{'' if words[2] else ' '}", text)
    text = _FENCE.sub(lambda fence: (fence[1] or fence[2]).replace("{", r"\{").replace("}", r"\}"), text)
    return _INNER_SPACE.sub("", " ".join(_EMPTY_SCRIPT.sub("", text).split()))
