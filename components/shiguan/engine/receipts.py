"""
What an answer leaves behind: all that is needed to say later how it came about, under a hash of its content.

A mode whose file says for how long gives whoever asks the same of the same library the answer of a kept receipt.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from pathlib import Path
from typing import Annotated, Any, Literal

from haystack import GeneratedAnswer
from pydantic import BaseModel, Field, NonNegativeInt, ValidationError

from shiguan import __version__
from shiguan.engine.library import Library
from shiguan.engine.options import AskOptions
from shiguan.errors import RefusedError, StoreFullError
from shiguan.llm.reply_cache import TenantCache
from shiguan.resources import utc_time
from shiguan.tenants import of_tenant

_LARGEST = 4 * 1024 * 1024


class ReadPassage(BaseModel, extra="forbid"):
    """A passage that was read: which span of the stored parent (all without `cut`), and the hash of its text."""

    number: int
    id: str
    sha256: str
    source: str = ""
    cut: tuple[NonNegativeInt, NonNegativeInt] | None = None
    kept: list[tuple[NonNegativeInt, NonNegativeInt]] = []
    summary: str | None = None


class CitedSpan(BaseModel, extra="allow"):
    """A citation of the answer object: what a replay reads of it, and whatever else it has."""

    number: int
    parent_id: str
    source: str
    section: list[str]
    start: NonNegativeInt
    end: NonNegativeInt
    quote: str


class ToldAnswer(BaseModel, extra="allow"):
    """The answer object as it was given: what a replay reads of it, and whatever else it has."""

    query: str
    mode: str
    status: str
    citations: Annotated[list[CitedSpan], Field(max_length=1000)]


class Receipt(BaseModel, extra="forbid"):
    """
    How one answer came about; `id` is the SHA-256 of everything else.

    `prompt` has the marks of `PromptFileBuilder`, empty if none was sent; `calls` are those of language models, as in
    the answer's metadata; `grading` is what a mode that grades itself tried, took out and chose.
    """

    version: Literal[1]
    id: str = ""
    written: str
    shiguan: str
    tenant_id: str
    deployment: str
    mode_sha256: str
    parameters: dict[str, Any]
    prompt: dict[str, Any]
    passages: Annotated[list[ReadPassage], Field(max_length=1000)]
    calls: list[dict[str, Any]]
    grading: dict[str, Any]
    answer: ToldAnswer

    def own_id(self) -> str:
        return text_sha256(json.dumps({**self.model_dump(mode="json"), "id": ""}, sort_keys=True))


def text_sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def receipt_of(answer: GeneratedAnswer, told: dict[str, Any], **run: Any) -> Receipt:
    """Write the receipt of an answer; `told` is the answer object that it becomes, `run` has the remaining fields."""
    meta = answer.meta
    data = {
        "version": 1,
        "written": utc_time(),
        "shiguan": __version__,
        "prompt": {name: value for name, value in meta.items() if name.startswith("prompt")},
        "passages": [
            {
                "number": place,
                **{name: value for name, value in document.meta.items() if name in ReadPassage.model_fields},
                "id": document.id,
                "sha256": text_sha256(document.content or ""),
            }
            for place, document in enumerate(answer.documents, start=1)
        ],
        "calls": told["metadata"]["calls"],
        "grading": meta.get("grounding") or {},
        "answer": deepcopy(told),
        **run,
    }
    receipt = Receipt.model_validate(data)
    return receipt.model_copy(update={"id": receipt.own_id()})


@contextmanager
def receipt_warning(metadata: dict[str, Any]) -> Iterator[None]:
    """Let a receipt that cannot be made or kept cost a warning and not the answer."""
    try:
        yield
    except (OSError, StoreFullError, ValueError, TypeError) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        metadata["warnings"].append(f"The receipt of this answer could not be kept ({why}); the answer is whole.")


def read_receipt(path: Path) -> Receipt:
    """Read a receipt from a file, also from the reply in which a server gave it, and hold it against its id."""
    what = "Expected a file that `shiguan ask --receipt FILE` wrote, or the reply of GET /api/v1/receipts/{id}."
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            raise RefusedError(f"{path} is no file of at most {_LARGEST // 1024 // 1024} MiB. {what}")
        data = json.loads(path.read_bytes())
        receipt = Receipt.model_validate(data["receipt"] if isinstance(data, dict) and "receipt" in data else data)
        written = receipt.own_id()
    except (OSError, ValueError, RecursionError) as error:  # their words are the file's own, and are not printed
        raise RefusedError(f"{path} is no receipt of version 1 that can be read. {what}") from error
    if receipt.id != written:
        raise RefusedError(f"{path} is not as it was written: its content does not have the id that it names. {what}")
    return receipt


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
