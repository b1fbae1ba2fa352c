"""Quotations: of each passage the few sentences closest to a question, whole and in their own words."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml
from haystack import Document

from shiguan.claims.citations import anchor_at
from shiguan.resources import resource_folder
from shiguan.text.han import fold_han, is_wide
from shiguan.text.rarity import covered, question_weights
from shiguan.text.sentences import sentence_spans
from shiguan.text.terms import terms

Span = tuple[int, int]

_MOST = 3
"""How many passages are quoted."""

# A window has two to four sentences; short ones (dialogue, rows of a table) go on to as many characters of Latin text.
_FEWEST, _SENTENCES, _SHORT, _LONGEST = 2, 4, 240, 900
# Where the question's words weigh as much as what retrieval matched, both 0 to 1.
_BY_WORDS = 1.0
# A sentence whose subject stands in the one before it: "It is 5,464 kilometres long."
_POINTS_BACK = re.compile(
    r"^[\s\"'“”‘’「『(（]*(?:(?:he|she|it|they|his|her|its|their|this|these|that|those|such|the (?:former|latter))\b"
    r"|[他她它牠祂其此这這该該]|于是|於是|因此|所以|后来|後來|然而|但|同年|是年|是岁|是歲)",
    re.IGNORECASE,
)
# The one person or thing that a question asks to introduce, and how a passage does so.
_THING = re.compile(
    r"^(?:who|what) (?:is|was|are|were) (?:(?:the|an?) )?([^?]{2,60}?)\s*\?*$"
    r"|^([^，,的]{1,12}?)(?:是谁|是何人|是什么人?|何许人也|何人也?)[？?]*$"
    r"|^(?:什么是|何谓|谁是)([^，,的]{1,12}?)[？?]*$",
    re.IGNORECASE,
)
_INTRODUCTION = (
    r"\bNAME(?:\s?\([^)]*\))?(?:,? (?:who|which))?,? (?:is|was|are|were|means|refers to) (?:an?|the|one)\b"
    r"|(?:^|[。！？\n])\s*NAME(?:（[^）]*）)?(?:，|者，)?(?:(?:本|字|名)[^，。]{1,6}，)*"
    r"(?:[^，。]{1,12}(?:人|也|之子|子|女)也?[，。；]|(?:是|为|乃|即|指)(?!所))"
)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


@dataclass(frozen=True)
class Quotation:
    """A window of a passage, the sentence in it that is closest to the question, and the question's words in that."""

    document: Document
    window: Span
    sentence: Span
    words: tuple[Span, ...]

    def citation(self, confidence: float) -> dict[str, Any]:
        """Write it as a citation of the answer object; places in the passage are places in the stored parent."""
        document, meta = self.document, self.document.meta
        offset = (meta.get("cut") or [0])[0]
        section = meta.get("section") or []
        start, end = self.window
        return {
            "number": meta.get("number", 1),
            "claim": {"start": 0, "end": 0},
            "parent_id": document.id,
            "source": meta.get("source", ""),
            "title": meta.get("title", ""),
            "section": [section] if isinstance(section, str) else list(section),
            "anchor": anchor_at(meta, offset + start),
            "start": offset + start,
            "end": offset + end,
            "quote": (document.content or "")[start:end],
            "sentence": [offset + at for at in self.sentence],
            "words": [[offset + a, offset + b] for a, b in self.words],
            "confidence": round(confidence, 4),
            "verdict": "quoted",
        }


def quotations(documents: Sequence[Document], question: str) -> list[Quotation]:
    """Quote the passages that come first; one that introduces whom the question asks about comes before the others."""
    weights = question_weights(question)
    introduces = _introduction(question)
    if introduces is not None:
        documents = sorted(documents, key=lambda one: not introduces.search(fold_han(one.content or "")))
    found = (_quotation(document, weights, introduces) for document in documents)
    return [one for one in found if one is not None][:_MOST]


def _quotation(
    document: Document, weights: Mapping[str, float], introduces: re.Pattern[str] | None
) -> Quotation | None:
    text = document.content or ""
    sentences = sentence_spans(text)
    if not sentences:
        return None
    values = _values(document, sentences, weights)
    if introduces is not None and (match := introduces.search(fold_han(text))):
        values[_at(sentences, match.end() - 1)] += 2.0
    first, last = _window(text, sentences, values)
    best = max(range(first, last + 1), key=lambda at: values[at])
    window = (sentences[first][0], sentences[last][1])
    return Quotation(document, window, sentences[best], tuple(_asked_words(text, sentences[best], weights)))


