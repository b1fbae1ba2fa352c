"""Quotes from each passage the few whole sentences closest to a question, word for word."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from haystack import Document, logging

from shiguan.answer.answerability_gate import NEITHER, ODDS_SHARE
from shiguan.claims.citations import cited_place
from shiguan.errors import ModelMissingError
from shiguan.llm.source_blocks import neutral_attribute
from shiguan.models.judge import JUDGED, Reading, judge
from shiguan.reading.passage import MOST_QUOTED, Passage
from shiguan.reading.question import Question, read_question
from shiguan.reading.text import Text, note_spans, read_text
from shiguan.resources import read_patterns
from shiguan.text.languages import fold_han
from shiguan.text.names import written_in_han
from shiguan.text.passages import Span, similarity, touched_by
from shiguan.text.places import place_of
from shiguan.text.terms import covered, fold_text, is_wide, rarity, size_of, terms

logger = logging.getLogger(__name__)

QUOTING = ("quoted", "closest")
"""The statuses of answers that only quote passages; with `closest`, no passage clearly answers."""

_NEARLY = 0.4
"""The share of the best match's score that each quotation must reach."""
# Where the first marked sentence has this share of the question's words, what is quoted beside it has at least so much
# of the share that the first quotation has; of the right ones of five sets none is lost by it.
_MOST_WORDS, _AS_MANY = 0.6, 0.7
# How much likelier the answer must stand in another sentence than in the marked one; of .2 to .8 the best in what was
# written on chapters kept out of training (bench/judge/README.md).
_SURER = 0.3
# From this similarity of term shingles on, 0 to 1, a quotation repeats an earlier one.
_SAME = 0.5

# A window has at least two sentences and stops at four that have the kind of thing that is asked for; short sentences
# (dialogue, verse, table rows) are added up to `_SHORT` characters of Latin text, none beyond `LONGEST`.
_FEWEST, _SENTENCES, _SHORT, LONGEST = 2, 4, 400, 900
# The kinds of answer that a sentence shows by itself, how many sentences from the closest one it may be, and how much
# of the share of the question's words each sentence of that distance costs.
_SHOWN, _REACH, _AWAY = ("time", "number", "reason"), 6, 0.1
# The weight that words of the question keep which the passage's headings have: every sentence below is about them.
_TOPIC = 0.1
# The name of a picture, the place of a note, the work that is quoted, an address; a heading or a caption, which ends
# without a stop: such lines answer only where nothing else does. A list item, a table row and verse are not among them.
_APART = re.compile(
    r"\s*(?:\[[^\[\]]*\]|[—–-]*\s*《[^《》]{1,30}》[^。！？，；,;]{0,24}|(?:→\s*)?https?://\S+"
    r"|(?![-*+•·|>\d\s])[^|\n]{0,50}[^\W_](?:\n[^|\n]{0,50}[^\W_])*)\s*"
)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_patterns = partial(read_patterns, Path(__file__).with_suffix(".yaml"))


@dataclass(frozen=True)
class Quotation:
    """A window of a passage, the sentence that answers, the question's words in it, and if it introduces the thing."""

    document: Document
    window: Span
    sentence: Span
    words: tuple[Span, ...] = ()
    introduces: bool = False

    def citation(self, confidence: float) -> dict[str, Any]:
        """Write it as a citation of the answer object, with positions in the stored parent."""
        offset = Passage(self.document).offset
        # A window may begin a page before its sentence.
        page = place_of(self.document.meta, self.document.content or "", self.sentence, offset).get("page")
        return {
            "number": self.document.meta.get("number", 1),
            "claim": {"start": 0, "end": 0},
            **cited_place(self.document, self.window),
            **({"page": page} if page else {}),
            "sentence": [offset + at for at in self.sentence],
            "words": [[offset + a, offset + b] for a, b in self.words],
            "confidence": round(confidence, 4),
            "verdict": "quoted",
        }


