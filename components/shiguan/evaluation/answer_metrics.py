"""
Scores one answer, as it was recorded, against its question: right, cited, supported, or rightly refused.

How near an answer comes to a right one follows SQuAD (Rajpurkar et al., "SQuAD: 100,000+ Questions for Machine
Comprehension of Text", 2016, section 6.1): case, punctuation and English articles do not count, and the best of several
right answers does. Chinese is compared by characters, as CMRC 2018 does (Cui et al., "A Span-Extraction Dataset for
Chinese Machine Reading Comprehension", 2019, section 4); traditional characters count as simplified ones. Citation
marks are no words.

Whether the citations hold follows ALCE (Gao et al., "Enabling Large Language Models to Generate Text with Citations",
2023, section 4.3). A claim is *recalled* if the passages that it cites support it, all of them together. A citation
is *precise* if its claim is recalled, and the passage either supports the claim by itself or cannot be left out.
Where ALCE asks a language model (TRUE) whether a passage entails a claim, the check of all modes decides here:
its verdict must be `supported`. docs/quality.md tells how often it agrees with people. No language model is needed,
so the numbers are free and the same every time. Two departures: headings, courtesies and sentences that admit a gap
state nothing and are left out, where ALCE counts every sentence; and a claim in another language than its passages is
at most supported in part, so that it counts as not recalled.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from haystack import Document, GeneratedAnswer

from shiguan.answer.quotations import QUOTING
from shiguan.claims.checker import ClaimChecker
from shiguan.claims.claims import split_claims
from shiguan.evaluation.metrics import KNOWN
from shiguan.evaluation.questions import Question
from shiguan.text.languages import fold_han


class CitationScores(NamedTuple):
    """How the citations of one answer stand."""

    claims: int
    recalled: int
    citations: int
    precise: int

    @property
    def recall(self) -> float:
        """The share of claims that are recalled, 0 to 1; 0 where nothing is claimed."""
        return self.recalled / self.claims if self.claims else 0.0

    @property
    def precision(self) -> float:
        """The share of citations that are precise, 0 to 1; 0 without citations."""
        return self.precise / self.citations if self.citations else 0.0


def score_citations(answer: str, passages: Mapping[int, str]) -> CitationScores:
    checker = ClaimChecker(passages)
    read = checker.read(split_claims(answer))
    recalled = citations = precise = 0
    for one in read:
        cited = [number for number in one.claim.numbers if number in passages]
        citations += len(one.claim.numbers)
        support = checker.by(one.stated, cited)
        if support.verdict != "supported":
            continue
        recalled += 1
        for number in cited:
            others = [other for other in cited if other != number]
            alone = checker.relation(one.stated, number).verdict == "supported"
            precise += alone or checker.by(one.stated, others).verdict != "supported"
    return CitationScores(len(read), recalled, citations, precise)


_ARTICLES = frozenset(("a", "an", "the"))
_TOKEN = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\u3040-\u30ff]|[^\W_\u2e80-\u9fff\uf900-\ufaff\u3040-\u30ff]+")

_META = ("source", "source_id", "record_id", "start", "end", "title", "section")
"""What of a passage's metadata is recorded: where it stands, and what the confidence reads."""

Record = Mapping[str, Any]


def answer_record(answer: GeneratedAnswer) -> dict[str, Any]:
    """Write an answer as JSON knows it; of quotations the quoted text alone, for they say nothing else."""
    meta = answer.meta
    quotes = [citation["quote"] for citation in meta.get("citations", []) if citation.get("verdict") == "quoted"]
    documents = []
    for place, document in enumerate(answer.documents, start=1):
        number = document.meta.get("number")
        number = number if isinstance(number, int) and number > 0 else place
        kept = {name: document.meta[name] for name in _META if document.meta.get(name) is not None}
        documents.append({"number": number, "id": document.id, "content": document.content or "", "meta": kept})
    return {
        "status": meta.get("status", "answered"),
        "answer": "\n\n".join(quotes) or answer.data,
        "documents": documents,
        "cited": sorted({citation["number"] for citation in meta.get("citations", [])}),
        "verdicts": [claim["verdict"] for claim in meta.get("claims", [])],
        "confidence": meta.get("confidence") or 0.0,
        "model": str(meta.get("model") or ""),
    }


