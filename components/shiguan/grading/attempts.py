"""What a self-correcting loop carries from one attempt to the next, how attempts compare, and what is asked anew."""

import re
from collections.abc import Sequence
from typing import Any, Final, TypedDict

from haystack import Document
from haystack.dataclasses import ChatMessage

from shiguan.claims.checker import CheckedClaim
from shiguan.grading.answer_grader import CheckedAnswer
from shiguan.llm.source_blocks import neutral_text
from shiguan.text.languages import HAN
from shiguan.text.terms import question_subject, terms

_PREVIEW = 160
_MOST_CLAIMS = 6
_LONGEST_CLAIM, _LONGEST_QUERY = 300, 600
_TOKEN = re.compile(rf"[{HAN}]+|[^\W_{HAN}]+")
_FEEDBACK = {
    "en": ("The sources do not support these sentences of it:", "What it lacked: ", "“{claim}” ({reason})"),
    "zh": ("下列句子没有资料支持：", "所缺：", "“{claim}”（{reason}）"),
}
_CARRIED: Final[dict[str, Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "dict": dict[str, Any],
    "list[str]": list[str],
    "list[float]": list[float],
    "list[Document]": list[Document],
    "list[ChatMessage]": list[ChatMessage],
}
# What the state of the loop has under its own names.
_TAKEN = frozenset({"query", "queries", "question", "attempt", "documents", "feedback", "messages", "read", "state",
    "history", "best",
})  # fmt: skip


class BestAttempt(TypedDict):
    """The best answer of the rounds so far."""

    worth: float
    attempt: int
    reply: ChatMessage
    answer: CheckedAnswer
    ungrounded: list[int]
    accepted: bool
    grade: dict[str, Any]


class LoopState(TypedDict):
    """What travels around the loop, as a plain dictionary between the sockets."""

    attempt: int
    question: str
    query: str
    queries: list[str]
    documents: list[Document]
    feedback: str
    messages: list[ChatMessage]
    read: list[Document]
    history: list[dict[str, Any]]
    best: BestAttempt | None
    reformulated: bool
    llm_calls: int
    warnings: list[str]
    carried: dict[str, Any]


def carried_types(carry: dict[str, str] | None) -> dict[str, Any]:
    """Give the types of carried values, after a check of their names."""
    for name, type_ in (carry or {}).items():
        if name in _TAKEN or not name.isidentifier():
            raise ValueError(
                f"`carry` cannot hold `{name}`: the loop has that name itself, or it is no identifier. "
                f"Taken are {', '.join(sorted(_TAKEN))}; choose another name."
            )
        if type_ not in _CARRIED:
            raise ValueError(f"`carry` gives `{name}` the type `{type_}`; it must be one of {', '.join(_CARRIED)}.")
    return {name: _CARRIED[type_] for name, type_ in (carry or {}).items()}


def first_state(
    question: str,
    queries: Sequence[str] | None,
    carried: dict[str, Any],
    messages: Sequence[ChatMessage] | None = None,
    read: Sequence[Document] | None = None,
) -> LoopState:
    """Open the loop, with the messages that its prompts begin with and the passages that these show."""
    return {
        "attempt": 1,
        "question": question,
        "query": question,
        "queries": list(dict.fromkeys(query for query in (queries or [question]) if query.strip())) or [question],
        "documents": [],
        "feedback": "",
        "messages": list(messages or []),
        "read": list(read or []),
        "history": [],
        "best": None,
        "reformulated": False,
        "llm_calls": 0,
        "warnings": [],
        "carried": dict(carried),
    }


def attempt_record(attempt: int, query: str, reply: ChatMessage, claims: Sequence[CheckedClaim]) -> dict[str, Any]:
    """Describe an attempt for the answer's history."""
    verdicts = dict.fromkeys(("supported", "partial", "unsupported", "contradicted"), 0)
    for claim in claims:
        verdicts[claim.support.verdict] += 1
    scores = [claim.support.score for claim in claims]
    text = " ".join((reply.text or "").split())
    return {
        "attempt": attempt,
        "query": query,
        "verdicts": verdicts,
        "score": round(sum(scores) / len(scores), 4) if scores else 1.0,
        "least": round(min(scores), 4) if scores else 1.0,
        "preview": text if len(text) <= _PREVIEW else f"{text[: _PREVIEW - 1]}…",
        "model": reply.meta.get("model", ""),
        "usage": reply.meta.get("usage", {}),
    }


def worth(claims: Sequence[CheckedClaim], *, accepted: bool, answered: bool) -> float:
    """Tell how good an attempt is, for choosing the best of several."""
    if not answered:
        return 1.0 if accepted else 0.0
    if not claims:
        return 1.0 + accepted * 0.5
    share = sum(claim.is_grounded for claim in claims) / len(claims)
    mean = sum(claim.support.score for claim in claims) / len(claims)
    return float(accepted) + 0.7 * share + 0.3 * mean


def as_verdicts(claims: Sequence[CheckedClaim], documents: Sequence[Document]) -> list[dict[str, Any]]:
    """Write checked claims as plain data."""
    verdicts = []
    for one in claims:
        support = one.support
        document = documents[support.passage] if 0 <= support.passage < len(documents) else None
        offset = (document.meta.get("cut") or [0])[0] if document else 0
        verdicts.append(
            {
                "text": one.claim.text,
                "start": one.claim.start,
                "end": one.claim.end,
                "verdict": support.verdict,
                "score": round(support.score, 4),
                "reason": support.reason,
                "number": document.meta.get("number", support.passage + 1) if document else None,
                "parent_id": document.id if document else "",
                "support": {"start": offset + support.start, "end": offset + support.end} if document else None,
                "quote": one.quote,
            }
        )
    return verdicts


def passages_for_retry(passages: Sequence[Document], verdicts: Sequence[dict[str, Any]]) -> list[Document]:
    """Order the passages of an attempt for the next one: those that supported something first."""
    useful = {verdict["parent_id"] for verdict in verdicts if verdict["verdict"] in ("supported", "partial")}
    unique = list({passage.id: passage for passage in passages}.values())
    return sorted(unique, key=lambda passage: passage.id not in useful)


def retry_queries(
    question: str, passages: Sequence[Document], refused: Sequence[CheckedClaim], missing: str = ""
) -> tuple[str, list[str]]:
    """
    Make the search for the next attempt from the question and from what of it no passage has, or a grader misses.

    Never from the words of a refused claim: whoever searches for an invention finds what seems to support it, and the
    answer is still none.
    """
    read = set[str]().union(*(terms(passage.content or "") for passage in passages))
    uncovered = [word for word in _TOKEN.findall(question_subject(question)) if not read.issuperset(terms(word))]
    said = set(terms(question))
    invented = set[str]().union(*(terms(one.stated) for one in refused)) - said
    wanted = " ".join(_without(missing[:_LONGEST_CLAIM], invented).split())
    queries = [question, " ".join(uncovered), wanted if set(terms(wanted)) - said else ""]
    queries = list(dict.fromkeys(query for query in queries if terms(query))) or [question]
    return " ".join(dict.fromkeys([question, *queries[1:]]))[:_LONGEST_QUERY], queries


def _without(text: str, invented: set[str]) -> str:
    """Take words out of a text: Latin ones, and Han characters in pairs."""

    def kept(match: re.Match[str]) -> str:
        token = match[0]
        if len(token) < 2 or not re.match(f"[{HAN}]", token):
            return " " if invented.issuperset(terms(token)) and terms(token) else token
        pairs = [
            any(len(term) == 2 and term in invented for term in terms(token[at : at + 2]))
            for at in range(len(token) - 1)
        ]
        gone = [before or after for before, after in zip([False, *pairs], [*pairs, False], strict=True)]
        return "".join(" " if out else character for character, out in zip(token, gone, strict=True))

    return _TOKEN.sub(kept, text)


def feedback_text(claims: Sequence[CheckedClaim], language: str, lacks: Sequence[str] = ()) -> str:
    """
    Tell the generator what was wrong with its answer, and how a grader would mend it.

    What the answer said is quoted as data: it may repeat what a passage wanted the model to say.
    """
    intro, lacked, item = _FEEDBACK["zh" if language == "zh" else "en"]
    lines = []
    if claims:
        lines.append(intro)
        for one in claims[:_MOST_CLAIMS]:
            text = neutral_text(" ".join(one.claim.text.split()))[:_LONGEST_CLAIM]
            lines.append("- " + item.format(claim=text, reason=neutral_text(one.support.reason)))
    given = [neutral_text(" ".join(text.split()))[:_LONGEST_QUERY] for text in lacks if text.strip()]
    if given:
        lines.append(lacked + given[0])
        lines += [f"- {text}" for text in given[1:]]
    return "\n".join(lines)
