"""Says in a few words what a conversation was about, so that a follow-up can be searched without a model."""

import re
from collections.abc import Sequence

from haystack.dataclasses import ChatMessage

from shiguan.text.han import HAN, has_han
from shiguan.text.question_shapes import question_subject
from shiguan.text.rarity import rarity
from shiguan.text.terms import terms

# Words of the assistant count less than the person's; each earlier exchange counts less than the one after it.
_ASSISTANT, _DECAY = 0.3, 0.8
_WORD = re.compile(rf"[{HAN}]+|[^\W_{HAN}][^\W{HAN}'’.-]*(?:['’.-][^\W_{HAN}]+)*")
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
    for match in _WORD.finditer(question_subject(text)):
        word = match[0]
        if has_han(word) and len(word) > _LONGEST_RUN:
            continue
        parts = terms(word)
        if parts and not known.issuperset(parts):
            found.setdefault(" ".join(parts), (word, max(rarity(part) for part in parts)))
    return found
