"""Writes the earlier turns of a conversation as messages, byte for byte as in the prompts before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from haystack import Document, logging
from haystack.dataclasses import ChatMessage
from pydantic import BaseModel, NonNegativeInt, PositiveInt, ValidationError

from shiguan.claims.marks import neutral_answer
from shiguan.conversations import SummaryNode, Turn
from shiguan.llm.prompts import render_prompt
from shiguan.llm.source_blocks import neutral_text, numbered, render_sources
from shiguan.reading.text import read_text
from shiguan.text.passages import with_gaps

logger = logging.getLogger(__name__)

_LONGEST_ANSWER = 4_000
_LONGEST_SUMMARY = 2_000
_WHOLE_ANSWERS = ("not_found", "refused")


@dataclass(frozen=True)
class EarlierTurns:
    """The messages that a prompt begins with, the passages with a number, and what is kept for the next prompt."""

    messages: list[ChatMessage] = field(default_factory=list)
    shown: list[Document] = field(default_factory=list)
    thread: dict[str, Any] = field(default_factory=lambda: {"start": 0})


def start_of(turn: Turn) -> int:
    """Return the number of the first turn in the prompt of this turn."""
    return _thread(turn).start or turn.number


def turns_in_prompts(turns: Sequence[Turn]) -> list[Turn]:
    """Return the turns that the prompt of the last one contained, and the last one."""
    start = start_of(turns[-1]) if turns else 0
    shown = [turn for turn in turns if turn.meta.get("status") not in ("recalled", "unsearched")]
    return [turn for turn in shown if turn.number >= start]


def passages_of(turns: Sequence[Turn]) -> list[str]:
    """Return the ids of the passages that were sent with the prompts of some turns."""
    return list({read.id: None for turn in turns for read in _read(turn)})


def numbers_of(turns: Sequence[Turn]) -> tuple[dict[str, int], bool]:
    """Return the numbers of passages, and whether each was given only once; otherwise its first holder keeps it."""
    threads = [_thread(turn) for turn in turns]
    numbers: dict[str, int] = dict(threads[0].numbers) if threads else {}
    holders = {number: name for name, number in numbers.items()}
    clear = True
    for read in (read for thread in threads for read in thread.read):
        holder = holders.setdefault(read.number, read.id)
        clear = clear and holder == read.id and numbers.get(read.id, read.number) == read.number
        if holder == read.id:
            numbers.setdefault(read.id, read.number)
    return numbers, clear


def written_turns(turns: Sequence[Turn], found: Mapping[str, Document], numbers: Mapping[str, int]) -> EarlierTurns:
    """Write the turns, each passage where it was shown first."""
    messages: list[ChatMessage] = summary_messages(_thread(turns[0]).opening)
    shown: dict[str, Document] = {}
    for turn in turns:
        read = _read(turn)
        new = [(found[entry.id], entry) for entry in read if entry.id not in shown]
        again = [entry.number for entry in read if entry.id in shown]
        shown.update((parent.id, _as_read(parent, entry)) for parent, entry in new)
        context = render_sources([_shown_then(*entry) for entry in new], again) if read else ""
        known = {document.meta["number"] for document in shown.values()}
        text = turn.answer if turn.meta.get("status") in _WHOLE_ANSWERS else turn.said
        language = _thread(turn).language or read_text(turn.question).language
        answer = neutral_answer(text[:_LONGEST_ANSWER], known)
        question = neutral_text(turn.question)
        messages += render_prompt("earlier_turn", context=context, question=question, language=language)
        messages.append(ChatMessage.from_assistant(answer or "…"))
    return EarlierTurns(messages, [*shown.values(), *_only_numbered(numbers, shown)], {"start": turns[0].number})


def anew(summary: str, numbers: Mapping[str, int]) -> EarlierTurns:
    """Start the messages over: a summary replaces the turns, and passages keep their numbers."""
    thread = {"start": 0, "opening": summary, "numbers": dict(numbers)}
    return EarlierTurns(summary_messages(summary), _only_numbered(numbers, {}), thread)


def summary_messages(summary: str) -> list[ChatMessage]:
    """Write the summary of a conversation as its first message, with an empty reply of the assistant."""
    if not summary:
        return []
    (message,) = render_prompt("conversation_summary", summary=summary, language=read_text(summary).language)
    return [message, ChatMessage.from_assistant("…")]


def _shown_then(parent: Document, read: "_Shown") -> Document:
    """Return a stored passage as it was shown then: its number, its stretch, and the gaps."""
    text = parent.content or ""
    if read.summed_up:
        parent, text = replace(parent, meta={**parent.meta, "summed_up": read.summed_up}), read.summed_up
    elif read.kept:
        text = with_gaps(text, read.kept)
    elif read.cut:
        text = text[slice(*read.cut)]
    return replace(numbered(parent, read.number), content=text)


def in_turns(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Make user and assistant alternate, the user first and the assistant last, as models expect."""
    paired: list[ChatMessage] = []
    for message in messages:
        if paired and paired[-1].role == message.role:
            text = "\n\n".join(one.text or "" for one in (paired[-1], message))
            paired[-1] = (ChatMessage.from_user if message.is_from("user") else ChatMessage.from_assistant)(text)
        elif paired or message.role.value == "user":
            paired.append(message)
    return paired[: len(paired) // 2 * 2]


def whole_summary(nodes: Sequence[SummaryNode]) -> str:
    """Join, in order, the summaries that no other summary contains; if that is too long, only its end."""
    roots: list[SummaryNode] = []
    covered = 0
    # A level covers the turns from the first on; the level below may have later turns, which nothing contains.
    for node in sorted(nodes, key=lambda node: (-node.level, node.first_turn)):
        if node.first_turn > covered:
            roots.append(node)
            covered = node.last_turn
    return "\n".join(node.text for node in roots)[-_LONGEST_SUMMARY:]


class _Shown(BaseModel):
    """A passage of a prompt, as it was kept with the turn; the spans are those of the stored passage."""

    id: str
    number: PositiveInt
    cut: tuple[NonNegativeInt, NonNegativeInt] | None = None
    kept: list[tuple[NonNegativeInt, NonNegativeInt]] | None = None
    summed_up: str | None = None


class _Thread(BaseModel):
    """What is kept with a turn of the messages that its prompt began with."""

    start: NonNegativeInt = 0
    opening: str = ""
    numbers: dict[str, PositiveInt] = {}
    language: str = ""
    sent: bool = False
    read: list[_Shown] = []


def _thread(turn: Turn) -> _Thread:
    """Read what is kept with a turn; another version may have written it, and what does not fit is left out."""
    try:
        return _Thread.model_validate(turn.meta.get("thread") or {})
    except ValidationError as error:
        problem = ".".join(map(str, error.errors()[0]["loc"]))
        logger.warning("The passages of turn {turn} do not fit and were left out: {problem}.", turn=turn.number,
                       problem=problem)  # fmt: skip
        return _Thread()


def _read(turn: Turn) -> list[_Shown]:
    thread = _thread(turn)
    return thread.read if thread.sent else []


def _as_read(parent: Document, read: _Shown) -> Document:
    content = (parent.content or "")[slice(*read.cut)] if read.cut else parent.content
    meta = {**parent.meta, **read.model_dump(exclude_unset=True, exclude={"id"}), "earlier": True}
    return replace(parent, content=content, meta=meta, score=None, embedding=None, sparse_embedding=None)


def _only_numbered(numbers: Mapping[str, int], shown: Mapping[str, Document]) -> list[Document]:
    return [Document(id=name, meta={"number": number}) for name, number in numbers.items() if name not in shown]
