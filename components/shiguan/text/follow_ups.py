"""Decides by rules whether a question depends on the turns before it, and which of their words to search with."""

import math
import re
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path

from haystack.dataclasses import ChatMessage

from shiguan.resources import read_patterns
from shiguan.text.dictionary import dictionary_words
from shiguan.text.languages import HAN, HAN_RUN, detect_language, has_han
from shiguan.text.name_forms import names_of
from shiguan.text.quantities import quantities
from shiguan.text.terms import has_subject, question_subject, rarity, terms

# From one mark to the next of its kind, so that a question of opening marks alone is read once.
_QUOTED = re.compile(r"“[^“”]*”|「[^「」]*」|《[^《》]*》|\"[^\"]*\"")
_HAN = re.compile(f"[{HAN}]")
_NAMED_ZH = re.compile(rf"[{HAN}]|[A-Za-z0-9]+")
_LATIN = re.compile(r"[A-Za-z]{3}")
# A Chinese question of up to this many characters says too little by itself; after this many a pronoun has its noun.
_SHORT_ZH, _ANTECEDENT_ZH = 4, 3
_LONGEST_NAME = 3  # characters of a Chinese name that no dictionary has
_CAPITAL = re.compile("[A-Z]")
# An English question without a name says too little by itself if the rarities of its words, each from 0 to 1, add up to
# no more than this.
_LITTLE = 0.8
_POSSESSIVES = frozenset({"his", "its", "their"})
_BOUND = frozenset({"this", "these", "those", "that", "her"})
_NEXT_WORD = re.compile(r"\s[A-Za-z]")


_CUES = read_patterns(Path(__file__).with_name("follow_ups.yaml"))


def needs_context(question: str, *, has_history: bool = True) -> bool:
    """
    Return whether a question has to be read with the turns before it.

    Of complete questions of four public sets 1 to 4 % are mistaken for one, of TREC CAsT's follow-ups 84 % recognized.
    """
    text = " ".join(question.split())
    if not has_history or not text:
        return False
    plain = _QUOTED.sub("“”", text)
    return _depends_zh(plain) if detect_language(text) in ("zh", "ja") else _depends_en(plain)


def _depends_zh(text: str) -> bool:
    opener = _CUES["openers_zh"].search(text)
    if opener and len(_first_word(text)) <= len(opener[0]):
        return True
    if any(_CUES[name].search(text) for name in ("ending_zh", "side_zh")):
        return True
    if len(_HAN.findall(text)) <= _SHORT_ZH and not _LATIN.search(text):
        return True
    there = _CUES["place_zh"].search(text)
    return _has_lost_pointer(text) or bool(there and names_of(text[: there.start()]))


def _has_lost_pointer(text: str) -> bool:
    """Return whether the first pronoun has neither a few characters nor something quoted before it."""
    pronoun = _CUES["pointers_zh"].search(text)
    if pronoun is None:
        return False
    before = _CUES["lead_zh"].sub("", text[: pronoun.start()], count=1)
    return len(_NAMED_ZH.findall(before)) < _ANTECEDENT_ZH and "“”" not in before


def _first_word(text: str) -> str:
    run = HAN_RUN.match(text)
    return "".join(next(iter(dictionary_words(run[0], translated=False)))[0]) if run else ""


def says_enough(text: str) -> bool:
    """Return whether a short Chinese question has two words, besides those that only ask, that can be its topic."""
    words = ("".join(parts) for run in HAN_RUN.findall(text) for parts, _ in dictionary_words(run, translated=False))
    return sum(len(word) > 1 and has_subject(word) for word in words) > 1


def _depends_en(text: str) -> bool:
    if any(_CUES[name].search(text) for name in ("openers_en", "missing_en")):
        return True
    asked = re.sub(r"^tell me (?:more )?(?:about )?", "", text, flags=re.IGNORECASE)
    if _CUES["talk_en"].search(asked) or _lacks_antecedent(text):
        return True
    named = any(_CUES[cue].search(text) for cue in ("name_en", "general_en")) or re.search(r"\d", text)
    return not named and not _CUES["explain_en"].search(text) and sum(map(rarity, set(terms(asked)))) <= _LITTLE