def _values(document: Document, sentences: Sequence[Span], weights: Mapping[str, float]) -> list[float]:
    """Say how close each sentence is: what the retrieval matched there, and the question's words."""
    text, offset = document.content or "", (document.meta.get("cut") or [0])[0]
    matches = [one for one in document.meta.get("matches") or [] if isinstance(one, dict)]
    best = max((one.get("score") or 0.0 for one in matches), default=0.0)
    values = []
    for start, end in sentences:
        matched = max(
            ((one.get("score") or 0.0) / best if best > 0 else 1.0
             for one in matches if one["start"] < end + offset and start + offset < one["end"]),
            default=0.0,
        )  # fmt: skip
        values.append(matched + _BY_WORDS * covered(weights, terms(text[start:end])))
    return values


def _window(text: str, sentences: Sequence[Span], values: Sequence[float]) -> Span:
    """Choose the run of whole sentences with the closest ones, the one that a first pronoun points to included."""
    first = last = max(range(len(sentences)), key=lambda at: (values[at], -at))
    while True:
        count, size = last - first + 1, _size(text[sentences[first][0] : sentences[last][1]])
        if size >= _LONGEST or (count >= _SENTENCES and size >= _SHORT):
            break
        sides = [at for at in (first - 1, last + 1) if 0 <= at < len(sentences)]
        if not sides:
            break
        if first - 1 in sides and _POINTS_BACK.match(text[slice(*sentences[first])]):
            at = first - 1
        else:
            # What follows explains more often than what stands before.
            at = max(sides, key=lambda side: (values[side], side))
        if count >= _FEWEST and size + _size(text[slice(*sentences[at])]) > _LONGEST:
            break
        first, last = min(first, at), max(last, at)
    return first, last


def _size(text: str) -> int:
    """Measure a text in Latin characters: a wide one says as much as three."""
    return len(text) + 2 * sum(map(is_wide, text))


def _at(sentences: Sequence[Span], place: int) -> int:
    return next((at for at, (start, end) in enumerate(sentences) if start <= place < end), 0)


def _introduction(question: str) -> re.Pattern[str] | None:
    thing = _THING.search(fold_han(question.strip()))
    if thing is None:
        return None
    name = next(group for group in thing.groups() if group).strip()
    return re.compile(_INTRODUCTION.replace("NAME", re.escape(name)), re.IGNORECASE)


def _asked_words(text: str, sentence: Span, asked: Collection[str]) -> list[Span]:
    """Find the question's words in a sentence; of Han text, the pairs of neighbours."""
    spans: list[Span] = []
    for match in _WORD.finditer(text, *sentence):
        if not is_wide(match[0][0]):
            found = [match.span()] if any(term in asked for term in terms(match[0])) else []
        else:
            pairs = range(match.start(), match.end() - 1)
            found = [(at, at + 2) for at in pairs if terms(text[at : at + 2])[-1:] and terms(text[at : at + 2])[-1] in asked]
        for start, end in found:
            if spans and start <= spans[-1][1]:
                spans[-1] = (spans[-1][0], end)
            else:
                spans.append((start, end))
    return spans


def write_quotations(
    quoted: Sequence[Quotation], language: str, confidence: float
) -> tuple[str, list[dict[str, Any]]]:
    """Write the answer that consists of quotations, in Markdown, and its citations."""
    sentences = _sentences()
    text, citations = sentences.get(language, sentences["en"]), []
    for one in quoted:
        citation = one.citation(confidence)
        content, (start, end), (a, b) = one.document.content or "", one.window, one.sentence
        marked = f"{content[start:a]}**{content[a:b]}**{content[b:end]}"
        quote = "\n".join(f"> {line}".rstrip() for line in marked.splitlines())
        text += f"\n\n[{citation['number']}] {' › '.join([citation['source'], *citation['section']])}\n\n"
        citation["claim"] = {"start": len(text), "end": len(text) + len(quote)}
        citations.append(citation)
        text += quote
    return text, citations


@cache
def _sentences() -> dict[str, str]:
    read: dict[str, str] = yaml.safe_load((resource_folder("prompts") / "quotations.yml").read_text(encoding="utf-8"))
    return read
