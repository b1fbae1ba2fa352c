"""Conversations in one index of an Elasticsearch cluster."""

import base64
import secrets
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

from elasticsearch import ConflictError, NotFoundError

from shiguan.conversations import (
    LONGEST_TITLE,
    Conversation,
    ConversationStore,
    SummaryNode,
    Turn,
    kept_turn,
    read_nodes,
    read_turns,
)
from shiguan.errors import StoreUnavailableError
from shiguan.resources import text_hash
from shiguan.serialization import Serializable
from shiguan.stores.cluster.elasticsearch_index import ElasticsearchIndex
from shiguan.text.works import plain_line

_PAGE = 1_000
_TRIES = 50


# The texts are kept and not indexed.
_FIELDS: dict[str, Any] = {
    **{name: {"type": "keyword"} for name in ("tenant", "conversation", "birth", "kind")},
    **{name: {"type": "long"} for name in ("number", "level")},
    "created": {"type": "double"},
}


class ElasticsearchConversationStore(ElasticsearchIndex, Serializable, ConversationStore):
    """
    Keeps the conversations of the cluster deployment in one index, made by `set_up` (`shiguan stores init`).

    Turns get their numbers from the conversation's own record, which is only changed if nobody else has changed it, so
    that of two turns at once both are kept, one after the other. Every search is for one tenant and conversation, and
    every record has the conversation's `birth`: late writes to a deleted conversation are never found.
    """

    def __init__(self, index: str = "shiguan-conversations", *, retention_days: float | None = None) -> None:
        super().__init__(retention_days)
        self._on(index, _FIELDS)

    def append(self, tenant_id: str, conversation_id: str, turn: Turn) -> int:
        kept = kept_turn(turn)
        self._sweep()
        new = {**_whose(tenant_id, conversation_id, secrets.token_hex(8)), "kind": "conversation", "last": 0}
        new |= {"title": plain_line(turn.question, LONGEST_TITLE), "created": kept["created"]}
        head = self._changed(
            tenant_id, conversation_id, lambda it: {"last": it["last"] + 1, "updated": kept["created"]}, new
        )
        record = {**_whose(tenant_id, conversation_id, head["birth"]), "kind": "turn", "turn": kept}
        record |= {"number": head["last"], "created": kept["created"]}
        self._put(f"{head['birth']}-{head['last']:010}", record)
        return int(head["last"])

    def find(self, tenant_id: str, conversation_id: str) -> Conversation | None:
        head, _ = self._head(tenant_id, conversation_id)
        return self._conversation(head) if head else None

    def turns(self, tenant_id: str, conversation_id: str, *, last: int | None = None, after: int = 0) -> list[Turn]:
        later = {"range": {"number": {"gt": after}}}
        records = self._records(tenant_id, conversation_id, "turn", later, last=last)
        found = read_turns({**(hit.get("turn") or {}), "number": hit.get("number")} for hit in records)
        return sorted(found, key=lambda turn: turn.number)

    def conversations(self, tenant_id: str) -> list[Conversation]:
        wanted = [{"term": {"tenant": tenant_id}}, {"term": {"kind": "conversation"}}]
        found = [self._conversation(hit["_source"]) for hit in self._hits(wanted, by="created")]
        return sorted(found, key=lambda one: (-one.updated, one.id))

    def rename(self, tenant_id: str, conversation_id: str, title: str) -> bool:
        return self._changed(tenant_id, conversation_id, lambda _: {"title": plain_line(title, LONGEST_TITLE)}) != {}

    def delete(self, tenant_id: str, conversation_id: str) -> bool:
        gone = True
        with self.server.connected() as client:
            try:
                client.delete(index=self.index, id=_name(tenant_id, conversation_id), refresh=True)
            except NotFoundError:
                gone = False
        self._remove([{"term": {"tenant": tenant_id}}, {"term": {"conversation": conversation_id}}])
        return gone

    def nodes(self, tenant_id: str, conversation_id: str, *, vectors: bool = True) -> list[SummaryNode]:
        records = (hit.get("node") or {} for hit in self._records(tenant_id, conversation_id, "node"))
        return sorted(read_nodes({**node, "embedding": _vector(node) if vectors else b""} for node in records))

    def add_node(self, tenant_id: str, conversation_id: str, node: SummaryNode, *, birth: str) -> bool:
        first = self.turns(tenant_id, conversation_id, after=node.first_turn - 1)
        if not first or first[0].number != node.first_turn:
            return False
        kept = {**node._asdict(), "embedding": base64.b64encode(node.embedding).decode()}
        record = {**_whose(tenant_id, conversation_id, birth), "kind": "node", "node": kept}
        record |= {"number": node.first_turn, "level": node.level}
        if not self._put(f"{birth}-{node.level}-{node.first_turn:010}", record, op_type="create"):
            return False
        head, _ = self._head(tenant_id, conversation_id)
        if head and head["birth"] == birth:
            return True
        # Deleted meanwhile, perhaps before this record was there to be deleted.
        self._remove([*_terms(record), {"term": {"kind": "node"}}])
        return False

    def expire(self) -> None:
        old = {"range": {"created": {"lt": self._oldest()}}}
        newest: dict[tuple[str, str, str], int] = {}
        for turn in (hit["_source"] for hit in self._hits([{"term": {"kind": "turn"}}, old])):
            key = (turn["tenant"], turn["conversation"], turn["birth"])
            newest[key] = max(newest.get(key, 0), turn["number"])
        for key, number in newest.items():
            self._remove([*_terms(_whose(*key)), {"range": {"number": {"lte": number}}}])
            if not self.turns(*key[:2], last=1):
                self.delete(*key[:2])

    def _head(self, tenant_id: str, conversation_id: str) -> tuple[dict[str, Any] | None, dict[str, int]]:
        """Read a conversation's own record, and the condition that refuses a change if somebody else was faster."""
        with self.server.connected() as client:
            try:
                found = client.get(index=self.index, id=_name(tenant_id, conversation_id))
            except NotFoundError as error:
                if "found" not in error.body:  # the index is gone, and a write would make another one
                    raise
                return None, {}
        return found["_source"], {"if_seq_no": found["_seq_no"], "if_primary_term": found["_primary_term"]}

    def _put(self, name: str, record: dict[str, Any], **condition: Any) -> bool:
        """Write a record; False if its condition does not hold."""
        with self.server.connected() as client:
            try:
                client.index(index=self.index, id=name, document=record, refresh=True, **condition)
            except ConflictError:
                return False
        return True

    def _changed(
        self, tenant_id: str, conversation_id: str, change: Any, new: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Change a conversation's own record, or write the new one; without both do nothing."""
        for _ in range(_TRIES):
            head, unless = self._head(tenant_id, conversation_id)
            before = head or new
            if before is None:
                return {}
            changed = {**before, **change(before)}
            condition: dict[str, Any] = unless if head else {"op_type": "create"}
            if self._put(_name(tenant_id, conversation_id), changed, **condition):
                return changed
        raise StoreUnavailableError(f"{self.server.place}: too many write to one conversation at once. Try again.")

    def _conversation(self, head: dict[str, Any]) -> Conversation:
        query = {"bool": {"filter": [*_terms(head), {"term": {"kind": "turn"}}]}}
        with self.server.connected() as client:
            turns = self.server.whole(client.count(index=self.index, query=query))["count"]
        return Conversation(head["conversation"], head["title"], head["created"], head["updated"], turns, head["birth"])

    def _records(
        self, tenant_id: str, conversation_id: str, kind: str, *wanted: dict[str, Any], last: int | None = None
    ) -> list[dict[str, Any]]:
        """Find the records of a conversation that match, or of these the last so many."""
        head, _ = self._head(tenant_id, conversation_id)
        if head is None:
            return []
        found = self._hits([*_terms(head), {"term": {"kind": kind}}, *wanted], last=last)
        return [hit["_source"] for hit in found]

    def _hits(
        self, wanted: list[dict[str, Any]], *, by: str = "number", last: int | None = None, source: bool = True
    ) -> Iterator[dict[str, Any]]:
        """Find the records that match, from the highest down."""
        sort = [{by: "desc"}, {"level": {"order": "desc", "missing": -1}}, {"birth": "asc"}]
        page = _PAGE if last is None else max(1, min(_PAGE, last))
        query = {"bool": {"filter": wanted}}
        return islice(self._entries(query, sort=sort, page=page, source=source), last)

    def _remove(self, wanted: list[dict[str, Any]]) -> None:
        self._delete([hit["_id"] for hit in self._hits(wanted, source=False)])


def _vector(node: dict[str, Any]) -> bytes:
    with suppress(ValueError, TypeError):
        return base64.b64decode(node.get("embedding") or "")
    return b""


def _name(tenant_id: str, conversation_id: str) -> str:
    return text_hash(f"{tenant_id}\0{conversation_id}")


def _whose(tenant_id: str, conversation_id: str, birth: str) -> dict[str, Any]:
    return {"tenant": tenant_id, "conversation": conversation_id, "birth": birth}


def _terms(record: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"term": {name: record[name]}} for name in ("tenant", "conversation", "birth")]
