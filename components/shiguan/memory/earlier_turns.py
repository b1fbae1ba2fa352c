"""Writes the earlier turns of a conversation as messages, byte for byte as the prompts before this one had them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from haystack import Document
from haystack.dataclasses import ChatMessage

from shiguan.claims.marks import neutral_answer
from shiguan.conversations import SummaryNode, Turn
from shiguan.llm.prompt_rendering import render_prompt
from shiguan.llm.source_blocks import SourceBlock, neutral_text, render_sources, source_block
from shiguan.text.languages import detect_language
from shiguan.text.passages import with_gaps

_LONGEST_ANSWER = 4_000
_LONGEST_SUMMARY = 2_000
_WHOLE_ANSWERS = ("not_found", "refused")


@dataclass(frozen=True)
class EarlierTurns:
    """
    The messages that a prompt begins with, and the passages that have a number by them.

    `shown` are those that the messages show, with their content, and those that an earlier prompt showed, without;
    `first` is the number of the first turn that the messages tell, or None.
    """

    messages: list[ChatMessage] = field(default_factory=list)
    shown: list[Document] = field(default_factory=list)
    first: int | None = None


def start_of(turn: Turn) -> int:
    """Give the number of the turn with which the prompts began that this turn's prompt went on from."""
    return int(turn.meta.get("thread", {}).get("start") or turn.number)


def turns_in_prompts(turns: Sequence[Turn]) -> list[Turn]:
    """Give the turns that the prompt of the last one told, and that one."""
    turns = [turn for turn in turns if turn.number >= start_of(turns[-1])] if turns else []
    return [turn for turn in turns if turn.meta.get("status") not in ("recalled", "unsearched")]


def passages_of(turns: Sequence[Turn]) -> list[str]:
    """Name the passages that were sent with the prompts of some turns."""
    return list({one["id"]: None for turn in turns for one in _read(turn)})


def numbers_of(turns: Sequence[Turn]) -> tuple[dict[str, int], bool]:
    """Say what passages are called, and whether no number was given twice; of two the first holder keeps it."""
    numbers: dict[str, int] = dict(turns[0].meta.get("thread", {}).get("numbers") or {}) if turns else {}
    holders = {number: name for name, number in numbers.items()}
    clear = True
    for one in (one for turn in turns for one in turn.meta.get("thread", {}).get("read") or []):
        holder = holders.setdefault(one["number"], one["id"])
        clear = clear and holder == one["id"] and numbers.get(one["id"], one["number"]) == one["number"]
        if holder == one["id"]:
            numbers.setdefault(one["id"], one["number"])
    return numbers, clear


def written_turns(turns: Sequence[Turn], found: Mapping[str, Document], numbers: Mapping[str, int]) -> EarlierTurns:
    """Write the turns, each passage where it was shown first."""
    messages: list[ChatMessage] = summary_messages(str(turns[0].meta.get("thread", {}).get("opening") or ""))
    shown: dict[str, Document] = {}
    for turn in turns:
        read = _read(turn)
        blocks = [_read_block(found[one["id"]], one) for one in read if one["id"] not in shown]
        again = [one["number"] for one in read if one["id"] in shown]
        shown.update((one["id"], _as_read(found[one["id"]], one)) for one in read if one["id"] not in shown)
        context = render_sources(blocks, again) if read else ""
        known = {document.meta["number"] for document in shown.values()}
        said = turn.answer if turn.meta.get("status") in _WHOLE_ANSWERS else turn.said
        language = turn.meta.get("thread", {}).get("language") or detect_language(turn.question)
        answer = neutral_answer(said[:_LONGEST_ANSWER], known)
        asked = _earlier_turn(context, neutral_text(turn.question), language)
        messages += [asked, ChatMessage.from_assistant(answer or "…")]
    return EarlierTurns(messages, [*shown.values(), *_only_numbered(numbers, shown)], turns[0].number)


def anew(summary: str, numbers: Mapping[str, int]) -> EarlierTurns:
    """Begin the messages anew: a summary takes the place of the turns, passages keep their numbers."""
    return EarlierTurns(summary_messages(summary), _only_numbered(numbers, {}))


def summary_messages(summary: str) -> list[ChatMessage]:
    """Write what a conversation was about as its first message, and an assistant that took note of it."""
    if not summary:
        return []
    (message,) = render_prompt("conversation_summary", summary=summary, language=detect_language(summary))
    return [message, ChatMessage.from_assistant("…")]


@lru_cache(256)
def _earlier_turn(context: str, question: str, language: str) -> ChatMessage:
    """Write what a person asked, with the passages that were read: once, for every further turn begins with it."""
    (message,) = render_prompt("earlier_turn", context=context, question=question, language=language)
    return message


def _read_block(parent: Document, read: Mapping[str, Any]) -> SourceBlock:
    """Write a stored passage as it was read once: its number, the stretch of it, and the gaps or the summary."""
    text, cut = parent.content or "", read.get("cut")
    if read.get("summary") is not None:
        text = read["summary"]
    elif read.get("kept"):
        text = with_gaps(text, [(start, end) for start, end in read["kept"]])
    elif cut:
        text = text[cut[0] : cut[1]]
    return source_block(replace(parent, meta={**parent.meta, "number": read["number"]}), text)


def in_turns(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Let a person and the assistant speak in turn, the person first and the assistant last, as models expect."""
    paired: list[ChatMessage] = []
    for message in messages:
        if paired and paired[-1].role == message.role:
            paired[-1] = replace(message, _content=[*paired[-1]._content, *message._content])
        elif paired or message.role.value == "user":
            paired.append(message)
    return paired[: len(paired) // 2 * 2]


def whole_summary(nodes: Sequence[SummaryNode]) -> str:
    """Put together, in order, the summaries that no other one contains; of a long whole, its end."""
    roots: list[SummaryNode] = []
    covered = 0
    # A level covers the turns from the first on; what the one below has beyond them is not contained in anything.
    for node in sorted(nodes, key=lambda node: (-node.level, node.first_turn)):
        if node.first_turn > covered:
            roots.append(node)
            covered = node.last_turn
    return "\n".join(node.text for node in roots)[-_LONGEST_SUMMARY:]


def _read(turn: Turn) -> list[dict[str, Any]]:
    thread = turn.meta.get("thread", {})
    return list(thread.get("read") or []) if thread.get("sent") else []


def _as_read(parent: Document, read: Mapping[str, Any]) -> Document:
    cut = read.get("cut")
    content = (parent.content or "")[cut[0] : cut[1]] if cut else parent.content
    meta = {**parent.meta, **{name: value for name, value in read.items() if name != "id"}, "earlier": True}
    return replace(parent, content=content, meta=meta, score=None, embedding=None, sparse_embedding=None)


def _only_numbered(numbers: Mapping[str, int], shown: Mapping[str, Document]) -> list[Document]:
    return [Document(id=name, meta={"number": number}) for name, number in numbers.items() if name not in shown]
