"""Answers what needs no search: a greeting, thanks, a sum, and which books there are."""

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from decimal import Context, Decimal, Inexact
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from shiguan.llm.source_blocks import neutral_attribute
from shiguan.reading.text import read_text
from shiguan.resources import read_patterns, read_texts

_LONGEST = 80
_MOST_BOOKS = 50
_OPERATORS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip
_SIGNS = str.maketrans("×÷−–（）＋－＊／", "*/--()+-*/")


def unsearched_answer(question: str, language: str | None = None) -> str:
    """Answer what is only a greeting, thanks or a sum, and say that nothing was looked up; empty for all else."""
    text = " ".join(question.split())
    if not text or len(text) > _LONGEST:
        return ""
    patterns, sentences = _phrases(), _sentences(language or read_text(text).language)
    for kind in ("greeting", "thanks"):
        if patterns[kind].fullmatch(text):
            return sentences[kind]
    found = patterns["sum"].fullmatch(text)
    written = found["sum"].strip() if found else ""
    # Dates such as 755-763 and 9/11 look like sums: with `-` or `/` alone the question has to ask for one.
    asked = found is not None and (found["before"] or found["after"] or re.search(r"[+*×÷＋＊]", written))
    value = _value(written.translate(_SIGNS)) if asked else None
    return "" if value is None else sentences["sum"].format(sum=written, value=_number(value))


def book_list(files: Iterable[Mapping[str, Any]], language: str) -> str:
    """List the files of a library by their titles, each with its size."""
    sentences = _sentences(language)
    lines = sorted(_book(file, sentences["book"]) for file in files)
    shown = "\n".join(f"- {line}" for line in lines[:_MOST_BOOKS])
    more = sentences["more_books"].format(count=len(lines) - _MOST_BOOKS) if len(lines) > _MOST_BOOKS else ""
    return "\n\n".join(filter(None, (sentences["books"].format(count=len(lines)), shown, more)))


def authors(files: Iterable[Mapping[str, Any]], language: str) -> str:
    """Say who wrote some files, as each states itself; those that do not are left out."""
    sentence = _sentences(language)["author"]
    stated = ((file, file.get("author") or ", ".join((file.get("work") or {}).get("author", ()))) for file in files)
    return "\n\n".join(
        sentence.format(name=_book(file, "{name}"), author=neutral_attribute(by)) for file, by in stated if by
    )


def _sentences(language: str) -> dict[str, str]:
    sentences: dict[str, dict[str, str]] = read_texts("unsearched")
    return sentences.get(language, sentences["en"])


def _book(file: Mapping[str, Any], sentence: str) -> str:
    name, title = file["source"], file.get("title") if file.get("records", 1) == 1 else None
    named = f"{title} ({name})" if title and title != name else name
    return sentence.format(name=neutral_attribute(named), passages=file.get("passages"))


def _value(written: str) -> Fraction | None:
    """Compute a sum; None for what is not a sum, or has no value."""
    try:
        body = ast.parse(written, mode="eval").body
        return _computed(body) if isinstance(body, ast.BinOp) else None
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError):
        return None


def _computed(node: ast.expr) -> Fraction:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return Fraction(str(node.value))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_computed(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_computed(node.left), _computed(node.right))
    raise ValueError("not a sum")


def _number(value: Fraction) -> str:
    """Write a number exactly, or with ten places behind its whole part."""
    whole = len(str(abs(int(value)))) if abs(value) >= 1 else 0
    for context in (Context(prec=4 * _LONGEST, traps=[Inexact]), Context(prec=whole + 10)):
        with suppress(Inexact):
            return format(context.divide(Decimal(value.numerator), Decimal(value.denominator)), "f")
    return str(value)


_phrases = partial(read_patterns, Path(__file__).with_name("unsearched_phrases.yaml"))
