"""Bibliographic data of a source: title, people, edition, year, publisher, identifiers; all of it hostile."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from shiguan.text.terminal import one_line

PEOPLE = ("author", "editor", "translator")
WORK_FIELDS = ("title", *PEOPLE, "edition", "year", "publisher", "identifier")
LONGEST_FIELD = 500
_MOST = 20
_YEAR = re.compile(r"(?<!\d)-?\d{3,4}(?!\d)")
_ISBN = re.compile(r"(?i)(?:urn:)?(?:isbn)?[\s:-]*((?:97[89][\s-]?)?(?:\d[\s-]?){9}[\dx])")


def work_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of a work that can be cited, bounded and on one line; people and identifiers as lists."""
    work: dict[str, Any] = {}
    for name in WORK_FIELDS:
        value = given.get(name)
        several = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        texts = [plain_line(str(v)) for v in several[:_MOST] if v is not None and not isinstance(v, Mapping)]
        texts = list(dict.fromkeys(filter(None, texts)))
        if name == "year":
            texts = [found[0] for text in texts if (found := _YEAR.search(text))]
        if name == "identifier":
            texts = sorted((isbn_of(text) or text for text in texts), key=lambda text: not isbn_of(text))
        if texts:
            work[name] = texts if name in (*PEOPLE, "identifier") else texts[0]
    return work


def plain_line(text: str, longest: int = LONGEST_FIELD) -> str:
    """Write an untrusted text as one bounded line without invisible characters; joiners of letters stay."""
    line = one_line(text[: 8 * longest])
    kept = (char for char in line if char in "\u200c\u200d" or unicodedata.category(char) not in ("Cc", "Cf", "Cs"))
    return "".join(kept)[:longest].strip()


def in_markdown(line: str) -> str:
    """Write a line so that Markdown, also with its formulas and superscripts, shows it as it is."""
    return re.sub(r"([\\`*_{}\[\]<>#|!~&$^])", r"\\\1", line)


def isbn_of(identifier: str) -> str:
    """Read an ISBN as bare digits; empty if it is another identifier, or its check digit is wrong."""
    found = _ISBN.fullmatch(identifier.strip())
    digits = re.sub(r"[\s-]", "", found[1]).upper() if found else ""
    values = [10 if digit == "X" else int(digit) for digit in digits]
    if len(values) == 13:
        return digits if sum(value * (1, 3)[at % 2] for at, value in enumerate(values)) % 10 == 0 else ""
    return digits if values and sum(value * (10 - at) for at, value in enumerate(values)) % 11 == 0 else ""
