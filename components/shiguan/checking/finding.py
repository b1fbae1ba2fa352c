"""One reason why a pipeline file is refused."""

from dataclasses import asdict, dataclass
from typing import Any

Place = tuple[str | int, ...]
"""The keys and list positions that lead to a value in a file."""


@dataclass(frozen=True)
class Finding:
    """Says where something is wrong, what it is, what was expected and what to do."""

    place: Place
    problem: str
    expected: str
    next_step: str
    check: str = ""
    line: int | None = None
    unsafe: bool = True

    @property
    def where(self) -> str:
        """The place as a person reads it, such as `components.retriever.type`; empty for the file as a whole."""
        return place_text(self.place)

    def __str__(self) -> str:
        line = f"line {self.line}" if self.line is not None else ""
        where = ", ".join(part for part in (line, self.where) if part)
        return " ".join(part for part in (where and f"{where}:", self.problem, self.expected, self.next_step) if part)

    def as_dict(self) -> dict[str, Any]:
        """Give the finding as plain data, for programs."""
        plain = asdict(self)
        del plain["place"]
        return {"check": plain.pop("check"), "line": plain.pop("line"), "where": self.where, **plain}


def place_text(place: Place) -> str:
    """Write a place as a person reads it."""
    text = ""
    for step in place:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += ("." if text else "") + shortened(step)
    return text


def shortened(value: object, most: int = 80) -> str:
    """Write a value from a file into a message, which a hostile file must not flood or colour."""
    text = "".join(letter if letter.isprintable() else "�" for letter in str(value)[: most + 1])
    return text if len(text) <= most else f"{text[: most - 1]}…"
