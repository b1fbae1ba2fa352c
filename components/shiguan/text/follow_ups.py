"""What a question needs of the turns before it: whether it leans on them, and the words that they lend it."""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from haystack.dataclasses import ChatMessage

from shiguan.resources import read_patterns
from shiguan.text.han import HAN, has_han
from shiguan.text.languages import detect_language
from shiguan.text.rarity import question_subject, rarity
from shiguan.text.terms import terms

_SHORT_ZH = 4
_QUOTED = re.compile(r"“[^”]*”|「[^」]*」|《[^》]*》|\"[^\"]*\"")


@cache
def _cues() -> dict[str, Any]:
    return read_patterns(Path(__file__).with_name("follow_ups.yaml"))


def needs_context(question: str, *, has_history: bool = True) -> bool:
    """
    Tell whether a question has to be read with the turns before it.

    Meant to save a call of a model, so it errs towards yes. A pronoun without a name before it, a word that opens an
    addition ("And…", "那…"), something left out ("the other one", "呢？"), a side of an unnamed thing ("What are the
    symptoms?") or next to no words are a yes. An English question is a no only if it names its own subject.
    """
    text = " ".join(question.split())
    if not has_history or not text:
        return False
    plain = _QUOTED.sub("“”", text)
    found = {name for name, pattern in _cues().items() if pattern.search(plain)}
    if detect_language(text) in ("zh", "ja"):
        leaning = {"pointers_zh", "openers_zh", "ending_zh", "side_zh"}
        return bool(found & leaning) or len(re.findall(f"[{HAN}]", plain)) <= _SHORT_ZH
    if found & {"openers_en", "missing_en", "bare_side_en"}:
        return True
    if "pointers_en" in found and "antecedent_en" not in found:
        return True
    if found & {"explain_en", "antecedent_en"}:
        return False
    return "name_en" not in found or "the_one_en" in found


# Words of the assistant count less than the person's; each earlier exchange counts less than the one after it.
_ASSISTANT, _DECAY = 0.3, 0.8
_WORD = re.compile(rf"[{HAN}]+|[^\W_{HAN}][^\W{HAN}'’.-]*(?:['’.-][^\W_{HAN}]+)*")
# The marks of an answer's citations, as they are or made harmless.
_CITATION = re.compile(r"[\[(]\d{1,3}(?:, ?\d{1,3}){0,8}[\])]")
# A run of Chinese characters longer than this is a clause and no word.
_LONGEST_RUN = 8


def salient_terms(question: str, turns: Sequence[ChatMessage], limit: int = 6) -> list[str]:
    """
    Take from the turns before a question the words that tell most and that it does not have itself.

    A word's weight is its rarity in writing at large, added up over the turns that have it: the person's own turns
    count in full, the assistant's less, older ones less. On half of the conversations of MT-RAG the last turn with
    four to twelve such words found passages better than with the whole question before it; six is in the middle.
    """
    known = set(terms(question))
    weights: dict[str, float] = {}
    spelled: dict[str, str] = {}
    for place, turn in enumerate(turns):
        age = (len(turns) - 1 - place) // 2
        share = (1.0 if turn.role.value == "user" else _ASSISTANT) * _DECAY**age
        for key, (word, weight) in _words(turn.text or "", known).items():
            weights[key] = weights.get(key, 0.0) + share * weight
            spelled.setdefault(key, word)
    best = sorted(weights, key=lambda key: -weights[key])
    return [spelled[key] for key in best[:limit]]


def _words(text: str, known: set[str]) -> dict[str, tuple[str, float]]:
    """Map each new word of a turn, by its search terms, to its spelling and its rarity."""
    found: dict[str, tuple[str, float]] = {}
    for match in _WORD.finditer(question_subject(_CITATION.sub(" ", text))):
        word = match[0]
        if has_han(word) and len(word) > _LONGEST_RUN:
            continue
        parts = terms(word)
        if parts and not known.issuperset(parts):
            found.setdefault(" ".join(parts), (word, max(rarity(part) for part in parts)))
    return found