def quotations(documents: Sequence[Document], question: str) -> list[Quotation]:
    """
    Quote what is closest to a question, in the order of the passages; what introduces the thing asked about first.

    Left out are places that matched much worse, have far fewer words, or say the same in another edition.
    """
    introduces = _introduction(question, documents)
    if introduces is not None:
        documents = sorted(documents, key=lambda document: not introduces.search(fold_han(document.content or "")))
    asked = read_question(question)
    languages = [str(document.meta.get("language")) for document in documents]
    weights_in = {language: _weights_in(language, asked) for language in set(languages)}
    weights = [weights_in[language] for language in languages]
    matches = [_matches(document, words, introduces) for document, words in zip(documents, weights, strict=True)]
    best = max((score for places in matches for score, _ in places), default=0.0)
    found: list[Quotation] = []
    apart: list[Quotation] = []
    least = 0.0
    for at, document in enumerate(documents):
        following = matches[at + 1][0][0] if at + 1 < len(matches) and matches[at + 1] else 0.0
        for rank, (score, span) in enumerate(matches[at]):
            if score < _NEARLY * best:
                break
            taken = [quotation.window for quotation in found if quotation.document is document]
            if (rank and score <= following) or 2 * sum(_common(span, window) for window in taken) >= span[1] - span[0]:
                continue
            quotation = _quotation(document, span, taken, asked, weights[at])
            sentence = (document.content or "")[slice(*quotation.sentence)]
            told = introduces is not None and introduces.search(fold_han(sentence)) is not None
            quotation = replace(quotation, introduces=told)
            share = _share(quotation, weights[at], quotation.window)
            if not found:
                least = _AS_MANY * share if _share(quotation, weights[at], quotation.sentence) >= _MOST_WORDS else 0.0
            if _APART.fullmatch(document.content or "", *quotation.sentence):
                apart.append(quotation)
            elif share >= least and not any(_says_the_same(quotation, other) for other in found):
                found.append(quotation)
                if len(found) == MOST_QUOTED:
                    return found
    return found or apart[:1]


def judged_quotations(documents: Sequence[Document], question: str) -> list[tuple[Quotation, float | None]]:
    """
    Quote what is closest to a question, with the judge's log-odds that each answers it, likelier ones first.

    What introduces the thing stays first. Without the judge, and in languages that it has not learned, odds are None.
    """
    quoted = quotations(documents, question)
    languages = {read_text(question).language, *(Passage(one.document).language for one in quoted)}
    if not quoted or not languages <= JUDGED:
        return [(one, None) for one in quoted]
    try:
        read = [_read(question, (one.document.content or "")[slice(*one.window)]) for one in quoted]
    except ModelMissingError as error:
        logger.info("Nobody reads whether the passages answer: {error}", error=str(error))
        return [(one, None) for one in quoted]

    def rank(at: int) -> tuple[bool, float]:
        return quoted[at].introduces, ODDS_SHARE * read[at].log_odds - math.log(at + 1)

    order = sorted(range(len(quoted)), key=rank, reverse=True)
    return [(marked_where_read(quoted[at], read[at], question), read[at].log_odds) for at in order]


def _read(question: str, text: str) -> Reading:
    return judge().answer(question, text)


def marked_where_read(quotation: Quotation, reading: Reading, question: str) -> Quotation:
    """Mark the sentence where the judge finds an answer, if it is much surer of it than of the marked one."""
    asked = read_question(question)
    if quotation.introduces or reading.log_odds < NEITHER[asked.language]:
        return quotation
    document, (start, end) = quotation.document, quotation.window
    text = document.content or ""
    spans = [(a, b) for a, b in read_text(text).sentences if start <= a and b <= end]
    likely = {(a, b): reading.within(a - start, b - start) for a, b in spans if not _APART.fullmatch(text, a, b)}
    surest = max(likely, key=lambda span: likely[span], default=quotation.sentence)
    if likely.get(surest, 0.0) < likely.get(quotation.sentence, 0.0) + _SURER:
        return quotation
    weights = _weights_in(str(document.meta.get("language")), asked)
    above = text[: quotation.sentence[0]].rstrip().rpartition("\n")[2]
    # Each row of a table is of something else; only the first one heads the others.
    rows = all(" | " in one for one in (above, text[slice(*quotation.sentence)], text[slice(*surest)]))
    if rows and _share(quotation, weights, surest) < _share(quotation, weights, quotation.sentence):
        return quotation
    if fold_text(question.strip(" ?？.。!！")) in fold_text(text[slice(*quotation.sentence)]):
        return quotation  # it was looked for, not asked
    follows = surest[0] >= quotation.sentence[1] and refers_back(text[slice(*surest)])
    if _asked_thing(question) and not follows and not _share(quotation, weights, surest):
        return quotation
    return replace(quotation, sentence=with_note(text, surest), words=tuple(_asked_words(text, surest, weights)))


def _weights_in(language: str, asked: Question) -> dict[str, float]:
    """Weigh the words of a question, and for passages in another language their translations."""
    translated = asked.translated_terms(language)
    classical = {term: weight for term, weight in asked.search_weights.items() if term not in asked.words}
    return classical | {term: weight * rarity(term) for term, weight in translated.items()} | asked.weights


