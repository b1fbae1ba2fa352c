"""Where in a library a quotation stands: word for word, altered, put together from several places, or nowhere."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

from haystack import Document
from rapidfuzz import fuzz
from rapidfuzz.distance import Levenshtein, Prefix

from shiguan.claims.citations import cited_place
from shiguan.claims.word_differences import negations
from shiguan.tenants import of_tenant, where
from shiguan.text.terms import is_wide
from shiguan.verify.attribution import Attribution
from shiguan.verify.folded import NUMERALS, Folded, fold, joined, size_of

# Sizes are those of `size_of`.
_SHORTEST, _PIECE = 10, 240
# What an ellipsis may leave out, how far apart are two parts of one place, how small no part of a stitched one is,
# and how far around an altered one is looked.
_LEFT_OUT, _NEAR, _PART, _SLACK = 1500, 150, 20, 16
# From this likeness on, 0 to 100, a place has the quotation, altered; from this share on, parts make up the whole.
_ALTERED, _WHOLE = 72, 0.85
# How near to a quotation, in characters that count, a book names the work that it quotes itself.
_NAMED = 150
_HITS, _MOST_HITS, _BATCH, _LISTED = 24, 1024, 100, 20
_ELLIPSIS = re.compile(r"[\[(（〔【［]?\s{0,3}(?:\.\s?\.\s?\.[\s.]*|…+|⋯+|‥+|。。。+)\s*[\])）〕】］]?")
_NUMBER = re.compile(rf"[\d.,%{''.join(NUMERALS)}]+")
_EDITORS = re.compile(r"\[[^\[\]]*\]|［[^［］]*］|〔[^〔〕]*〕|⟨[^⟨⟩]*⟩|【[^【】]*】")
# A longer quotation is looked up in pieces that end with a word.
_LONG = 3000
_PIECES = re.compile(rf"(?s).{{1,{_LONG}}}(?=\s|\Z)|.{{1,{_LONG}}}(?<=[。！？；，、])|.{{1,{_LONG}}}")


@dataclass(frozen=True)
class Stretch:
    """Passages of one source that follow each other, as one text."""

    documents: Sequence[Document]

    @cached_property
    def starts(self) -> list[int]:
        """Where in the text each passage begins; a line break stands between two."""
        starts = [0]
        for document in self.documents[:-1]:
            starts.append(starts[-1] + len(document.content or "") + 1)
        return starts

    @cached_property
    def folded(self) -> Folded:
        """Its characters that count."""
        parts = [fold(document.content or "") for document in self.documents]
        return parts[0] if len(parts) == 1 else joined(parts, self.starts)

    @cached_property
    def text(self) -> str:
        """Its passages' texts."""
        return "\n".join(document.content or "" for document in self.documents)

    def section(self, at: int) -> Any:
        """Name the section that one of its characters is in."""
        return self.documents[bisect_right(self.starts, self.folded.places[at]) - 1].meta.get("section")

    def place(self, start: int, end: int) -> dict[str, Any]:
        """Describe a stretch of its characters as citations do, by the passage that it begins in."""
        first, last = self.folded.span(start, end)
        at = bisect_right(self.starts, first) - 1
        document, begins = self.documents[at], self.starts[at]
        within = cited_place(document, (first - begins, min(last - begins, len(document.content or ""))))
        return {**within, "quote": self.text[first:last], "author": document.meta.get("author")}


Span = tuple[Stretch, int, int]