def is_right(question: Question, record: Record) -> bool | None:
    """
    Tell whether a recorded answer is right, without looking at its claims; None for a refusal.

    It holds a right answer or, where none is written down, cites a gold passage.
    """
    if record["status"] in ("not_found", "refused"):
        return None
    if not question.answerable:
        return False
    if question.answers:
        return contains_answer(spoken_answer(record["answer"]), question.answers) > 0
    return _gold_share(question, record, cited=True) > 0


def score_answer(question: Question, record: Record) -> dict[str, float]:
    """Score a recorded answer; a refusal says nothing right, and is right where nothing answers, as a doubt is."""
    doubted = ("closest",) if not question.answerable else ()
    refused = record["status"] in ("not_found", "refused", *doubted)
    text = "" if refused else spoken_answer(record["answer"])
    metrics: dict[str, float] = {}
    if question.answerable:
        metrics["false_refusal"] = float(refused)
        if question.answers:
            metrics["exact_match"] = exact_match(text, question.answers)
            metrics["token_f1"] = token_f1(text, question.answers) if text else 0.0
            metrics["contains_answer"] = contains_answer(text, question.answers)
        if question.gold:
            metrics["gold_read"] = _gold_share(question, record, cited=False)
            metrics["gold_cited"] = 0.0 if refused else _gold_share(question, record, cited=True)
    else:
        metrics["correct_refusal"] = float(refused)
    if record["status"] not in ("not_found", "refused", *QUOTING):
        # A quotation claims nothing that could be supported or not.
        scores = score_citations(record["answer"], {one["number"]: one["content"] for one in record["documents"]})
        if scores.claims:
            metrics["citation_precision"] = scores.precision
            metrics["citation_recall"] = scores.recall
        if record["verdicts"]:
            # The verdicts that the mode itself gave, which knew more than the cited passages.
            metrics["claims_supported"] = record["verdicts"].count("supported") / len(record["verdicts"])
    metrics["correct"] = float(bool(is_right(question, record)) or (refused and not question.answerable))
    return {name: metrics[name] for name in KNOWN if name in metrics}


def answer_tokens(text: str) -> list[str]:
    """Cut a text into what is compared: Han characters, and words of other scripts without articles."""
    folded = fold_han(unicodedata.normalize("NFKC", text)).lower().replace("'", "").replace("’", "")
    return [token for token in _TOKEN.findall(folded) if token not in _ARTICLES]


def spoken_answer(answer: str) -> str:
    return split_claims(answer).text


def exact_match(answer: str, right: Sequence[str]) -> float:
    return float(answer_tokens(answer) in map(answer_tokens, right))


def token_f1(answer: str, right: Sequence[str]) -> float:
    """Give the harmonic mean of precision and recall of an answer's tokens, for the nearest right answer."""
    given = Counter(answer_tokens(answer))
    return max(_f1(given, Counter(answer_tokens(one))) for one in right)


def contains_answer(answer: str, right: Sequence[str]) -> float:
    """Tell whether an answer holds a right one as a run of tokens: the measure for answers in whole sentences."""
    given = f" {' '.join(answer_tokens(answer))} "
    wanted = (" ".join(answer_tokens(one)) for one in right)
    return float(any(one and f" {one} " in given for one in wanted))


def _f1(given: Counter[str], wanted: Counter[str]) -> float:
    both = given.total() + wanted.total()
    return 2 * (given & wanted).total() / both if both else 1.0


def _gold_share(question: Question, record: Record, *, cited: bool) -> float:
    """Give the share of the gold passages that stand in what was read, or in what the answer cites of it."""
    chosen = [one for one in record["documents"] if not cited or one["number"] in record["cited"]]
    documents = [Document(id=one["id"], content=one["content"], meta=one["meta"]) for one in chosen]
    held = sum(any(gold.stands_in(document) for document in documents) for gold in question.gold)
    return held / len(question.gold) if question.gold else 0.0