def _matches(
    document: Document, weights: Mapping[str, float], introduces: re.Pattern[str] | None
) -> list[tuple[float, Span]]:
    """Return the places of a passage that the retrieval matched, best first; else the sentence with most words."""
    text = document.content or ""
    places = Passage(document).matches
    found = [(score, (start, end)) for start, end, score in places if start < len(text) and end > 0]
    found.sort(key=lambda match: -match[0])
    introduced = introduces.search(fold_han(text)) if introduces is not None else None
    if introduced is not None:
        return [(found[0][0] if found else 0.0, (introduced.end() - 1, introduced.end())), *found]
    if not found and text.strip():
        words = {span: read_text(text[slice(*span)]).words for span in read_text(text).sentences}
        return [(0.0, max(words, key=lambda span: covered(weights, words[span])))]
    return found


def _quotation(
    document: Document, match: Span, taken: Sequence[Span], asked: Question, weights: Mapping[str, float]
) -> Quotation:
    """Choose whole sentences with a match, what the first of them refers back to, and the sentence that answers."""
    text, patterns = document.content or "", _patterns()
    sentences = read_text(text).sentences
    texts = [text[start:end] for start, end in sentences]
    quoted = {at for window in taken for at in touched_by(sentences, window)}
    free = [at for at in range(len(sentences)) if at not in quoted]
    touched = [at for at in touched_by(sentences, match) if at not in quoted] or free or [0]
    if not taken:
        touched = _leaning(texts, touched, weights)
    first, last = touched[0], touched[-1]
    topic = read_text(Passage(document).headings).words
    telling = {term: weight * (_TOPIC if term in topic else 1) for term, weight in weights.items()}
    marked = _answering(texts, touched, asked, telling)
    while True:
        window = text[sentences[first][0] : sentences[last][1]]
        count, size = last - first + 1, size_of(window)
        sides = [first - 1, last + 1] if marked < first else [last + 1, first - 1]
        sides = [at for at in sides if 0 <= at < len(sentences)]
        within = first and patterns["in_brackets"].match(window)
        if within or (first and patterns["points_back"].match(texts[first])):
            sides = [first - 1]
        sides = [at for at in sides if at in free]
        enough = count >= _SENTENCES and size >= _SHORT and not within
        if not sides or size >= LONGEST:
            break
        answers = enough and first <= marked <= last and all(asked.answered_by(window, one) for one in asked.shapes)
        if answers and asked.shapes:
            break
        if count >= _FEWEST and size + size_of(texts[sides[0]]) > LONGEST:
            break
        first, last = min(first, sides[0]), max(last, sides[0])
    marked = min(max(marked, first), last)
    first = next((at for at in range(first, marked + 1) if not (at and is_part(texts[at - 1]))), first)
    last = next((at for at in range(last, marked - 1, -1) if not is_part(texts[at])), last)
    # A note on what is too long to be quoted is left out with it.
    while 0 < first < marked and patterns["in_brackets"].match(text, sentences[first][0], sentences[marked][0]):
        first += 1
    words = tuple(_asked_words(text, sentences[marked], weights))
    whole = with_note(text, (sentences[first][0], sentences[last][1]))
    return Quotation(document, whole, with_note(text, sentences[marked]), words)


def is_part(sentence: str) -> bool:
    """Return whether a Chinese sentence goes on behind one of its parts."""
    return sentence.endswith(("；", ";")) and is_wide(sentence[-2:-1] or " ")


def refers_back(sentence: str) -> bool:
    """Return whether a sentence begins with what another one told, or is a note below the text: *Only in port."""
    return bool(_patterns()["points_back"].match(sentence) or re.match(r"\*[^\s*]", sentence))


def with_note(text: str, span: Span) -> Span:
    """Add to whole sentences the rest of a note that begins in them, where that is short."""
    start, end = span
    closed = next((b for a, b in note_spans(text) if start <= a < end < b), end)
    whole = next((b for _, b in read_text(text).sentences if b >= closed), closed)
    return (start, whole) if size_of(text[end:whole]) <= _SHORT else span


def _leaning(sentences: Sequence[str], touched: list[int], weights: Mapping[str, float]) -> list[int]:
    """Return the matched sentences; where none has a word of the question, the next with any, or with most names."""
    words = cache(lambda at: read_text(sentences[at]).words)
    if any(covered(weights, words(at)) for at in touched):
        return touched
    following = range(touched[0], min(len(sentences), touched[-1] + _REACH + 1))
    own = max(following, key=lambda at: covered(weights, words(at)))
    return [own if covered(weights, words(own)) else max(touched, key=lambda at: sum(map(rarity, words(at))))]