class QuotationSearch:
    """Looks quotations up in the library of one tenant: candidates by their words, then character by character."""

    def __init__(self, stores: Mapping[str, Any], tenant_id: str) -> None:
        """Take a deployment's stores of parents and children."""
        self._parents, self._tenant = stores["parents"], tenant_id
        self._words = getattr(stores["children"], "words", stores["children"])

    @cached_property
    def attribution(self) -> Attribution:
        """What the library's works are called, read when a quotation first names one."""
        fields = ["source", "title", "author", "section"]
        return Attribution(self._parents.list_meta(of_tenant(self._tenant), fields))

    def check(self, quotation: str, named: str = "", *, beside: bool = False) -> dict[str, Any]:
        """
        Say where a quotation stands.

        :param quotation: Its words, without the marks around it.
        :param named: Where it is said to stand.
        :param beside: Whether that is the text around it, in which only what the library knows is a place.
        :returns: `verdict`, `reason`, `places` (how many), `also` (the others), `difference`, `parts` and, flat, the
            first place as citations have it.
        """
        if len(quotation) > _LONG:
            return self._in_pieces([self.check(one, named, beside=beside) for one in _PIECES.findall(quotation)])
        whole = fold(quotation)
        parts = [fold(part) for part in _ELLIPSIS.split(_EDITORS.sub(_edited, quotation))]
        parts = [part for part in parts if part.key]
        if size_of(whole.key) < _SHORTEST:
            return _verdict("too_short", "too short to be looked up")
        found, stretches = self._found(quotation, whole, parts)
        if found:
            places = [stretch.place(start, end) for stretch, start, end in found]
            there = [
                place
                for place, (stretch, start, end) in zip(places, found, strict=True)
                if not named
                or self.attribution.allows(
                    named, place, stretch.folded.key[max(0, start - _NAMED) : end + _NAMED], beside=beside
                )
            ]
            if not there:
                return _verdict("misattributed", "it stands elsewhere than the text says", places)
            return _verdict("found", "word for word", [*there, *(one for one in places if one not in there)])
        return self._unfound(parts or [whole], quotation, stretches)

    @staticmethod
    def _in_pieces(pieces: list[dict[str, Any]]) -> dict[str, Any]:
        """Say of a long quotation what is said of its first piece that is not found, or else of the first."""
        told = [one for one in pieces if one["verdict"] != "too_short"]
        wrong = next((one for one in told if one["verdict"] != "found"), None)
        sources = {one["source"] for one in told}
        if wrong is None and len(sources) > 1:
            return {**told[0], "verdict": "stitched", "reason": "parts of several places", "parts": told}
        found = wrong or (told or pieces)[0]
        return {**found, "difference": [edit for one in pieces for edit in one["difference"]]}

    def passages(self, text: str, count: int) -> list[Document]:
        """Give the passages that share the rarest words with a text, the best first."""
        names = list(self._families(text, 4 * count))[:count]
        return sorted(self._read("id", names), key=lambda one: names.index(one.id))

    def _found(self, quotation: str, whole: Folded, parts: list[Folded]) -> tuple[list[Span], list[Stretch]]:
        limit = _HITS
        while True:
            families = self._families(quotation, limit)
            read = {one.id: one for one in self._read("id", families)}
            stretches = self._stretches(read, families)
            found = [one for stretch in stretches for one in _exact(whole, parts, stretch)]
            more = [] if found else [one for one in self._beyond(whole, stretches) if one.id not in read]
            if more:
                stretches = self._stretches(read | {one.id: one for one in more}, families)
                found = [one for stretch in stretches for one in _exact(whole, parts, stretch)]
            # A quotation that stands in most of what was found may stand in more.
            holding = {document.id for stretch, *_ in found for document in stretch.documents}
            last = list(families)[-_HITS // 3 :]
            if len(families) < limit // 3 or not holding.intersection(last) or limit >= _MOST_HITS:
                return found, stretches
            limit *= 4

    def _families(self, quotation: str, limit: int) -> dict[str, list[Document]]:
        """Find the passages that share the rarest words with each piece of a quotation, and where in them."""
        size = max(1, _PIECE // 3 if is_wide(quotation[len(quotation) // 2]) else _PIECE)
        pieces = [quotation[at : at + size] for at in range(0, len(quotation), size)][:16]
        tenant = of_tenant(self._tenant)
        ranked: list[tuple[int, Document]] = []
        for piece in pieces:
            search = getattr(self._words, "bm25_retrieval", None) or self._words._bm25_retrieval
            ranked += enumerate(search(piece, filters=tenant, top_k=max(8, limit // len(pieces))))
        families: dict[str, list[Document]] = {}
        for _, child in sorted(ranked, key=lambda one: one[0]):
            families.setdefault(str(child.meta.get("parent_id") or child.id), []).append(child)
        return families

    def _beyond(self, whole: Folded, stretches: list[Stretch]) -> list[Document]:
        """Read what follows or goes before the passages over whose edge a quotation may run."""
        wanted: dict[str, set[int]] = {}
        for stretch, start, end in _cover(whole.key, stretches):
            for document, step, over in (
                (stretch.documents[0], -1, not start),
                (stretch.documents[-1], 1, end == len(stretch.folded.key)),
            ):
                if over:
                    wanted.setdefault(document.meta["source_id"], set()).add(
                        int(document.meta.get("position", 0)) + step
                    )
        same = [self._read("meta.position", at, where("meta.source_id", "==", one)) for one, at in wanted.items()]
        return [document for found in same for document in found]

    @staticmethod
    def _stretches(read: Mapping[str, Document], families: Iterable[str]) -> list[Stretch]:
        """Put passages together that follow each other, the likeliest first."""
        order = {name: rank for rank, name in enumerate(families)}
        runs: list[list[Document]] = []
        for parent in sorted(read.values(), key=lambda one: (one.meta["source_id"], int(one.meta.get("position", 0)))):
            before = runs[-1][-1].meta if runs else {}
            if (
                before.get("source_id") == parent.meta["source_id"]
                and before["position"] + 1 == parent.meta["position"]
            ):
                runs[-1].append(parent)
            else:
                runs.append([parent])
        runs.sort(key=lambda run: min(order.get(one.id, len(order)) for one in run))
        return [Stretch(run) for run in runs]

    def _read(self, field: str, values: Iterable[Any], *conditions: dict[str, Any]) -> Iterator[Document]:
        ordered = list(values)
        for start in range(0, len(ordered), _BATCH):
            some = where(field, "in", ordered[start : start + _BATCH])
            yield from self._parents.filter_documents(of_tenant(self._tenant, some, *conditions))

    def _unfound(self, parts: list[Folded], quotation: str, stretches: list[Stretch]) -> dict[str, Any]:
        """Tell what is altered from what is put together, and that from what is nowhere."""
        groups = _grouped([span for part in parts for span in _cover(part.key, stretches)])
        size = sum(len(part.key) for part in parts)
        large = [group for group in groups if sum(size_of(s.folded.key[a:b]) for s, a, b in group) >= _PART]
        if len(large) > 1 and sum(end - start for group in large for _, start, end in group) >= _WHOLE * size:
            places = [group[0][0].place(group[0][1], group[-1][2]) for group in large]
            return {**_verdict("stitched", "parts of several places", places), "parts": places}
        key = "".join(part.key for part in parts)
        best: tuple[float, Span | None] = (_ALTERED, None)
        for stretch in stretches[: 3 if len(key) > 500 else _HITS]:
            near = fuzz.partial_ratio_alignment(key, stretch.folded.key, score_cutoff=best[0])
            if near is not None and near.score > best[0] and near.dest_end > near.dest_start:
                best = near.score, (stretch, near.dest_start, near.dest_end)
        if best[1] is None:
            return _verdict("absent", "nothing in the library is like it")
        stretch, start, end = best[1]
        first, last = stretch.folded.span(max(0, start - _SLACK), min(len(stretch.folded.key), end + _SLACK))
        edits, (from_, to) = differences(quotation, stretch.text[first:last])
        place = stretch.place(stretch.folded.after(first + from_), stretch.folded.after(first + to))
        return {**_verdict("altered", "not word for word", [place]), "difference": edits}


def differences(quotation: str, around: str) -> tuple[list[dict[str, str]], tuple[int, int]]:
    """Line a quotation up word by word with the text around its place: what differs, and the place."""
    mine, theirs = (_tokens(text) for text in (quotation, around))
    edits: list[Any] = Levenshtein.opcodes([a for a, *_ in mine], [a for a, *_ in theirs]).as_list()
    # What stands before it and behind it is no part of it; a word changed at its edge is the next one to that.
    match edits:
        case [("replace", start, end, *_), ("insert", _, _, _, to), *_]:
            edits[:2] = [("replace", start, end, to - (end - start), to)]
    match edits:
        case [*_, ("insert", _, _, from_, _), ("replace", start, end, *_)]:
            edits[-2:] = [("replace", start, end, from_, from_ + end - start)]
    edits = edits[1:] if edits and edits[0][0] == "insert" else edits
    edits = edits[:-1] if edits and edits[-1][0] == "insert" else edits
    found = []
    for equal, some in groupby(edits, key=lambda edit: edit[0] == "equal"):
        if not equal:
            run = list(some)
            ours, other = mine[run[0][1] : run[-1][2]], theirs[run[0][3] : run[-1][4]]
            quoted = quotation[ours[0][1] : ours[-1][2]] if ours else ""
            found.append({"quoted": quoted, "stands": around[other[0][1] : other[-1][2]] if other else ""})
    place = theirs[edits[0][3] : edits[-1][4]] if edits else theirs
    return found, (place[0][1], place[-1][2]) if place else (0, len(around))


def _tokens(text: str) -> list[tuple[str, int, int]]:
    folded = fold(text)
    found: list[tuple[str, int, int]] = []
    for at, letter in enumerate(folded.key):
        start, end = folded.span(at, at + 1)
        if found and folded.edges[at] == 0 and not is_wide(letter):
            word, start, _ = found.pop()
            found.append((word + letter, start, end))
        else:
            found.append((letter, start, end))
    return found


def _exact(whole: Folded, parts: list[Folded], stretch: Stretch) -> list[Span]:
    """Find a quotation in a stretch: as it is written, or its parts around what it leaves out, in their order."""
    text = stretch.folded
    found = [(stretch, at, at + len(whole.key)) for at in whole.find(text)]
    if found or not parts or parts == [whole]:
        return found
    for at in parts[0].find(text):
        end = at + len(parts[0].key)
        for part in parts[1:]:
            following = next(part.find(text, end), -1)
            left_out = text.key[end:following]
            if following < 0 or size_of(left_out) > _LEFT_OUT or stretch.section(following) != stretch.section(at):
                break
            # An ellipsis must not hide a denial.
            if 0 < size_of(left_out) < 10 and negations(stretch.text[slice(*text.span(end, following))]):
                break
            end = following + len(part.key)
        else:
            found.append((stretch, at, end))
    return found


def _cover(key: str, stretches: Sequence[Stretch]) -> Iterator[Span]:
    """Find from left to right the longest stretches of a quotation that stand somewhere word for word."""
    at, before = 0, None
    while at < len(key):
        probe = key[at : at + (5 if is_wide(key[at]) else 14)]
        best: tuple[int, bool, Span] | None = None
        for stretch in stretches:
            text = stretch.folded.key
            start = text.find(probe)
            while start >= 0:
                length = Prefix.similarity(key[at:], text[start : start + len(key) - at])
                one = (length, stretch is before, (stretch, start, start + length))
                best = one if best is None or one[:2] > best[:2] else best
                start = text.find(probe, start + 1)
        if best is None:
            at += 1
            continue
        at, before = at + best[0], best[2][0]
        yield best[2]


def _grouped(spans: Sequence[Span]) -> list[list[Span]]:
    """Put together what stands in one place."""
    groups: list[list[Span]] = []
    for stretch, start, end in spans:
        last = groups[-1][-1] if groups else None
        if (
            last is not None
            and last[0] is stretch
            and start >= last[1]
            and size_of(stretch.folded.key[last[2] : start]) <= _NEAR
        ):
            groups[-1].append((stretch, start, end))
        else:
            groups.append([(stretch, start, end)])
    return groups


def _edited(bracket: re.Match[str]) -> str:
    """Leave out what an editor put in, unless it is an ellipsis or turns the statement round."""
    inside, behind = bracket[0][1:-1], bracket.string[bracket.end() : bracket.end() + 1]
    if _ELLIPSIS.fullmatch(bracket[0]) or negations(inside) or _NUMBER.fullmatch(inside):
        return bracket[0]
    return inside if behind.isalnum() and not is_wide(behind) else " "  # [H]e


def _verdict(verdict: str, reason: str, places: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    first = places[0] if places else dict.fromkeys(("parent_id", "source", "title", "section", "anchor", "quote"))
    return {
        "verdict": verdict,
        "reason": reason,
        **first,
        "places": len(places),
        "also": list(places[1:_LISTED]),
        "difference": [],
    }
