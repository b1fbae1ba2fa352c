"""Checks the claims of an answer against its passages; all modes, the stream and the evaluation use this check."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from haystack import Document

from shiguan.claims.alignment import Alignment
from shiguan.claims.claim_kinds import (
    admitted_gap,
    claim_kind,
    clauses,
    is_label,
    is_not_found,
    is_not_found_sentence,
    is_table_head,
    stated_part,
    subject_words,
    whole_clauses,
)
from shiguan.claims.claim_support import PARTIAL, SUPPORTED, Support, Verdict, judge, missing_content, plain_claim
from shiguan.claims.claims import COMMA, Claim, ClaimedText, split_claims, with_clauses
from shiguan.claims.evidence import LONGEST_CLAIM, Evidence, Reading, Window
from shiguan.llm.run import raise_if_cancelled
from shiguan.reading.text import read_text
from shiguan.text.quantities import quantities, values_in_words
from shiguan.text.terms import terms

# How many windows with most of a claim's words are laid beside it.
_LAID_BESIDE = 3
# From this alignment on a sentence in another language says a claim: 98 in 100 of half A of XQuAD's parallel sentences
# have it. A claim whose names are all there needs less, and one with so much more needs no mark.
_ALIGNED_ACROSS, _NAMED, _UNMARKED = 0.51, 0.17, 0.05
# Of the passages in another language that a sentence does not cite only so many are read for it.
_READ_UNMARKED = 3
# A heading of at most this many words is a title; a longer one may be a sentence in bold.
_LONGEST_TITLE = 4
# A word in emphasis before a colon is a label of the sentence, and no claim of its own: "*Enemy:* He came".
_EMPHASISED_LABEL = re.compile(r"[*_]{1,3}([^*_:：]{1,40})(?:[:：][*_]|[*_]{1,3}[:：])")
# A place that names what a claim names may have this share of the words that the best place has.
_NEARLY = 0.75
# So many clauses of an answer are judged by themselves; the sentences after them stay whole.
_MOST_CLAUSES = 400


@dataclass(frozen=True)
class ReadClaim:
    """A claim of an answer with what the passages have of it."""

    index: int
    claim: Claim
    stated: str
    reading: Reading


@dataclass(frozen=True)
class CheckedClaim:
    """A claim of an answer with its support."""

    index: int
    claim: Claim
    stated: str
    support: Support
    quote: str

    @property
    def is_grounded(self) -> bool:
        return self.support.verdict in ("supported", "partial")


def checker_of(numbered: Mapping[int, Document], question: str = "") -> "ClaimChecker":
    """Create the checker for some numbered passages."""
    return ClaimChecker({number: document.content or "" for number, document in numbered.items()}, question)


def numbered_passages(documents: Sequence[Document]) -> dict[int, Document]:
    """Map each number to its passage, in ascending order."""
    numbered: dict[int, Document] = {}
    for place, document in enumerate(documents, start=1):
        number = document.meta.get("number")
        numbered.setdefault(number if isinstance(number, int) and number > 0 else place, document)
    return dict(sorted(numbered.items()))


def stated_claim(claim: Claim) -> str:
    """Return what a sentence of an answer states, where there are no passages to compare it with."""
    return ClaimChecker({}).stated(claim)


class ClaimChecker:
    """Checks the claims of one answer against its passages; a verdict does not depend on the rest of the answer."""

    def __init__(self, passages: Mapping[int, str], question: str = "") -> None:
        """Set the passages by number, and the question."""
        self._alignment = Alignment()
        self.question = question
        self.numbers = tuple(passages)
        self._texts = tuple(passages.values())
        self._evidence = Evidence(self._texts)
        alone = (Evidence([text], within=self._evidence) for text in self._texts)
        self._alone = [self._evidence] if len(self._texts) == 1 else list(alone)
        # What each claim was found to be, by each passage alone and, under the number 0, by all of them.
        self._table: dict[tuple[str, int], Support] = {}

    def split(self, answer: str, *, is_open: bool = False) -> ClaimedText:
        """
        Split an answer into sentences, and a sentence into clauses where the passages support only some of them.

        :param is_open: Whether its last sentence may go on: that one is not looked at yet.
        """
        parts = split_claims(answer, self.question)
        found = {index: clauses(claim.text) for index, claim in enumerate(parts.claims)}
        parts = with_clauses(parts, {index: [span[:2] for span in spans] for index, spans in found.items()})
        cuts, left = dict[int, list[tuple[int, int]]](), _MOST_CLAUSES
        for index, claim in enumerate(parts.claims):
            if left < 0 or (is_open and claim.sentence == parts.claims[-1].sentence):
                break
            spans = _clauses_of(claim, COMMA)
            left -= len(spans)
            cuts[index] = self._cut_at_gaps(claim, spans)
        return with_clauses(parts, cuts)

    def _cut_at_gaps(
        self, claim: Claim, spans: Sequence[tuple[int, int]], *, at_commas: bool = True
    ) -> list[tuple[int, int]]:
        """Cut a sentence where supported clauses meet unsupported ones; nothing where all clauses are alike."""
        stated = self.stated(claim) if len(spans) > 1 else ""
        if not stated:
            return []
        whole = self.verdict(claim, stated)
        if whole.verdict == "supported" and whole.exact:
            return []
        if whole.verdict != "supported" and len(claim.numbers) > 1 and (apart := self._cut_by_passages(claim, spans)):
            return apart
        runs: list[tuple[int, int, bool]] = []
        for start, end in spans:
            clause = replace(claim, text=claim.text[start:end])
            part = self.stated(clause)
            if not part:
                good = runs[-1][2] if runs else True
            elif is_label(claim.text, end):
                good = self._evidence.has_together(subject_words(part, translated=False), quantities(part))
            elif whole.verdict in ("supported", "partial"):
                good = not missing_content(self._read(part), in_clause=True)
            else:
                good = self.verdict(clause, part).verdict in ("supported", "partial")
            joins = bool(runs) and runs[-1][2] == good
            runs.append((runs.pop()[0] if joins else start, end, good))
        label = _EMPHASISED_LABEL.match(claim.text) if len(runs) > 1 and runs[0][1] == spans[0][1] else None
        if label and len(subject_words(label[1], translated=False)) < 2 and not quantities(label[1]):
            runs[:2] = [(runs[0][0], *runs[1][1:])]
        if whole.verdict == "contradicted" and at_commas and not runs[0][2]:
            # The part before the comma says who or when, which the rest is about.
            return self._cut_at_gaps(claim, _clauses_of(claim), at_commas=False)
        return [(start, end) for start, end, _ in runs] if len(runs) > 1 else []

    def _cut_by_passages(self, claim: Claim, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Cut a sentence that no passage supports as a whole between clauses that different cited passages support."""
        cited = [number for number in claim.numbers if number in self.numbers]
        runs: list[tuple[int, int, int]] = []
        for start, end in spans:
            part = self.stated(replace(claim, text=claim.text[start:end]))
            found = {number: self.relation(part, number) for number in cited} if part else {}
            home = max(found, key=lambda n: (found[n].verdict == "supported", found[n].score), default=None)
            if home is None or found[home].verdict not in ("supported", "partial"):
                return []
            joins = bool(runs) and runs[-1][2] == home
            runs.append((runs.pop()[0] if joins else start, end, home))
        return [(start, end) for start, end, _ in runs] if len(runs) > 1 else []

    def stated(self, claim: Claim) -> str:
        """Return what of a sentence needs a source; a heading, courtesy, question or gap only if it adds something."""
        if len(claim.text) > LONGEST_CLAIM:
            return claim.text
        kind, plain = claim_kind(claim.text), plain_claim(claim.text)
        if is_not_found_sentence(plain) or is_table_head(claim.text):
            return ""
        stated = stated_part(plain)
        words, numbers = subject_words(stated), quantities(stated)
        if kind == "statement" or (kind == "heading" and claim.numbers):
            # Cut out of a sentence that a passage has whole, it would stand behind words that may change it.
            stated = plain if len(stated) < len(plain) and self._evidence.contains(plain) else stated
            return stated if words or numbers else ""
        if kind != "heading" and self._evidence.contains(plain):
            return plain
        if (
            kind == "silence"
            and self._evidence.admits(admitted_gap(plain))
            and self._evidence.has_together(words, numbers)
        ):
            return stated  # the passages admit this gap themselves: it is a statement about them
        asked, counted = frozenset(terms(self.question)), quantities(self.question)
        numbers = [number for number in numbers if not any(number.agrees_with(other) for other in counted)]
        unasked = [word for word in words if not word.said_by(asked)]
        return "" if self._evidence.has_together(words if numbers else unasked, numbers) else stated

    def says_nothing(self, parts: ClaimedText) -> bool:
        """Return whether an answer only says that there is none, in words that are not a quotation."""
        quotes = (self._evidence.contains(plain_claim(claim.text)) for claim in parts.claims)
        return is_not_found(parts) and not any(quotes)

    def _only_names(self, claim: Claim, stated: str) -> bool:
        """Return whether a claim is a title, a question or an admitted gap whose words occur together nowhere."""
        kind = claim_kind(claim.text)
        words = subject_words(stated)
        if kind == "statement" or (kind == "heading" and len(words) > _LONGEST_TITLE):
            return False
        return not self._evidence.has_together(words, quantities(stated))

    def read(self, parts: ClaimedText) -> list[ReadClaim]:
        """Find what the passages have of every sentence that states something."""
        claims = ((index, claim, self.stated(claim)) for index, claim in enumerate(parts.claims))
        return [ReadClaim(index, claim, stated, self._read(stated)) for index, claim, stated in claims if stated]

    def judge(self, read: Sequence[ReadClaim]) -> list[CheckedClaim]:
        """Judge the claims of one answer."""
        laid = [self.laid_beside(claim.reading) for claim in read]
        supports = judge([reading for reading, _ in laid], [aligned for _, aligned in laid])
        checked = []
        for claim, support in zip(read, supports, strict=True):
            across = self._across_languages(claim.reading, self._evidence, support)
            found = self._by_marks(claim.claim, claim.stated, across)
            checked.append(CheckedClaim(claim.index, claim.claim, claim.stated, found, self.quote(found)))
        return checked

    def check(self, parts: ClaimedText) -> list[CheckedClaim]:
        """Check every sentence of an answer that states something."""
        return self.judge(self.read(parts))

    def verdict(self, claim: Claim, stated: str) -> Support:
        """Judge one claim by itself; its verdict is the one that it has in its answer."""
        raise_if_cancelled()
        known = self._table.get((stated, 0))
        if known is None:
            known = self._table[stated, 0] = self._judged(self._evidence, stated)
        return self._by_marks(claim, stated, known)

    def relation(self, stated: str, number: int) -> Support:
        """Judge a claim by one passage alone."""
        known = self._table.get((stated, number))
        if known is None:
            place = self.numbers.index(number)
            alone = self._alone[place]
            found = self._naming(stated, alone, self._judged(alone, stated))
            known = self._table[stated, number] = replace(found, passage=place) if found.passage >= 0 else found
        return known

    def may_contradict(self, stated: str, number: int) -> bool:
        """Return whether a passage has so many words of a claim that it may contradict it: quicker than `relation`."""
        return self._alone[self.numbers.index(number)].has_half(stated)

    def nearest_to(self, stated: str, likely: Support) -> int | None:
        """Find a passage that supports a claim by itself, the likely one first, or else in part and with its names."""
        first = self.numbers[likely.passage] if likely.passage >= 0 else None
        partly: dict[int, tuple[int, float]] = {}
        for number in sorted(self.numbers, key=lambda number: number != first):
            own = self.relation(stated, number)
            if own.verdict == "supported":
                return number
            if own.verdict == "partial":
                partly[number] = self.unnamed(stated, own), -own.score
        return min(partly, key=lambda number: partly[number], default=None)

    def unnamed(self, stated: str, support: Support) -> int:
        """Count the names of a claim that a quoted place lacks; in another language nobody can tell."""
        return 0 if support.foreign else len(_missing_names(read_text(stated).names, self.quote(support)))

    def quote(self, support: Support) -> str:
        return self._texts[support.passage][support.start : support.end] if support.passage >= 0 else ""

    def _naming(self, stated: str, evidence: Evidence, support: Support) -> Support:
        """Move a place that lacks a name of the claim to one that has it and nearly as many of its words."""
        names = read_text(stated).names if support.passage >= 0 and not support.exact and not support.foreign else ()
        if not names or not _missing_names(names, evidence.texts[0][support.start : support.end]):
            return support
        reading = evidence.read(stated, self.question)
        least = _NEARLY * reading.window
        windows = [window for window in reading.windows if window.covered >= least]
        best = min(
            windows,
            key=lambda window: len(_missing_names(names, evidence.texts[0][window.start : window.end])),
            default=None,
        )
        return support if best is None else replace(support, start=best.start, end=best.end, similarity=best.covered)

    def _read(self, stated: str) -> Reading:
        raise_if_cancelled()
        return self._evidence.read(stated, self.question)

    def _judged(self, evidence: Evidence, stated: str) -> Support:
        reading, aligned = self.laid_beside(evidence.read(stated, self.question), evidence)
        return self._across_languages(reading, evidence, judge([reading], [aligned])[0])

    def laid_beside(self, reading: Reading, evidence: Evidence | None = None) -> tuple[Reading, float | None]:
        """Lay a claim beside its windows in its language; the best one becomes the first."""
        evidence = evidence or self._evidence
        if reading.verbatim or not reading.windows or read_text(reading.claim).language not in evidence.languages:
            return reading, None
        windows = reading.windows[:_LAID_BESIDE]
        found = self._alignment.best(reading.claim, [evidence.texts[w.passage][w.start : w.end] for w in windows])
        if found is None:
            return reading, None
        aligned, at = found
        best = windows[at]
        rest = (window for window in reading.windows if window is not best)
        text = evidence.texts[best.passage]
        aligned = self._alignment.confirmed(reading.claim, text, (best.start, best.end), aligned)
        return replace(reading, windows=(best, *rest)), aligned

    def _across_languages(self, reading: Reading, evidence: Evidence, support: Support) -> Support:
        """Judge a claim in a language that no passage has, by numbers, names and alignment."""
        language = read_text(reading.claim).language
        if not reading.windows or reading.verbatim or language in evidence.languages:
            return support
        text = "\n".join(evidence.texts)
        support = replace(support, verdict="unsupported", foreign=True)
        names = read_text(reading.claim).names
        strange = _missing_names(names, text)
        named = bool(names) and not strange
        if missing := _missing_numbers(reading.claim, text):
            return replace(support, reason=f"no passage mentions {', '.join(missing[:3])} together with it", exact=True)
        places = [
            Window(at, start, end, 0.0)
            for at, own in enumerate(evidence.texts)
            for start, end in read_text(own).sentences
        ]
        sentences = [evidence.texts[one.passage][one.start : one.end] for one in places]
        best = self._alignment.best(reading.claim, sentences, across=True)
        if best is not None:
            strange = self._alignment.unlike(reading.claim, strange, sentences)
        if strange:
            return replace(support, score=0.0, reason=f"no passage has {', '.join(strange[:3])}")
        score = PARTIAL if named else PARTIAL - 0.01
        if best is not None:
            aligned, at = best
            here = places[at]
            score = PARTIAL + aligned - _ALIGNED_ACROSS + (_NAMED if named else 0.0)
            support = replace(support, passage=here.passage, start=here.start, end=here.end)
            around = [one for one in places[max(0, at - 1) : at + 2] if one.passage == here.passage]
            near = evidence.texts[here.passage][around[0].start : around[-1].end]
            if strays := ", ".join(_missing_numbers(reading.claim, near)[:3]):
                return replace(support, score=0.0, reason=f"no passage mentions {strays} together with it")
        verdict: Verdict = "partial" if score >= PARTIAL else "unsupported"
        like = "something" if verdict == "partial" else "nothing"
        reason = f"the passages are in another language; {like} like it is there"
        return replace(support, score=max(0.0, min(score, SUPPORTED - 0.01)), verdict=verdict, reason=reason)

    def _by_marks(self, claim: Claim, stated: str, support: Support) -> Support:
        """Judge by the cited passages what all passages together leave open; across languages a claim has to cite."""
        if support.verdict in ("partial", "supported") and not support.exact and self._only_names(claim, stated):
            return replace(support, verdict="unsupported", reason="the passages do not say so", exact=True)
        if support.verdict not in ("partial", "unsupported"):
            return support
        cited = [number for number in claim.numbers if number in self.numbers]
        found = [self.relation(stated, number) for number in cited]
        if support.verdict == "partial" and not support.foreign:
            return support
        across = [own for own in found if own.foreign and own.verdict == "partial"]
        if not across and not support.exact:
            language, languages = read_text(stated).language, zip(self.numbers, self._evidence.language_of, strict=True)
            foreign = (number for number, other in languages if other != language and number not in cited)
            others = (self.relation(stated, number) for number in islice(foreign, _READ_UNMARKED))
            across = [other for other in others if other.foreign and other.score >= PARTIAL + _UNMARKED]
        if across:
            return max(across, key=lambda own: own.score)
        if support.foreign and support.verdict == "partial":
            reason = "it cites none of the passages, which are in another language"
            return replace(support, verdict="unsupported", reason=reason)
        return support


def _clauses_of(claim: Claim, *between: re.Pattern[str]) -> list[tuple[int, int]]:
    """Return the clauses of a claim that may be judged by themselves; those of a heading may not."""
    if len(claim.text) > LONGEST_CLAIM or claim_kind(claim.text) == "heading":
        return []
    return whole_clauses(claim.text, *between)


def _missing_names(names: Sequence[str], text: str) -> list[str]:
    """Return the names that a text does not have."""
    read = read_text(text)
    return [name for name in names if not read.has_name(name)]


def _missing_numbers(claim: str, text: str) -> list[str]:
    """Return the numbers of a claim that a text in another language does not have in any form."""
    held, within = quantities(text), values_in_words(text)
    return [
        claim[number.start : number.end].strip()
        for number in quantities(claim)
        if number.values.isdisjoint(within) and not any(number.agrees_with(other) for other in held)
    ]
