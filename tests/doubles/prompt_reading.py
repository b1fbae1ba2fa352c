"""Reads a prompt as a model sees it: its numbered sources and its question."""

import re
from typing import NamedTuple

_OPEN, _CLOSE = "<sources>", "</sources>"
_QUESTION_OPEN, _QUESTION_CLOSE = "<question>", "</question>"
_ATTRIBUTES = ("file", "title", "section", "place")
_BLOCK = re.compile(r'<source number="(\d+)"((?: [a-z]+="[^"\n]*")*)>\n(.*?)\n</source>(?=\n)', re.DOTALL)
_ATTRIBUTE = re.compile(r' ([a-z]+)="([^"\n]*)"')


class SourceBlock(NamedTuple):
    number: int
    text: str
    file: str = ""
    title: str = ""
    section: str = ""
    place: str = ""


def parse_sources(prompt: str) -> list[SourceBlock] | None:
    """Read the sources back from a prompt, their passages as rendered; None if it has no such part."""
    span = _sources_span(prompt)
    if span is None:
        return None
    blocks = []
    for number, attributes, text in _BLOCK.findall(prompt[span[0] : span[1]] + "\n"):
        values = {name: value for name, value in _ATTRIBUTE.findall(attributes) if name in _ATTRIBUTES}
        blocks.append(SourceBlock(number=int(number), text=text, **values))
    return blocks


def parse_question(prompt: str) -> str:
    """Read the question between its own delimiters after the sources; what looks like one inside a source is not."""
    span = _sources_span(prompt)
    rest = prompt[span[1] :] if span else prompt
    return rest[rest.index(_QUESTION_OPEN) + len(_QUESTION_OPEN) : rest.rindex(_QUESTION_CLOSE)].strip()


def _sources_span(prompt: str) -> tuple[int, int] | None:
    # The delimiters count only as whole lines: an instruction may name them in running text.
    opening = re.search(rf"^{_OPEN}$", prompt, re.MULTILINE)
    if opening is None:
        return None
    closing = re.compile(rf"^{_CLOSE}$", re.MULTILINE).search(prompt, opening.end())
    return (opening.end(), closing.start() if closing else len(prompt))