def _lacks_antecedent(text: str) -> bool:
    """Return whether an English question has a pronoun that cannot refer to a name or noun before it."""
    # Each cue is looked for once: a question may consist of pronouns.
    named, noun, place = (_first_end(cue, text) for cue in ("name_en", "noun_en", "place_en"))
    asks = bool(_CUES["asking_en"].search(text))
    clauses = [match.start() for match in _CUES["clause_en"].finditer(text)]
    for pronoun in _CUES["pronoun_en"].finditer(text):
        at, word = pronoun.start(), pronoun[0].lower()
        known = noun <= at
        if named <= at:
            known = word != "there" or place <= at
        elif word not in _POSSESSIVES and not (word in _BOUND and _NEXT_WORD.match(text, pronoun.end())):
            # Within one clause an object is not its subject, unless the sentence asks nothing until later.
            known = noun <= _last_before(clauses, at) or (known and not asks)
        if not known:
            return True
    return False


def _first_end(cue: str, text: str) -> float:
    match = _CUES[cue].search(text)
    return match.end() if match else math.inf


def _last_before(places: list[int], at: int) -> int:
    after = bisect_left(places, at)
    return places[after - 1] if after else 0


def asked_of_another(question: str, turns: Sequence[ChatMessage]) -> str:
    """Return the last question with its one name replaced by the one that this is ("And Tashtego?"), or nothing."""
    name = _another(question)
    asked = (turn.text or "" for turn in reversed(turns) if turn.role.value == "user")
    last = next((text for text in asked if not _another(text)), "") if name else ""
    names = _names_in(last)
    if len(names) != 1 or has_han(name) != has_han(last):
        return ""
    return re.sub(rf"(?:\b(?:an?|the)\s+)?{re.escape(names[0])}", lambda _: name, last, flags=re.IGNORECASE)


def _another(question: str) -> str:
    """Return the name that a question consists of behind "And", "What about", 那 or before 呢; "" if there is none."""
    found = _CUES["another"].search(" ".join(question.split()))
    name = (found["en"] or found["zh"]) if found else ""
    return name if name and _names_in(f"- {name}")[-1:] == [name] else ""


def _names_in(text: str) -> list[str]:
    """Return the names of a text, Chinese ones also by the dictionary, or if they are single characters to it."""
    names = list(names_of(text))
    for run in HAN_RUN.finditer(text):
        words, at = list(dictionary_words(run[0], translated=False)), run.start()
        for parts, meanings in words:
            word = text[at : at + len(parts)]
            at += len(parts)
            if len(word) > 1 and meanings and _CAPITAL.search(meanings[0]) and not any(word in one for one in names):
                names.append(word)
        if not names and 1 < len(run[0]) == len(words) <= _LONGEST_NAME and not quantities(run[0]):
            names.append(run[0])
    return names


# Words of the assistant count less than the user's; each exchange counts less than the one after it.
_ASSISTANT, _DECAY = 0.3, 0.8
_WORD = re.compile(rf"[{HAN}]+|[^\W_{HAN}][^\W{HAN}'’.-]*(?:['’.-][^\W_{HAN}]+)*")
# The marks of an answer's citations, as they are or made harmless.
_CITATION = re.compile(r"[\[(]\d{1,3}(?:, ?\d{1,3}){0,8}[\])]")
# A run of Chinese characters longer than this is a clause, not a word.
_LONGEST_RUN = 8
_MOST_TERMS = 6


def salient_terms(question: str, turns: Sequence[ChatMessage]) -> list[str]:
    """
    Return the most informative words of the turns before a question that it does not have itself.

    On half of the conversations of MT-RAG four to twelve found passages better than the whole question before it.
    """
    known, wide = set(terms(question)), has_han(question)
    weights: dict[str, float] = {}
    spelled: dict[str, str] = {}
    about = _exchanges(question, turns)
    for place, turn in enumerate(turns):
        if about is not None and place not in about:
            continue
        age = (len(turns) - 1 - place) // 2
        share = (1.0 if turn.role.value == "user" else _ASSISTANT) * _DECAY**age
        for key, (word, weight) in _words(turn.text or "", known).items():
            if turn.role.value != "user" and has_han(word) != wide:
                continue
            weights[key] = weights.get(key, 0.0) + share * weight
            spelled.setdefault(key, word)
    best = sorted(weights, key=lambda key: -weights[key])
    return [spelled[key] for key in best[:_MOST_TERMS]]


def _exchanges(question: str, turns: Sequence[ChatMessage]) -> set[int] | None:
    """Return the places of the turns that have a name of a question that lacks only a place or a time; None for all."""
    names = [name for name in (set(terms(name)) for name in names_of(question)) if name]
    if not names or needs_context(_CUES["local_en"].sub("", _CUES["place_zh"].sub("", question))):
        return None
    found: set[int] = set()
    for place, turn in enumerate(turns):
        words = set(terms(turn.text or ""))
        if any(name <= words for name in names):
            found |= {place, place - 1 if turn.role.value != "user" else place + 1}
    return found


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
