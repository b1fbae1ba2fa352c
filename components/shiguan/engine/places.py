"""Finds the place of a citation in a changed source, by its words and their surroundings."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from haystack import Document
from rapidfuzz.distance import Levenshtein

from shiguan.claims.citations import cited_place
from shiguan.engine.receipts import Receipt
from shiguan.llm.run import raise_if_cancelled
from shiguan.text.places import CONTEXT

# How many unchanged characters around a quotation identify its place, and how many more than elsewhere there must be.
_ENOUGH, _CLEAR = 8, 4
# A quotation of this many bytes (15 Han characters, about eight English words) that occurs once needs no context.
_UNIQUE = 45
# Where the words themselves have changed: the size in bytes of the pieces that are searched for, the share of them that
# must be found, how much larger that share must be than elsewhere, and the share of the quotation that must be found.
_PIECE, _PIECES, _LEAD, _SHARE = 15, 0.3, 0.2, 0.5
_MOST_PLACES = 200


class PlaceFinder:
    """Finds places in the current text of one source, given as passages in reading order."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = [document for document in documents if document.content]
        self._starts: list[int] = []
        self._shown_in: dict[int, list[int]] = {}
        texts = []
        length = 0
        for document in self._documents:
            self._starts.append(length)
            texts.append(_squeezed(document.content or ""))
            length += len(texts[-1])
        self._text = "".join(texts)

    def find(self, citation: Mapping[str, Any]) -> dict[str, Any]:
        """Return the `state` of a citation's place, of those in docs/notes.md, and where it is `now`, or None."""
        selector = citation.get("selector") or {"exact": citation.get("quote") or "", "prefix": "", "suffix": ""}
        words, before, after = (_squeezed(str(selector.get(name) or "")) for name in ("exact", "prefix", "suffix"))
        if not words:
            return {"state": "gone", "now": None}
        found = [(self._around(at, words, before, after), self._at_path(at, citation), at) for at in self._all(words)]
        found.sort(key=lambda match: match[:2], reverse=True)
        if found:
            (around, at_path, at), others = found[0], found[1:]
            alone = all(around - other >= _CLEAR or at_path > path for other, path, _ in others)
            # Where hardly anything is left of its surroundings, the quotation may be from another place.
            unique = not others and len(words.encode()) >= _UNIQUE
            known = unique or around >= min(_ENOUGH, len(before) + len(after))
            if alone and known:
                return {"state": "stands" if at_path == 1 else "moved", "now": self._place(at, at + len(words))}
            if around >= _ENOUGH or (not before and not after):
                return {"state": "doubtful", "now": None}
        place = self._changed(words, before, after)
        return {"state": "changed" if place else "gone", "now": place and self._place(*place)}

    def _all(self, words: str) -> list[int]:
        places: list[int] = []
        at = self._text.find(words)
        while at >= 0 and len(places) < _MOST_PLACES:
            places.append(at)
            at = self._text.find(words, at + 1)
        return places

    def _around(self, at: int, words: str, before: str, after: str) -> int:
        """Count the characters next to a place that match those next to the quotation."""
        end = at + len(words)
        left, right = self._text[max(0, at - len(before)) : at][::-1], self._text[end : end + len(after)]
        return _shared(left, before[::-1]) + _shared(right, after)

    def _at_path(self, at: int, citation: Mapping[str, Any]) -> float:
        """Return how well a place matches the cited path: 1 at that path, .5 in the same file, 0 elsewhere."""
        old, new = citation.get("anchor") or {}, self._place(at, at + 1)["anchor"] or {}
        if old and all(new.get(name) == value for name, value in old.items() if name != "spine"):
            return 1.0
        return 0.5 if old.get("href") and old["href"] == new.get("href") else 0.0

    def _changed(self, words: str, before: str, after: str) -> tuple[int, int] | None:
        """Find the stretch that has most pieces of the quotation and its surroundings in order."""
        whole = before + words + after
        size = max(4, _PIECE * len(whole) // len(whole.encode()))
        votes: list[tuple[int, int]] = []
        pieces = range(0, max(1, len(whole) - size + 1), max(1, size // 3))
        for start in pieces:
            raise_if_cancelled()
            votes += [(at - start, start) for at in self._all(whole[start : start + size])]
        votes.sort()
        # Insertions and deletions shift what follows by a part of the length.
        width = len(words) // 3 + CONTEXT
        best: list[tuple[float, int]] = []
        low = 0
        held: Counter[int] = Counter()
        for shift, start in votes:
            held[start] += 1
            while shift - votes[low][0] > width:
                past = votes[low][1]
                held[past] -= 1
                if not held[past]:
                    del held[past]
                low += 1
            best.append((len(held) / len(pieces), votes[low][0]))
        best.sort(reverse=True)
        if not best or best[0][0] < _PIECES:
            return None
        share, shift = best[0]
        if any(other > share - _LEAD and abs(at - shift) > len(whole) + width for other, at in best[1:]):
            return None
        low = max(0, shift - width)
        window = self._text[low : shift + len(whole) + 2 * width]
        blocks = Levenshtein.opcodes(whole, window).as_matching_blocks()
        first, last = len(before), len(before) + len(words)
        blocks = [block for block in blocks if block.size > 2]
        inside = [block for block in blocks if block.a < last and block.a + block.size > first]
        known = sum(min(block.a + block.size, last) - max(block.a, first) for block in inside)
        around = sum(block.size for block in blocks) - known
        # Different words in different surroundings are another place, however similar.
        if known < _SHARE * len(words) or around < _SHARE * (len(whole) - len(words)):
            return None
        start = inside[0].b + max(first - inside[0].a, 0) - max(inside[0].a - first, 0)
        end = inside[-1].b + min(inside[-1].size, last - inside[-1].a) + max(last - inside[-1].a - inside[-1].size, 0)
        return low + max(start, 0), low + min(end, len(window))

    def _place(self, start: int, end: int) -> dict[str, Any]:
        """Describe a place as citations do; if it reaches into the next passage, only its part in the first."""
        number = bisect_right(self._starts, start) - 1
        document, offset, shown = self._documents[number], self._starts[number], self._shown(number)
        span = shown[start - offset], shown[min(end - offset, len(shown)) - 1] + 1
        return cited_place(document, span)

    def _shown(self, number: int) -> list[int]:
        """Return the places in a passage of the characters that count."""
        if number not in self._shown_in:
            text = self._documents[number].content or ""
            self._shown_in[number] = [at for at, char in enumerate(text) if not char.isspace()]
        return self._shown_in[number]


def locate(receipt: Receipt, passages_of: Callable[[str], Sequence[Document]]) -> list[dict[str, Any]]:
    """Find the place of each citation of an answer in the current passages of its source."""
    finders: dict[str, PlaceFinder] = {}
    found = []
    for citation in receipt.answer.citations:
        data = citation.model_dump()
        result: dict[str, Any] = {"state": "outside", "now": None}
        if citation.other("origin", str) != "tool":
            if citation.source not in finders:
                finders[citation.source] = PlaceFinder(passages_of(citation.source))
            place = {name: citation.other(name, dict) for name in ("anchor", "selector")}
            result = finders[citation.source].find({**data, **place})
        found.append({**data, **result})
    return found


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _shared(first: str, second: str) -> int:
    pairs = enumerate(zip(first, second, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(first), len(second)))
