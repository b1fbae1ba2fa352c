"""What kind of answer a question asks for, and which sentences have one: rules for Chinese and English."""

from functools import cache
from pathlib import Path
from typing import Any, Literal

from shiguan.resources import read_patterns
from shiguan.text.han import has_han
from shiguan.text.quantities import Quantity, quantities

Shape = Literal["time", "number", "person", "place", "reason", "manner", "definition"]


@cache
def _cues() -> dict[str, Any]:
    return read_patterns(Path(__file__).with_name("question_shapes.yaml"))


def question_shapes(question: str) -> list[Shape]:
    """Tell what kinds of answer a question asks for."""
    if _cues()["introduce"].search(question.strip()):
        return ["definition"]
    rules = _cues()["asked"]["zh" if has_han(question) else "en"]
    found = [shape for shape, pattern in rules.items() if pattern.search(question.strip())]
    return [shape for shape in found if not (shape == "manner" and len(found) > 1)]


def has_shape(sentence: str, shape: Shape, question: str) -> bool:
    """Tell whether a sentence holds the kind of thing that is asked for."""
    if shape in ("time", "number"):
        asked = quantities(question)
        new = [q for q in quantities(sentence) if not any(q.agrees_with(other) for other in asked)]
        if shape == "number":
            return any(quantity.kind in ("number", "percent", "year") for quantity in new)
        dated = any(_is_date(quantity, sentence) for quantity in new)
        return dated or bool(_cues()["given"]["time"].search(sentence))
    if shape == "person":
        names = _cues()["capitalised"].findall(sentence)
        return has_han(sentence) or any(name.lower() not in question.lower() for name in names)
    return bool(_cues()["given"][shape].search(sentence))


def _is_date(quantity: Quantity, sentence: str) -> bool:
    if quantity.kind in ("year", "month", "day"):
        return True
    if quantity.kind != "number" or not all(value.is_integer() for value in quantity.values):
        return False
    value = max(quantity.values)
    written = quantity.end - quantity.start == len(str(int(value)))
    before = sentence[max(0, quantity.start - 8) : quantity.start]
    return written and (999 < value < 2100 or (99 < value <= 999 and bool(_cues()["before_year"].search(before))))
