"""Says in other words what a short clause tells, and the same with the parts exchanged."""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.judge.changes import CONTRADICTED, NOT_SUPPORTED, SUPPORTED, TABLE, Claim


@dataclass(frozen=True)
class Told:
    """How something is told in classical and modern Chinese, or in English: parts A, B and C are names and titles."""

    read: re.Pattern[str]
    true: tuple[str, ...]
    false: tuple[str, ...]


_TOLD = [Told(re.compile(one["read"]), tuple(one["same"]), tuple(one["other"])) for one in TABLE["told"]]


def retold(
    text: str, passage: str, names: Sequence[str], chance: random.Random
) -> Iterator[tuple[list[str], list[Claim]]]:
    """Say in other words what short clauses of a text tell, and the same with the parts exchanged."""
    for told in _TOLD:
        for match in told.read.finditer(text):
            parts = {key: _in_full(value, passage, names) for key, value in match.groupdict().items() if value}
            if len(set(parts.values())) < len(parts) or any(_NO_PARTS & set(value) for value in parts.values()):
                continue
            true = [_filled(form, parts, SUPPORTED).text for form in told.true]
            wrong = [_filled(form, parts, CONTRADICTED) for form in told.false]
            for form in told.true:
                key = chance.choice(sorted(parts.keys() - {"V"}))
                others = [n for n in names if n not in passage and n != parts[key]] or list(names)
                alike = [n for n in others if n[0] == parts[key][0]]
                if others and len(parts[key]) < 6:
                    other = chance.choice(alike or others)
                    if other not in match[0]:
                        wrong.append(_filled(form, parts | {key: other}, NOT_SUPPORTED, only=key))
            chance.shuffle(true)
            chance.shuffle(wrong)
            yield true, wrong


def questions_of(
    text: str, passage: str, names: Sequence[str], chance: random.Random
) -> Iterator[tuple[list[str], list[str]]]:
    """Ask for a person of what short clauses of a text tell."""
    for told in _TOLD:
        for match in told.read.finditer(text):
            parts = {key: _in_full(value, passage, names) for key, value in match.groupdict().items() if value}
            if len(set(parts.values())) < len(parts) or any(_NO_PARTS & set(value) for value in parts.values()):
                continue
            strangers = [name for name in names if name not in passage]
            asked, other = [], []
            for form, key in ((form, key) for form in told.true for key in "AB"):
                word = "谁" if "。" in form else "Who" if form.startswith("{" + key) else ""
                if not word or "{" + key + "}" not in form or "字{B}" in form:
                    continue
                asked.append(_question(form, parts | {key: word}))
                rest = [k for k in "AB" if k in parts and k != key and len(parts[k]) < 6]
                if rest and strangers:
                    other.append(_question(form, parts | {key: word, rest[0]: chance.choice(strangers)}))
            chance.shuffle(asked)
            chance.shuffle(other)
            if asked:
                yield asked, other


def _question(form: str, parts: dict[str, str]) -> str:
    return _filled(form, parts, SUPPORTED).text.rstrip("。.") + ("？" if "。" in form else "?")


_NO_PARTS = frozenset("之其是此乃遂又亦皆则因既复何者所自相但故若且欲不可当尝能而未至有无以于后寻时及与曰")


def _in_full(part: str, passage: str, names: Sequence[str]) -> str:
    return next((n for n in names if len(n) == len(part) + 1 and n.endswith(part) and n in passage), part)


def _filled(form: str, parts: dict[str, str], label: int, only: str = "") -> Claim:
    text, spans = "", []
    for piece in re.split(r"(\{\w\})", form):
        key = piece[1:-1] if piece[:1] == "{" else ""
        value = parts.get(key, piece) if key else piece
        if key and key != "V" and (not only or key == only):
            spans.append((len(text), len(text) + len(value)))
        text += value
    return Claim(text[:1].upper() + text[1:], label, tuple(spans) if label != SUPPORTED else ())
