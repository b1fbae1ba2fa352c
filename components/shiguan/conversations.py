"""What a conversation is, and what a store of conversations does for the tenant whose it is and for nobody else."""

import inspect
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, TypeVar

from haystack import logging
from pydantic import TypeAdapter, ValidationError

from shiguan.errors import RefusedError, shown
from shiguan.tenants import guard_methods

logger = logging.getLogger(__name__)

CONVERSATION_ID = r"\w[\w.:-]{0,127}"
"""What an id may be: 1 to 128 letters, digits and `_.:-`, the first a letter, a digit or `_`."""
LONGEST_TITLE = 200
LONGEST_TURN = 100_000
"""How many characters of a question or an answer are kept."""
_DAY, _SWEEP = 86_400.0, 3_600.0
_MAINTENANCE = frozenset("close expire from_dict set_up to_dict".split())


@dataclass(frozen=True)
class Turn:
    """
    A question with its answer; `source` says how it was routed, `meta` what later turns need of it.

    `meta["said"]` is what the answer says where that is not its text: nothing, or the quoted passage alone.
    """

    question: str
    answer: str
    source: str = "database"
    meta: dict[str, Any] = field(default_factory=dict)
    number: int = 0
    created: float = 0.0

    @property
    def said(self) -> str:
        return str(self.meta.get("said", self.answer))


class SummaryNode(NamedTuple):
    """
    A summary of the turns from `first_turn` to `last_turn`; its children are the nodes one level below among them.

    Level 0 is about one turn, which `opens` a topic where the library alone was asked. The embedding is float32, of
    length one.
    """

    level: int
    first_turn: int
    last_turn: int
    text: str
    opens: bool = False
    embedding: bytes = b""


@dataclass(frozen=True)
class Conversation:
    """What a list of conversations shows; `birth` tells two conversations apart that had the same id."""

    id: str
    title: str
    created: float
    updated: float
    turns: int
    birth: str


class ConversationStore(ABC):
    """
    Keeps conversations, each under the tenant and the id that every method must take first.

    A missing tenant or impossible id is refused; what belongs to another tenant is not found. `retention_days` is how
    long a turn is kept; None for ever. A summary goes with the first turn that it is about.
    """

    def __init__(self, retention_days: float | None) -> None:
        if retention_days is not None and retention_days <= 0:
            raise ValueError(f"`retention_days` must be positive, got {retention_days}.")
        self.retention_days = retention_days
        self._swept = 0.0

    def _oldest(self) -> float:
        return time.time() - self.retention_days * _DAY if self.retention_days else 0.0

    def _sweep(self) -> None:
        """Remove what is too old at the first turn that is kept, and then once an hour."""
        if self.retention_days and (not self._swept or time.monotonic() - self._swept > _SWEEP):
            self._swept = time.monotonic()
            self.expire()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        methods = {name: method for name, method in vars(cls).items() if inspect.isfunction(method)}
        names = [name for name in methods if not name.startswith("_") and name not in _MAINTENANCE]
        for name in names:
            taken = list(inspect.signature(methods[name]).parameters)[1:3]
            if taken[:1] != ["tenant_id"] or not (name == "conversations" or taken[1:] == ["conversation_id"]):
                raise TypeError(
                    f"`{name}` must take `tenant_id` and `conversation_id` first: whose conversation is it about?"
                )
        guard_methods(cls, names, _check_owner)

    def set_up(self) -> list[str]:
        """Create what is missing on its server, and say what was done."""
        return []

    @abstractmethod
    def append(self, tenant_id: str, conversation_id: str, turn: Turn) -> int:
        """Add a turn behind the last one, in a new conversation if there is none, and give its number, from 1."""

    @abstractmethod
    def find(self, tenant_id: str, conversation_id: str) -> Conversation | None:
        """Return what is known of a conversation."""

    @abstractmethod
    def turns(self, tenant_id: str, conversation_id: str, *, last: int | None = None, after: int = 0) -> list[Turn]:
        """Return the turns after a number, or of these the last so many, in their order."""

    @abstractmethod
    def conversations(self, tenant_id: str) -> list[Conversation]:
        """List a tenant's conversations, the newest first."""

    @abstractmethod
    def rename(self, tenant_id: str, conversation_id: str, title: str) -> bool:
        """Rename a conversation; False if there is none."""

    @abstractmethod
    def delete(self, tenant_id: str, conversation_id: str) -> bool:
        """Remove a conversation with its summaries; False if there is none."""

    @abstractmethod
    def nodes(self, tenant_id: str, conversation_id: str, *, vectors: bool = True) -> list[SummaryNode]:
        """Return the summaries, from the concrete to the general, each level in order; without vectors in less time."""

    @abstractmethod
    def add_node(self, tenant_id: str, conversation_id: str, node: SummaryNode, *, birth: str) -> bool:
        """Add a summary once, and only to the conversation that it is about; False if it was not added."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the file or the connection; the next use opens it again."""

    @abstractmethod
    def expire(self) -> None:
        """Remove what is older than may be kept, of all tenants."""


def _check_owner(_store: ConversationStore, _name: str, given: dict[str, Any]) -> None:
    tenant_id = given["tenant_id"]
    if not isinstance(tenant_id, str) or not tenant_id.strip() or re.search("[\ud800-\udfff\0]", tenant_id):
        raise RefusedError(
            f"A conversation was asked for without a tenant (`tenant_id` is {shown(tenant_id)}). Every "
            "request names whose conversations it may see; pass the tenant's id."
        )
    if "conversation_id" in given:
        check_conversation_id(given["conversation_id"])


def check_conversation_id(conversation_id: Any) -> None:
    """Refuse what can be no id, whoever asks and whatever is stored."""
    if not isinstance(conversation_id, str) or not re.fullmatch(CONVERSATION_ID, conversation_id):
        raise RefusedError(
            f"{shown(conversation_id)} is not a valid conversation id. Expected 1 to 128 letters, digits and "
            "`_.:-`, the first a letter, a digit or `_`. Choose another id."
        )


def kept_turn(turn: Turn) -> dict[str, Any]:
    """Return a turn as plain data that any store takes: bounded, and without halves of characters."""
    fields = asdict(turn) | {"created": time.time()}
    for name in ("question", "answer"):
        fields[name] = fields[name][:LONGEST_TURN].encode("utf-8", "replace").decode()
    return fields


def read_turns(records: Iterable[Any]) -> list[Turn]:
    """Read kept turns, which may have been written by another version; what does not fit is left out."""
    return _fitting(_TURN, records, "turn")


def read_nodes(records: Iterable[Any]) -> list[SummaryNode]:
    """Read kept summaries, which may have been written by another version; what does not fit is left out."""
    return _fitting(_NODE, records, "summary")


_TURN, _NODE = TypeAdapter(Turn), TypeAdapter(SummaryNode)
Kept = TypeVar("Kept")


def _fitting(form: TypeAdapter[Kept], records: Iterable[Any], kind: str) -> list[Kept]:
    found = []
    for record in records:
        try:
            found.append(form.validate_python(record))
        except ValidationError as error:
            problem = ".".join(map(str, error.errors()[0]["loc"])) or "form"
            logger.warning("A kept {kind} was left out: its {problem} does not fit.", kind=kind, problem=problem)
    return found


def as_messages(turns: Sequence[Turn]) -> list[dict[str, str]]:
    """Return turns as the `history` that every mode takes."""
    return [
        {"role": role, "content": text}
        for turn in turns
        for role, text in (("user", turn.question), ("assistant", turn.said))
        if text
    ]
