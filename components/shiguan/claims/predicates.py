"""Finds what a passage says of somebody further on in the sentence that names him."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from shiguan.claims.clauses import JOINS, Clauses
from shiguan.claims.matching import Matcher, Pieces
from shiguan.claims.tokens import IRREGULAR, WORDS, Span, Token, is_finite
from shiguan.reading.text import read_text
from shiguan.text.name_forms import han_names

# So long a subject may be, and so far behind it a predicate is looked for, in tokens.
_LONGEST_SUBJECT, _FARTHEST = 8, 60
# So many tokens of the predicate may stand behind the subject too: he was a smith, and was a soldier.
_SHARED = 2
# So many tokens may stand between what opens a predicate and the predicate: later, 随后.
_BETWEEN = 2
_PREPOSITIONS = frozenset("of by with to from for against about in on at into upon under over between among".split())
_RELATIVES = frozenset("父母兄弟姊妹子孙女妻夫婿侄叔伯舅祖")


def of_subject(wanted: Sequence[Token], there: Clauses) -> Iterator[Pieces]:
    """
    Yield where a passage names a claim's subject, and where, further on, it has the rest of the claim.

    Both are in one sentence, in which the subject is not named again between them, and nobody else who may do the rest;
    whether the passage says it of him is not looked at.
    """
    matcher = Matcher(wanted, there)
    for (start, whole, most), (last, *_) in pairwise([*matcher.mentions(), (len(there.tokens), 0, 0)]):
        # Where the passage leaves out or adds a word, it is not known which of its tokens are whose.
        least = max(1, most - _SHARED) if whole - start == most else most
        for size in range(most, least - 1, -1):
            end = whole - (most - size)
            if not _is_subject(wanted[:size], there, (start, end)):
                continue
            for at, to in _predicates(wanted, there, size, range(end, min(last, end + _FARTHEST))):
                stop = matcher.rest(at, to)
                if stop and there.can_begin(to) and there.can_end(stop):
                    yield [(start, end), (to, stop)]


def _is_subject(words: Sequence[Token], there: Clauses, span: Span) -> bool:
    """Return whether words of a claim may be a subject there: without a verb or number, whole, and nobody's object."""
    start, end = span
    if end >= len(there.tokens) or len(words) > _LONGEST_SUBJECT or not there.can_begin(start):
        return False
    has_verb = not words[0].is_han and any(map(is_finite, words))
    is_object = start > 0 and not there.tokens[start].breaks and there.tokens[start - 1].key in _PREPOSITIONS
    if has_verb or is_object or any(word.number for word in words):
        return False
    behind = there.tokens[end]
    if behind.is_han and not behind.breaks:
        return not any(first < behind.start < last for first, last in read_text(there.text).once(han_names))
    return bool(behind.breaks) or not (behind.is_capital and words[-1].is_capital)


def _predicates(wanted: Sequence[Token], there: Clauses, size: int, behind: range) -> Iterator[Span]:
    """Yield where what a claim says of its subject may begin: the place in the claim, and that behind the subject."""
    said = wanted[size:]
    for to in behind:
        if there.tokens[to].stops:
            return
        begins = to > behind[0] and said[0].same(there.tokens[to])
        if begins and (opens := _opening(there, to)) is not None:
            if any(_names_another(there, at) for at in range(behind[0], opens)):
                return
            if there.tokens[opens - 1].key not in WORDS["relative"] or opens - 1 == behind[0]:
                yield size, to
        elif _lacks_verb(said, there, to, behind[0]):
            yield size + 1, to


def _names_another(there: Clauses, at: int) -> bool:
    """Return whether somebody else may do what follows: withdrew, and the prior, Odo, sold it; 父处廉，终汾州司马."""
    one, after = there.tokens[at : at + 2]
    if one.is_han:
        return bool(one.breaks) and (one.key in _RELATIVES or (one.key == "其" and after.key in _RELATIVES))
    is_new = bool(after.article) or after.is_capital or after.key in WORDS["pronouns"]
    return bool(one.breaks) and one.key in JOINS and is_new


def _lacks_verb(wanted: Sequence[Token], there: Clauses, at: int, end: int) -> bool:
    """Return whether the `was` of a claim may be left out there: the deed, signed by Lincoln; 于谦，字廷益，钱塘人."""
    if not wanted[1:] or there.tokens[at].breaks not in (",", "，"):
        return False
    if wanted[0].key == "是":
        return wanted[-1].key == "人" and there.is_joint(at + len(wanted) - 1)
    return at == end and wanted[0].key in WORDS["be"] and (wanted[1].key in IRREGULAR or wanted[1].key.endswith("ed"))


def _opening(there: Clauses, at: int) -> int | None:
    """Return the joint behind which at most an adverb stands before a place."""
    for to in range(at, max(0, at - _BETWEEN - 1), -1):
        between = [token.key for token in there.tokens[to:at]]
        is_adverb = not between or not WORDS["between"].isdisjoint([*between, "".join(between)])
        if is_adverb and there.is_joint(to):
            return to
    return None
