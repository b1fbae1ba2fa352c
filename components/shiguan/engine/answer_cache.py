"""Whole answers for who asks the same of the same library again: off unless a mode's file says for how long."""

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from pydantic import ValidationError

from shiguan import __version__
from shiguan.engine.library import Library
from shiguan.engine.options import AskOptions
from shiguan.engine.receipts import Receipt
from shiguan.llm.reply_cache import TenantCache
from shiguan.tenants import of_tenant

_ENDPOINT = ("OPENAI_BASE_URL", "OPENAI_MODEL")
_WORTH_KEEPING = ("answered", "partial")
_NOT_AGAIN = {
    "llm_calls": 0, "calls": [], "switches": [], "usage": {}, "budget": None, "generation_ms": None,
    "tokens_per_second": None,
}  # fmt: skip


class KeptAnswer:
    """
    The place of one answer in the cache of its tenant.

    What is kept is the receipt, which has the answer and a hash of both; `found` is the one that was kept, if it is
    whole. Without options there is no place, nor is there for the answer of a conversation, one with a budget, and one
    that came with a warning or a failed call. It reads the library and files: it belongs in a thread.
    """

    def __init__(
        self,
        cache: TenantCache,
        library: Callable[[], Library],
        query: str,
        options: AskOptions | None,
        stamp: dict[str, Any],
    ) -> None:
        self._cache, self._key = cache, ""
        self.found: Receipt | None = None
        if options is None or not cache.plan.answers:
            return
        given = options.given()
        if not {"conversation_id", "history", "budget"} & given.keys():
            models = [os.environ.get(name) for name in _ENDPOINT]
            parts = (__version__, stamp, models, library_version(library(), cache.tenant_id), query, given)
            self._key = cache.key("answer", *parts)
            with suppress(ValidationError):
                kept = Receipt.model_validate(cache.get(self._key))
                if kept.id == kept.own_id() and kept.tenant_id == cache.tenant_id:
                    self.found = kept
                    cache.hits["answers"] += 1

    def told_again(self, receipt: Receipt) -> dict[str, Any]:
        """Give the answer of a receipt; nothing was asked of a model for it this time."""
        answer = receipt.answer.model_dump(mode="json")
        again = {**_NOT_AGAIN, "receipt": receipt.id, "cache": dict(self._cache.hits), "timings_ms": {"total": 0.0}}
        answer["metadata"] |= again
        answer["metadata"]["warnings"] += self._cache.warnings
        return answer

    def keep(self, receipt: Receipt) -> None:
        """Keep an answer that nothing is wrong with."""
        if not self._key:
            return
        told = receipt.answer.model_dump()
        sound = not told["metadata"]["warnings"] and not any(call.get("failed") for call in receipt.calls)
        if sound and told["status"] in _WORTH_KEEPING:
            self._cache.keep("answers", self._key, receipt.model_dump(mode="json"))


def library_version(library: Library, tenant_id: str) -> list[Any]:
    """Tell all of a library that answers depend on: its passages, whose ids are of their texts, and its vectors."""
    owned, stores = of_tenant(tenant_id), library.stores
    return [sorted(stores["parents"].list_ids(owned)), stores["children"].count_by_file(owned)]
