"""What the engine does with a conversation around a question: load it before, keep the turn and sum it up after."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from haystack import GeneratedAnswer, logging

from shiguan.conversations import ConversationStore, SummaryNode, Turn, as_messages
from shiguan.engine.loading import has_file, load_pipeline
from shiguan.errors import ConfigurationError, StoreError
from shiguan.llm.model_settings import CachePlan
from shiguan.llm.reply_cache import TenantCache, caching
from shiguan.memory.summary_tree import SummaryTree
from shiguan.resources import data_folder
from shiguan.tenants import of_tenant

logger = logging.getLogger(__name__)

_TURNS = 10
_TOLD_WHOLE = ("not_found", "refused")
_SAYS_NOTHING = ("not_found", "quoted", "recalled", "refused")
"""Statuses of answers that tell nothing in words of their own, of which later turns know the first passage at most."""
_READ = ("number", "cut", "kept", "summary")
_LONGEST_SUMMARY = 2_000
_AT_ONCE = 2


@dataclass(frozen=True)
class Remembered:
    """
    What a question is asked with: the last turns as messages, what the whole was about, and what to warn of.

    `thread` has the turns that the conversation's prompts have told since they last began anew, `prefix` the hashes of
    the last prompt's beginnings, which no stage reads.
    """

    history: list[dict[str, str]] = field(default_factory=list)
    summary: str = ""
    thread: dict[str, Any] = field(default_factory=dict)
    prefix: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


class ConversationMemory:
    """
    Loads conversations, keeps their turns, and has them summed up when nobody waits; see `open_conversations`.

    A store that fails costs a warning and never the answer. One conversation is summed up by one thread at a time;
    what came in meanwhile is done at once after. What a crash left out is made up with the conversation's next turn.
    """

    def __init__(self, tree: SummaryTree, cached: Callable[[str], TenantCache] | None = None) -> None:
        self.tree = tree
        self._cached = cached
        self.store: ConversationStore = tree.conversation_store
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="conversation-summaries")
        self._lock = threading.Lock()
        self._at_work: dict[tuple[str, str], bool] = {}

    def load(self, tenant_id: str, conversation_id: str) -> Remembered:
        """Read what a question of a conversation is asked with; of another tenant's there is nothing."""
        try:
            turns = self.store.turns(tenant_id, conversation_id, last=_TURNS)
            nodes = self.store.nodes(tenant_id, conversation_id, vectors=False) if turns else []
            told = turns
            if turns and start_of(turns[-1]) < turns[0].number:
                told = self.store.turns(tenant_id, conversation_id, after=start_of(turns[-1]) - 1)
        except StoreError as error:
            return Remembered(warnings=[f"The conversation could not be read. {error}"])
        summary = whole_summary(nodes)
        prefixes = [turn.meta.get("thread", {}).get("prefix") or [] for turn in reversed(told)]
        return Remembered(as_messages(turns), summary, thread_of(told, summary), next(filter(None, prefixes), []))

    def keep(self, tenant_id: str, conversation_id: str, turn: Turn) -> list[str]:
        try:
            self.store.append(tenant_id, conversation_id, turn)
        except StoreError as error:
            return [f"This turn was not kept. {error}"]
        return []

    def sum_up(self, tenant_id: str, conversation_id: str) -> None:
        """Have a conversation summed up whose answer was sent; returns at once."""
        key = (tenant_id, conversation_id)
        with self._lock:
            if key in self._at_work:
                self._at_work[key] = True
                return
            # A server that is going down begins no more; the next turn makes it up.
            with suppress(RuntimeError):
                self._threads.submit(self._work, key)
                self._at_work[key] = False

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)
        self.store.close()

    def _work(self, key: tuple[str, str]) -> None:
        tenant_id, conversation_id = key
        again = True
        while again:
            try:
                with caching(self._cached(tenant_id)) if self._cached else nullcontext():
                    done: dict[str, Any] = self.tree.run(conversation_id=conversation_id, filters=of_tenant(tenant_id))
                for warning in done["warnings"]:
                    logger.warning("{warning}", warning=warning)
            # Nobody waits for this thread; what it could not do is done with the next turn.
            except Exception as error:
                logger.warning("A conversation was not summed up: {error}", error=str(error))
            with self._lock:
                again = self._at_work.pop(key)
                if again:
                    self._at_work[key] = False


def open_conversations(deployment: str, *, data_dir: str | Path | None = None) -> ConversationMemory | None:
    """Load what keeps a deployment's conversations, by its `memory.yml`; None where it has none."""
    if not has_file(deployment, "memory"):
        return None
    pipeline = load_pipeline(deployment, "memory", data_dir=data_dir)
    plan = CachePlan.model_validate(pipeline.metadata["cache"])
    for _, part in pipeline.walk():
        if isinstance(part, SummaryTree):
            return ConversationMemory(part, lambda tenant_id: TenantCache(data_folder(data_dir), tenant_id, plan))
    raise ConfigurationError(f"{deployment}/memory.yml has no `SummaryTree`. Add one: it says where conversations are.")


def start_of(turn: Turn) -> int:
    """Give the number of the turn with which the prompts began that this turn's prompt went on from."""
    return int(turn.meta.get("thread", {}).get("start") or turn.number)


def thread_of(turns: Sequence[Turn], summary: str) -> dict[str, Any]:
    """Gather what `EarlierTurnsFetcher` writes the beginning of the next prompt of."""
    told = [turn for turn in turns if turn.number >= start_of(turns[-1])]
    kept = [turn.meta.get("thread", {}) for turn in told]
    if not told:
        return {}
    return {
        "summary": summary,
        "numbers": kept[0].get("numbers", {}),
        "turns": [
            {
                "number": turn.number,
                "question": turn.question,
                "answer": turn.answer if turn.meta.get("status") in _TOLD_WHOLE else turn.said,
                "language": one.get("language", ""),
                "opening": one.get("opening", ""),
                "sent": one.get("sent", False),
                "read": one.get("read", []),
            }
            for turn, one in zip(told, kept, strict=True)
            if turn.meta.get("status") != "recalled"
        ],
    }


def turn_of(answer: GeneratedAnswer, told: dict[str, Any], source: str | None, begun: dict[str, Any]) -> Turn:
    """Make of an answer the turn that is kept: `begun` says how its prompt began, beside it stands what it read."""
    read = [one for one in answer.documents if "source_id" in one.meta and not one.meta.get("earlier")]
    thread = {
        **begun,
        "language": answer.meta.get("language") or "",
        "sent": "prompt_rendered" in answer.meta,
        "read": [{"id": one.id, **{name: one.meta[name] for name in _READ if name in one.meta}} for one in read],
    }
    meta: dict[str, Any] = {"mode": told["mode"], "status": told["status"], "receipt": told["metadata"]["receipt"]}
    if meta["status"] in _SAYS_NOTHING:
        meta["said"] = "".join(citation["quote"] for citation in told["citations"][:1])
    # Without a router nothing says that the question opens a topic.
    return Turn(answer.query, told["answer"], source or "both", {**meta, "thread": thread})


def whole_summary(nodes: Sequence[SummaryNode]) -> str:
    """Put together, in order, the summaries that no other one contains; of a long whole, its end."""
    roots: list[SummaryNode] = []
    covered = 0
    # A level covers the turns from the first on; what the one below has beyond them is not contained in anything.
    for node in sorted(nodes, key=lambda node: (-node.level, node.first_turn)):
        if node.first_turn > covered:
            roots.append(node)
            covered = node.last_turn
    text = "\n".join(node.text for node in roots)
    return text[-_LONGEST_SUMMARY:]
