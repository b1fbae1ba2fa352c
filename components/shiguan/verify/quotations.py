"""Finds a quotation in a library: word for word, altered, stitched together from several places, or not at all."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any

from haystack import Document
from rapidfuzz import fuzz
from rapidfuzz.distance import Levenshtein, Prefix

from shiguan.claims.opposites import negations
from shiguan.llm.run import raise_if_cancelled
from shiguan.reading.edges import NUMERALS, hidden_denial, number_around
from shiguan.reading.folded import Folded, fold
from shiguan.reading.text import read_text
from shiguan.tenants import of_tenant, where
from shiguan.text.terms import is_wide, size_of
from shiguan.verify.attribution import Attribution
from shiguan.verify.stretches import Span, Stretch, bare_of, position_of, stretches_of

# Sizes are those of `size_of`.
_SHORTEST, _PIECE = 10, 240
# The most an ellipsis may leave out, the largest gap between two parts of one place, the smallest part of a stitched
# quotation, and how far around an altered one the text is compared.
_LEFT_OUT, _NEAR, _PART, _SLACK = 1500, 150, 20, 16
# From this similarity on, 0 to 100, a place has the quotation, altered; from this share on, parts make up the whole.
_ALTERED, _WHOLE = 72, 0.85
# How many characters of a long quotation are looked for at a time: a machine word has a bit for each.
_SAMPLE = 64
# How near to a quotation, in characters that count, a book may name the work that it quotes.
_NAMED = 150
_HITS, _MOST_HITS, _BATCH, _LISTED = 24, 1024, 100, 20
_ELLIPSIS = re.compile(r"[\[(（〔【［]?\s{0,3}(?:\.\s?\.\s?\.[\s.]*|…+|⋯+|‥+|。。。+)\s*[\])）〕】］]?")
_NUMBER = re.compile(rf"[\d.,%{''.join(NUMERALS)}]+")
_EDITORS = re.compile(r"\[[^\[\]]*\]|［[^［］]*］|〔[^〔〕]*〕|⟨[^⟨⟩]*⟩|【[^【】]*】")
# A longer quotation is looked up in pieces that end with a word.
_LONG = 3000
_PIECES = re.compile(rf"(?s).{{1,{_LONG}}}(?=\s|\Z)|.{{1,{_LONG}}}(?<=[。！？；，、])|.{{1,{_LONG}}}")


class QuotationSearch:
    """Looks quotations up in the library of one tenant: finds candidates by words, then compares characters."""

    def __init__(self, stores: Mapping[str, Any], tenant_id: str) -> None:
        self._parents, self._children, self._tenant = stores["parents"], stores["children"], tenant_id

    @cached_property
    def attribution(self) -> Attribution:
        """The names of the library's works, read when a quotation first names one."""
        fields = ["source", "title", "author", "section"]
        return Attribution(self._parents.list_meta(of_tenant(self._tenant), fields))

    def check(self, quotation: str, named: str = "", *, in_context: bool = False) -> dict[str, Any]:
        """
        Find a quotation, given without its marks, where it is said to be; `in_context`, `named` is the text around it.

        Returns `verdict`, `reason`, `places` (how many), `also`, `difference`, `parts` and, flat, the first place.
        """
        if len(quotation) > _LONG:
            pieces = _PIECES.findall(quotation)
            return _in_pieces([self.check(piece, named, in_context=in_context) for piece in pieces])
        whole = fold(quotation)
        parts = [fold(part) for part in _ELLIPSIS.split(_EDITORS.sub(_edited, quotation))]
        parts = [part for part in parts if part.key]
        if size_of(whole.key) < _SHORTEST:
            return _verdict("too_short", "too short to be looked up")
        found, stretches = self._found(quotation, whole, parts)
        if not found:
            return _unfound(parts or [whole], quotation, stretches)
        places = [stretch.place(start, end) for stretch, start, end in found]
        there = []
        for place, (stretch, start, end) in zip(places, found, strict=True):
            around = stretch.folded.key[max(0, start - _NAMED) : end + _NAMED]
            if not named or self.attribution.allows(named, place, around, in_context=in_context):
                there.append(place)
        if not there:
            return _verdict("misattributed", "it is elsewhere than the text says", places)
        return _verdict("found", "word for word", [*there, *(place for place in places if place not in there)])

    def passages(self, text: str, count: int) -> list[Document]:
        """Return the passages that share the rarest words with a text, the best first."""
        names = list(self._families(text, 4 * count))[:count]
        return sorted(self._read("id", names), key=lambda passage: names.index(passage.id))

    def _found(self, quotation: str, whole: Folded, parts: list[Folded]) -> tuple[list[Span], list[Stretch]]:
        limit = _HITS
        while True:
            raise_if_cancelled()
            families = self._families(quotation, limit)
            read = {passage.id: passage for passage in self._read("id", families)}
            stretches = stretches_of(read, families)
            found = _all_places(whole, parts, stretches)
            beyond = [] if found else self._beyond(whole, [*stretches, *bare_of(stretches)])
            more = [passage for passage in beyond if passage.id not in read]
            if more:
                stretches = stretches_of(read | {passage.id: passage for passage in more}, families)
                found = _all_places(whole, parts, stretches)
            # A quotation that occurs in most of the passages found may occur in more.
            holding = {document.id for stretch, *_ in found for document in stretch.documents}
            last = list(families)[-_HITS // 3 :]
            if len(families) < limit // 3 or not holding.intersection(last) or limit >= _MOST_HITS:
                return found, stretches
            limit *= 4

    def _families(self, quotation: str, limit: int) -> dict[str, list[Document]]:
        """Find the children that share the rarest words with each piece of a quotation, by the ids of their parents."""
        size = max(1, _PIECE // 3 if is_wide(quotation[len(quotation) // 2]) else _PIECE)
        pieces = [quotation[at : at + size] for at in range(0, len(quotation), size)][:16]
        tenant = of_tenant(self._tenant)
        ranked: list[tuple[int, Document]] = []
        for piece in pieces:
            ranked += enumerate(
                self._children.bm25_retrieval(piece, filters=tenant, top_k=max(8, limit // len(pieces)))
            )
        families: dict[str, list[Document]] = {}
        for _, child in sorted(ranked, key=lambda hit: hit[0]):
            families.setdefault(str(child.meta.get("parent_id") or child.id), []).append(child)
        return families

    def _beyond(self, whole: Folded, stretches: list[Stretch]) -> list[Document]:
        """Read the neighbours of the passages whose edge a quotation may cross."""
        wanted: dict[str, set[int]] = {}
        for stretch, start, end in _cover(whole.key, stretches):
            source = wanted.setdefault(stretch.documents[0].meta["source_id"], set())
            if not start:
                source.add(position_of(stretch.documents[0]) - 1)
            if end == len(stretch.folded.key):
                source.add(position_of(stretch.documents[-1]) + 1)
        same = [self._read("meta.position", at, where("meta.source_id", "==", name)) for name, at in wanted.items()]
        return [document for found in same for document in found]

    def _read(self, field: str, values: Iterable[Any], *conditions: dict[str, Any]) -> Iterator[Document]:
        ordered = list(values)
        for start in range(0, len(ordered), _BATCH):
            batch = where(field, "in", ordered[start : start + _BATCH])
            yield from self._parents.filter_documents(of_tenant(self._tenant, batch, *conditions))


def _unfound(parts: list[Folded], quotation: str, stretches: list[Stretch]) -> dict[str, Any]:
    """Return the verdict on a quotation that is nowhere word for word: stitched, altered or absent."""
    bare = [stretch.without_notes or stretch for stretch in stretches]
    for several in [bare, stretches] if bare_of(stretches) else [stretches]:
        if (found := _stitched(parts, several) or _altered(parts, quotation, several)) is not None:
            return found
    return _verdict("absent", "nothing in the library is like it")


def _stitched(parts: list[Folded], stretches: list[Stretch]) -> dict[str, Any] | None:
    groups = _grouped([span for part in parts for span in _cover(part.key, stretches)])
    size = sum(len(part.key) for part in parts)
    large = [group for group in groups if sum(size_of(s.folded.key[a:b]) for s, a, b in group) >= _PART]
    if len(large) < 2 or sum(end - start for group in large for _, start, end in group) < _WHOLE * size:
        return None
    places = [group[0][0].place(group[0][1], group[-1][2]) for group in large]
    return {**_verdict("stitched", "parts of several places", places), "parts": places}


def _altered(parts: list[Folded], quotation: str, stretches: list[Stretch]) -> dict[str, Any] | None:
    key = "".join(part.key for part in parts)
    least, best = _ALTERED * 1.0, None
    for stretch in stretches[: 3 if len(key) > 500 else _HITS]:
        for score, begin, stop in _nearest(key, stretch.folded.key, least):
            if score > least:
                least, best = score, (stretch, begin, stop)
    if best is None:
        return None
    stretch, start, end = best
    first, last = stretch.folded.span(max(0, start - _SLACK), min(len(stretch.folded.key), end + _SLACK))
    edits, (begin, stop) = differences(quotation, stretch.text[first:last], noted=stretch.noted)
    place = stretch.place(stretch.folded.after(first + begin), stretch.folded.after(first + stop))
    edits = edits or _cut_edges(stretch, start, end)
    return {**_verdict("altered", "not word for word", [place]), "difference": edits}


def _cut_edges(stretch: Stretch, start: int, end: int) -> list[dict[str, str]]:
    """Name the number that a quotation cuts at its edge, or the denial that it leaves out before it."""
    text, (first, last) = stretch.text, stretch.folded.span(start, end)
    edits = []
    for at in (first, last):
        begin, stop = number_around(text, at)
        if begin < at < stop:
            edits.append({"quoted": text[max(begin, first) : min(stop, last)], "stands": text[begin:stop]})
    if denial := hidden_denial(text, first):
        edits.insert(0, {"quoted": "", "stands": denial})
    return edits


def _nearest(key: str, text: str, least: float) -> Iterator[tuple[float, int, int]]:
    """Find parts of a text that are similar to a quotation; of a long one, three samples say where to look."""
    last = max(0, len(key) - _SAMPLE)
    for at in dict.fromkeys((0, last // 2, last)):
        raise_if_cancelled()
        near = fuzz.partial_ratio_alignment(key[at : at + _SAMPLE], text, score_cutoff=0 if last else least)
        if near is None or near.dest_end == near.dest_start:
            continue
        if not last:
            yield near.score, near.dest_start, near.dest_end
            continue
        slack = _SLACK + len(key) // 8
        start = max(0, near.dest_start - at - slack)
        around = text[start : start + len(key) + 2 * slack]
        blocks = [one for one in Levenshtein.opcodes(key, around).as_matching_blocks() if one.size > 2]
        if blocks:
            begin = max(0, blocks[0].b - blocks[0].a)
            stop = min(len(around), blocks[-1].b + len(key) - blocks[-1].a)
            yield fuzz.ratio(key, around[begin:stop]), start + begin, start + stop


def _in_pieces(pieces: list[dict[str, Any]]) -> dict[str, Any]:
    """Judge a long quotation by its first piece that is not found, or else of the first piece."""
    checked = [piece for piece in pieces if piece["verdict"] != "too_short"]
    wrong = next((piece for piece in checked if piece["verdict"] != "found"), None)
    if wrong is None and len({piece["source"] for piece in checked}) > 1:
        return {**checked[0], "verdict": "stitched", "reason": "parts of several places", "parts": checked}
    found = wrong or (checked or pieces)[0]
    return {**found, "difference": [edit for piece in pieces for edit in piece["difference"]]}


def differences(quotation: str, around: str, *, noted: bool = True) -> tuple[list[dict[str, str]], tuple[int, int]]:
    """Align a quotation word by word with the text around its place, and return the differences and the place."""
    quoted, text = _tokens(fold(quotation)), _tokens(fold(around, noted=noted))
    edits: list[Any] = Levenshtein.opcodes([word for word, *_ in quoted], [word for word, *_ in text]).as_list()
    # The text before and after is not part of the place; a word changed at its edge corresponds to the nearest one.
    match edits:
        case [("replace", start, end, *_), ("insert", _, _, _, stop), *_]:
            edits[:2] = [("replace", start, end, stop - (end - start), stop)]
    match edits:
        case [*_, ("insert", _, _, begin, _), ("replace", start, end, *_)]:
            edits[-2:] = [("replace", start, end, begin, begin + end - start)]
    edits = edits[1:] if edits and edits[0][0] == "insert" else edits
    edits = edits[:-1] if edits and edits[-1][0] == "insert" else edits
    found = []
    for equal, group in groupby(edits, key=lambda edit: edit[0] == "equal"):
        if not equal:
            run = list(group)
            first, second = quoted[run[0][1] : run[-1][2]], text[run[0][3] : run[-1][4]]
            words = quotation[first[0][1] : first[-1][2]] if first else ""
            stands = around[second[0][1] : second[-1][2]] if second else ""
            found.append({"quoted": words, "stands": stands if noted else read_text(stands).without_notes()})
    place = text[edits[0][3] : edits[-1][4]] if edits else text
    return found, (place[0][1], place[-1][2]) if place else (0, len(around))


def _tokens(folded: Folded) -> list[tuple[str, int, int]]:
    found: list[tuple[str, int, int]] = []
    for at, letter in enumerate(folded.key):
        start, end = folded.span(at, at + 1)
        if found and folded.edges[at] == 0 and not is_wide(letter):
            word, start, _ = found.pop()
            found.append((word + letter, start, end))
        else:
            found.append((letter, start, end))
    return found


def _all_places(whole: Folded, parts: list[Folded], stretches: Sequence[Stretch]) -> list[Span]:
    """Find a quotation in stretches; of tables also down a column, where a reader may quote it."""
    found = [span for stretch in stretches for span in _places(whole, parts, stretch)]
    if found:
        return found
    columns = [column for stretch in stretches for column in stretch.columns]
    return [span for column in columns for span in _exact(whole, parts, column)]


def _places(whole: Folded, parts: list[Folded], stretch: Stretch) -> list[Span]:
    """Find a quotation in a stretch with its notes, and where it runs across one."""
    found = _exact(whole, parts, stretch)
    if stretch.without_notes is None:
        return found
    known = {stretch.folded.span(start, end) for stretch, start, end in found}
    across = _exact(whole, parts, stretch.without_notes)
    return found + [(bare, start, end) for bare, start, end in across if bare.folded.span(start, end) not in known]


def _exact(whole: Folded, parts: list[Folded], stretch: Stretch) -> list[Span]:
    """Find a quotation in a stretch: as it is written, or its parts around an ellipsis, in order."""
    text = stretch.folded
    found = [(stretch, at, at + len(whole.key)) for at in whole.find(text) if not text.hides_denial(at)]
    if found or not parts or parts == [whole]:
        return found
    for at in (at for at in parts[0].find(text) if not text.hides_denial(at)):
        end = at + len(parts[0].key)
        for part in parts[1:]:
            following = next(part.find(text, end, end + _LEFT_OUT + len(part.key)), -1)
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
    """Find, from left to right, the longest parts of a quotation that occur somewhere word for word."""
    at = 0
    before: Stretch | None = None
    while at < len(key):
        raise_if_cancelled()
        # Of parts of equal length the first counts, and one in the stretch of the part before most of all.
        size = min(5 if is_wide(key[at]) else 14, len(key) - at) - 1
        best: Span | None = None
        for stretch in sorted(stretches, key=lambda stretch: stretch is not before):
            text = stretch.folded.key
            start = -1
            # Only what is longer is looked for.
            while at + size < len(key) and (start := text.find(key[at : at + size + 1], start + 1)) >= 0:
                size = _shared(key, at, text, start, size + 1)
                best = (stretch, start, start + size)
        if best is None:
            at += 1
            continue
        at, before = at + size, best[0]
        yield best


def _shared(key: str, at: int, text: str, start: int, size: int) -> int:
    """Return how many characters two texts share from two places on, of which `size` are known."""
    while at + size < len(key) and start + size < len(text):
        more = Prefix.similarity(key[at + size : at + 2 * size], text[start + size : start + 2 * size])
        size += more
        if more < size - more:
            break
    return size


def _grouped(spans: Sequence[Span]) -> list[list[Span]]:
    """Group spans that are in one place."""
    groups: list[list[Span]] = []
    for stretch, start, end in spans:
        before, begin, stop = groups[-1][-1] if groups else (None, 0, 0)
        if before is stretch and start >= begin and size_of(stretch.folded.key[stop:start]) <= _NEAR:
            groups[-1].append((stretch, start, end))
        else:
            groups.append([(stretch, start, end)])
    return groups


def _edited(bracket: re.Match[str]) -> str:
    """Remove what an editor inserted, unless it is an ellipsis or reverses the statement."""
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