def _answering(sentences: Sequence[str], touched: Sequence[int], asked: Question, weights: Mapping[str, float]) -> int:
    """Find the sentence that, with those before it, has most of the question's words and what is asked for."""
    shapes = [shape for shape in asked.shapes if shape in _SHOWN]
    words = cache(lambda at: read_text(sentences[at]).words)  # most sentences of a long passage are never read
    closest = max(touched, key=lambda at: (not _APART.fullmatch(sentences[at]), covered(weights, words(at))))
    scores: dict[int, float] = {closest: 0.0}
    for at in range(max(0, closest - _REACH), min(len(sentences), closest + _REACH + 1)):
        if _APART.fullmatch(sentences[at]):
            continue
        held = sum(asked.answered_by(sentences[at], one) for one in shapes)
        if held or not shapes:
            together = frozenset().union(*map(words, range(max(0, at - 3), at + 1)))
            # An answer after the closest sentence need not repeat the question.
            if covered(weights, words(at)) or (held and at >= closest):
                wanted = held / max(1, len(shapes)) + covered(weights, together)
                scores[at] = wanted - _AWAY * abs(at - closest)
    return max(scores, key=lambda at: scores[at])


def _share(quotation: Quotation, weights: Mapping[str, float], span: Span) -> float:
    return covered(weights, read_text((quotation.document.content or "")[slice(*span)]).words)


def _says_the_same(*pair: Quotation) -> bool:
    first, second = (read_text((one.document.content or "")[slice(*one.window)]) for one in pair)
    return similarity(first.shingles, second.shingles) >= _SAME and not _differ_in_numbers(first, second)


def _differ_in_numbers(*texts: Text) -> bool:
    """Return whether each of two texts has a number that the other lacks; where only one has, it is only longer."""
    mine, theirs = (text.quantities for text in texts)
    return all(
        any(not any(one.agrees_with(other) for other in others) for one in own)
        for own, others in ((mine, theirs), (theirs, mine))
    )


def _common(first: Span, second: Span) -> int:
    return max(0, min(first[1], second[1]) - max(first[0], second[0]))


def _asked_thing(question: str) -> str:
    """Return the one person or thing that a question asks to introduce; "" where it asks anything else."""
    thing = _patterns()["thing"].search(fold_han(question.strip()))
    return next(group for group in thing.groups() if group).strip() if thing else ""


def _introduction(question: str, documents: Sequence[Document]) -> re.Pattern[str] | None:
    """Find how passages introduce the one person or thing that a question asks to introduce, in either script."""
    name = _asked_thing(question)
    if not name:
        return None
    texts = (fold_han(document.content or "") for document in documents if Passage(document).language == "zh")
    names = "|".join(map(re.escape, (name, *sorted(written_in_han(question, name, texts)))))
    return re.compile(_patterns()["introduction"].pattern.replace("NAME", f"(?:{names})"), re.IGNORECASE)


def tells_no_origin(question: str, documents: Sequence[Document]) -> bool:
    """Return whether a question asks where somebody comes from, and passages that have the name do not tell it."""
    asked = _patterns()["origin"].search(fold_han(question))
    if asked is None:
        return False
    told = re.compile(_patterns()["told_origin"].pattern.replace("NAME", re.escape(asked[1])))
    texts = [text for text in (fold_han(document.content or "") for document in documents) if asked[1] in text]
    return bool(texts) and not any(map(told.search, texts))


def _asked_words(text: str, sentence: Span, weights: Mapping[str, float]) -> list[Span]:
    """Find the question's words in a sentence; in Han text, the pairs of neighbouring characters."""
    spans: list[Span] = []
    asked = frozenset(weights)
    for match in _WORD.finditer(text, *sentence):
        if not is_wide(match[0][0]):
            found = [match.span()] if any(term in asked for term in terms(match[0])) else []
        else:
            pairs = ((at, at + 2) for at in range(match.start(), match.end() - 1))
            found = [pair for pair in pairs if not asked.isdisjoint(terms(text[slice(*pair)])[2:])]
        for start, end in found:
            joined = spans.pop()[0] if spans and start <= spans[-1][1] else start
            spans.append((joined, end))
    return spans


def write_quotations(quoted: Sequence[Quotation], opening: str, confidence: float) -> tuple[str, list[dict[str, Any]]]:
    """Write an answer that consists of quotations, the closest sentence of each in bold, and its citations."""
    text = opening
    citations = []
    for quotation in quoted:
        citation = quotation.citation(confidence)
        content, (start, end), (a, b) = quotation.document.content or "", quotation.window, quotation.sentence
        marked = f"{content[start:a]}**{content[a:b]}**{content[b:end]}"
        quote = "\n".join(f"> {line}".rstrip() for line in marked.splitlines())
        place = neutral_attribute(" › ".join([citation["source"], *citation["section"]]))
        text += f"\n\n[{citation['number']}] {place}\n\n"
        citation["claim"] = {"start": len(text), "end": len(text) + len(quote)}
        citations.append(citation)
        text += quote
    return text, citations
