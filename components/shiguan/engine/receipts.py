"""Receipts of answers: what is needed to show later how an answer came about, identified by a hash of the content."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from haystack import GeneratedAnswer
from pydantic import BaseModel, Field, NonNegativeInt

from shiguan import __version__
from shiguan.errors import RefusedError, StoreFullError
from shiguan.resources import text_hash, utc_time
from shiguan.tenants import documents_by_id, of_tenant, where

_LARGEST = 4 * 1024 * 1024

Value = TypeVar("Value")


class ReadPassage(BaseModel, extra="forbid"):
    """A passage that was read: the span of the stored parent (all of it without `cut`), and the hash of its text."""

    number: int
    id: str
    sha256: str
    source: str = ""
    cut: tuple[NonNegativeInt, NonNegativeInt] | None = None
    kept: list[tuple[NonNegativeInt, NonNegativeInt]] = []
    summary: str | None = None
    summed_up: str | None = None


class _Open(BaseModel, extra="allow"):
    """A part of the answer object: the fields that a replay reads, and any others, which may be of any type."""

    def other(self, name: str, kind: type[Value]) -> Value | None:
        """Return one of the others if it is of this type, since a receipt may be anybody's file."""
        value = (self.model_extra or {}).get(name)
        return value if isinstance(value, kind) else None


class CitedSpan(_Open):
    """A citation."""

    number: int
    parent_id: str
    source: str
    section: list[str]
    start: NonNegativeInt
    end: NonNegativeInt
    quote: str


class ShownAnswer(_Open):
    """The answer object without the text of its passages."""

    query: str
    mode: str
    status: str
    citations: Annotated[list[CitedSpan], Field(max_length=1000)]


class Receipt(BaseModel, extra="forbid"):
    """How one answer came about; `id` is the SHA-256 of everything else. docs/receipts.md describes the fields."""

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
    answer: ShownAnswer

    def require_tenant(self, tenant_id: str) -> None:
        """Raise an error for a tenant that did not ask the question."""
        if self.tenant_id != tenant_id:
            raise RefusedError("The receipt is of another tenant. Name the one that asked with `--tenant`.")

    def own_id(self) -> str:
        return text_hash(json.dumps({**self.model_dump(mode="json"), "id": ""}, sort_keys=True))


async def write_receipt(
    answer: GeneratedAnswer, shown: dict[str, Any], keep: Callable[[Receipt], None] | None, **run: Any
) -> None:
    """Keep the receipt of an answer and add its id to the object `shown`, or a warning; `run` has the other fields."""
    metadata = shown["metadata"]
    passages = [
        {
            "number": place,
            **{name: value for name, value in document.meta.items() if name in ReadPassage.model_fields},
            "id": document.id,
            "sha256": text_hash(document.content or ""),
        }
        for place, document in enumerate(answer.documents, start=1)
    ]
    fields = {
        "version": 1,
        "written": utc_time(),
        "shiguan": __version__,
        "prompt": {name: value for name, value in answer.meta.items() if name.startswith("prompt")},
        "passages": passages,
        "calls": metadata["calls"],
        "grading": answer.meta.get("grounding") or {},
        # Copied, because the receipt's id is added to the answer's metadata afterwards.
        "answer": {**shown, "metadata": dict(metadata)},
        **run,
    }
    try:
        receipt = Receipt.model_validate(fields)
        receipt.id = receipt.own_id()
        metadata["receipt"] = receipt.id
        if keep is not None:
            await asyncio.to_thread(keep, receipt)
    except (OSError, StoreFullError, ValueError, TypeError) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        metadata["warnings"].append(f"The receipt of this answer could not be kept ({why}); the answer is complete.")
    metadata.setdefault("receipt", None)


def read_receipt(path: Path) -> Receipt:
    """Read a receipt from a file, which may be a server's reply, and check its content against its id."""
    what = "Expected a file that `shiguan ask --receipt FILE` wrote, or the reply of GET /api/v1/receipts/{id}."
    try:
        if not path.is_file():
            raise RefusedError(f"{path} does not exist. {what}")
        if path.stat().st_size > _LARGEST:
            raise RefusedError(f"{path} is not a file of at most {_LARGEST // 1024 // 1024} MiB. {what}")
        data = json.loads(path.read_bytes())
        receipt = Receipt.model_validate(data["receipt"] if isinstance(data, dict) and "receipt" in data else data)
        written = receipt.own_id()
    except (OSError, ValueError, RecursionError) as error:  # messages may quote the file, so they are not shown
        raise RefusedError(f"{path} is not a receipt of version 1 that can be read. {what}") from error
    if receipt.id != written:
        raise RefusedError(f"{path} is not as it was written: its content does not have the id that it names. {what}")
    return receipt


def replay(receipt: Receipt, parents: Any, *, tenant_id: str) -> list[str]:
    """Return for each citation whether its source `stands`, is `gone`, or is `outside` the library, found by a tool."""
    citations = receipt.answer.citations
    found = documents_by_id(parents, {citation.parent_id for citation in citations}, tenant_id)
    read = {name: parent.content or "" for name, parent in found.items()}
    now: dict[str, list[str]] = {}
    states = []
    for citation in citations:
        state, quote = "gone", citation.quote
        if citation.other("origin", str) == "tool":
            state = "outside"
        elif quote and read.get(citation.parent_id, "")[citation.start : citation.end] == quote:
            state = "stands"
        elif quote:
            if citation.source not in now:
                of_source = of_tenant(tenant_id, where("meta.source", "==", citation.source))
                now[citation.source] = [parent.content or "" for parent in parents.filter_documents(of_source)]
            state = "stands" if any(quote in text for text in now[citation.source]) else "gone"
        states.append(state)
    return states
