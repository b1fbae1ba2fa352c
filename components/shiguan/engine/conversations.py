"""Keeps the turns of conversations, has them summarized in the background, and writes them for readers."""

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from haystack import GeneratedAnswer, logging

from shiguan.conversations import LONGEST_TITLE, LONGEST_TURN, Conversation, ConversationStore, Turn
from shiguan.engine.options import AskOptions
from shiguan.errors import StoreError
from shiguan.llm.run import Run, raise_if_cancelled
from shiguan.memory.conversation_reader import ConversationReader
from shiguan.memory.summary_tree import SummaryTree
from shiguan.text.works import in_markdown, plain_line

logger = logging.getLogger(__name__)

_WITHOUT_CLAIMS = ("closest", "not_found", "quoted", "recalled", "refused", "unsearched")
"""Statuses of answers that make no claims of their own; later turns see at most one sentence of them."""
_READ = ("number", "cut", "kept", "summed_up")
_AT_ONCE = 2


class ConversationKeeper:
    """Keeps turns and has them summarized; a store that fails costs a warning, and never the answer."""

    def __init__(self, reader: ConversationReader) -> None:
        self.store: ConversationStore = reader.conversation_store
        self.tree = reader.summary_tree
        self._threads = [ThreadPoolExecutor(1, thread_name_prefix="conversation-summaries") for _ in range(_AT_ONCE)]

    def keep(self, tenant_id: str, conversation_id: str, turn: Turn) -> list[str]:
        try:
            self.store.append(tenant_id, conversation_id, turn)
        except StoreError as error:
            return [f"This turn was not kept. {error}"]
        return []

    def sum_up(self, tenant_id: str, conversation_id: str) -> None:
        """Have a conversation summarized in the background; returns at once."""
        if self.tree is not None:
            thread = self._threads[hash((tenant_id, conversation_id)) % _AT_ONCE]
            # A server that is shutting down takes no more work; the next turn catches up.
            with suppress(RuntimeError):
                thread.submit(self._summarize, self.tree, tenant_id, conversation_id)

    def close(self) -> None:
        for thread in self._threads:
            thread.shutdown(wait=True, cancel_futures=True)
        self.store.close()

    def _summarize(self, tree: SummaryTree, tenant_id: str, conversation_id: str) -> None:
        try:
            with Run(tenant_id=tenant_id).entered():
                warnings = tree.add_missing(self.store, tenant_id, conversation_id)
            for warning in warnings:
                logger.warning("{warning}", warning=warning)
        # Nobody awaits this thread; what it could not do is done with the next turn.
        except Exception as error:
            logger.warning("A conversation was not summarized: {error}", error=str(error))


async def keep_turn(
    keeper: ConversationKeeper | None, turn: Turn, answer: dict[str, Any], tenant_id: str, options: AskOptions
) -> None:
    """Keep the turn of an answer, unless its question brought its own history."""
    name = answer["conversation_id"] = options.conversation_id or ""
    warnings: list[str] = answer["metadata"]["warnings"]
    if keeper is None:
        warnings.append(f"The mode `{answer['mode']}` keeps no conversations.")
    elif not options.history:
        warnings += await asyncio.to_thread(keeper.keep, tenant_id, name, turn)
        keeper.sum_up(tenant_id, name)


def turn_of(answer: GeneratedAnswer, shown: dict[str, Any], source: str | None, begun: dict[str, Any]) -> Turn:
    """Create the turn that is kept of an answer: with how its prompt began (`begun`) and the passages that it read."""
    # An answer that was refused may list passages that were never numbered for a prompt.
    numbered = (passage for passage in answer.documents if {"source_id", "number"} <= passage.meta.keys())
    read = [passage for passage in numbered if not passage.meta.get("earlier")]
    thread = {
        **begun,
        "language": answer.meta.get("language") or "",
        "sent": "prompt_rendered" in answer.meta,
        "read": [{"id": p.id, **{name: p.meta[name] for name in _READ if name in p.meta}} for p in read],
    }
    meta: dict[str, Any] = {"mode": shown["mode"], "status": shown["status"], "receipt": shown["metadata"]["receipt"]}
    if meta["status"] in _WITHOUT_CLAIMS:
        meta["said"] = "".join(map(_sentence, shown["citations"][:1]))
    # Without a conversation reader nothing shows that the question opens a topic.
    return Turn(answer.query, shown["answer"], source or "both", {**meta, "thread": thread})


def _sentence(citation: dict[str, Any]) -> str:
    """Return the sentence of a quotation that is closest to the question, or the whole quotation."""
    start, end = citation.get("sentence") or (citation["start"], citation["end"])
    sentence: str = citation["quote"][start - citation["start"] : end - citation["start"]]
    return sentence


def head_of(conversation: Conversation) -> dict[str, Any]:
    known = {name: value for name, value in asdict(conversation).items() if name != "birth"}
    return {**known, "title": plain_line(conversation.title, LONGEST_TITLE)}


def shown_conversation(conversation: Conversation, turns: Sequence[Turn]) -> dict[str, Any]:
    return {**head_of(conversation), "turns": [asdict(turn) for turn in turns]}


def export_markdown(conversation: Conversation, turns: Sequence[Turn]) -> str:
    """Write a conversation as Markdown: titles and questions as plain text, answers without HTML."""
    parts = [f"# {in_markdown(plain_line(conversation.title, LONGEST_TITLE))}"]
    for turn in turns:
        raise_if_cancelled()
        when = time.strftime("%Y-%m-%d %H:%M", time.gmtime(turn.created))
        answer = "\n".join(f"> {_kept_form(line)}".rstrip() for line in turn.answer.splitlines())
        parts += [
            f"## {turn.number}. {in_markdown(plain_line(turn.question, LONGEST_TURN))}",
            f"*{when} UTC*",
            answer or "> ",
        ]
    return "\n\n".join(parts) + "\n"


def _kept_form(line: str) -> str:
    """Leave an answer's headings, lists and marks, and nothing that a viewer of Markdown would load or run."""
    indent = line[: len(line) - len(line.lstrip())]
    return indent + plain_line(line, LONGEST_TURN).replace("<", "\\<").replace("![", "!\\[").replace("](", "]\\(")
