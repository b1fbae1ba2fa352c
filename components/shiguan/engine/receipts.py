"""
Receipts of answers: all that is needed to show later how an answer came about, identified by a hash of the content.

A replay compares the passages of a receipt with the current library.
"""

import asyncio
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from haystack import Document, GeneratedAnswer
from pydantic import BaseModel, Field, NonNegativeInt, TypeAdapter, ValidationError

from shiguan import __version__
from shiguan.errors import RefusedError, StoreFullError
from shiguan.resources import utc_time
from shiguan.tenants import of_tenant, where

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
    """
    How one answer came about; `id` is the SHA-256 of everything else.

    `prompt` has the meta that `PromptFileBuilder` adds, empty if no prompt was sent, and the messages if prompts are
    kept; `calls` are those of language models, as in the answer's metadata; `grading` has the attempts, removals and
    choices of a mode that grades its answers.
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
    answer: ShownAnswer

    def require_tenant(self, tenant_id: str) -> None:
        """Raise an error for a tenant that did not ask the question."""
        if self.tenant_id != tenant_id:
            raise RefusedError("The receipt is of another tenant. Name the one that asked with `--tenant`.")

    @property
    def messages(self) -> list[dict[str, str]]:
        """The prompt, as role and text; none where no model was asked or prompts were not kept."""
        rendered = self.prompt.get("prompt_rendered")
        found = rendered.get("messages") if isinstance(rendered, dict) else None
        try:
            messages = TypeAdapter(list[dict[str, str]]).validate_python(found or [])
            return [{"role": message["role"], "text": message["text"]} for message in messages]
        except (ValidationError, KeyError):
            return []

    def own_id(self) -> str:
        return text_sha256(json.dumps({**self.model_dump(mode="json"), "id": ""}, sort_keys=True))


def text_sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


async def write_receipt(
    answer: GeneratedAnswer, shown: dict[str, Any], keep: Callable[[Receipt], None] | None, **run: Any
) -> None:
    """
    Make the receipt of an answer, keep it, and add its id to the answer object `shown`; a failure only adds a warning.

    `run` has the fields that neither the answer nor its object has.
    """
    metadata = shown["metadata"]
    passages = [
        {
            "number": place,
            **{name: value for name, value in document.meta.items() if name in ReadPassage.model_fields},
            "id": document.id,
            "sha256": text_sha256(document.content or ""),
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
        metadata["warnings"].append(f"The receipt of this answer could not be kept ({why}); the answer is whole.")
    metadata.setdefault("receipt", None)


def read_receipt(path: Path) -> Receipt:
    """Read a receipt from a file, which may be a server's reply, and check its content against its id."""
    what = "Expected a file that `shiguan ask --receipt FILE` wrote, or the reply of GET /api/v1/receipts/{id}."
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            raise RefusedError(f"{path} is not a file of at most {_LARGEST // 1024 // 1024} MiB. {what}")
        data = json.loads(path.read_bytes())
        receipt = Receipt.model_validate(data["receipt"] if isinstance(data, dict) and "receipt" in data else data)
        written = receipt.own_id()
    except (OSError, ValueError, RecursionError) as error:  # messages may quote the file, so they are not shown
        raise RefusedError(f"{path} is not a receipt of version 1 that can be read. {what}") from error
    if receipt.id != written:
        raise RefusedError(f"{path} is not as it was written: its content does not have the id that it names. {what}")
    return receipt


class Replay:
    """Compares a receipt with the passages of one tenant; passages of other tenants are not found."""

    def __init__(self, receipt: Receipt, parents: Any, *, tenant_id: str) -> None:
        self.receipt = receipt
        self._parents = parents
        self._tenant_id = tenant_id
        self._read = {passage.id: passage for passage in receipt.passages}
        ids = sorted({*self._read, *(citation.parent_id for citation in receipt.answer.citations)})
        self._found = {parent.id: parent for parent in self._where("id", "in", ids)} if ids else {}

    @property
    def is_stale(self) -> bool:
        """Whether a passage that the answer cites has changed or is gone."""
        return any(self._state(citation) == "gone" for citation in self.receipt.answer.citations)

    @property
    def lost(self) -> list[int]:
        return [read.number for read in self.receipt.passages if not _is_as_read(self._found.get(read.id), read)]

    def citations(self) -> list[dict[str, Any]]:
        """
        Return each citation with its `state`, and `now`, where its words are if that is another place.

        `stands`: the words are where they were; `moved`: they are in another passage or span; `changed`: the source is
        there without them; `gone`; `outside`: a tool found them outside the library, so they cannot be checked.
        """
        citations = self.receipt.answer.citations
        entries = [{**cited.model_dump(), "state": self._state(cited), "now": None} for cited in citations]
        lost = [pair for pair in zip(entries, citations, strict=True) if pair[0]["state"] == "gone"]
        owned = of_tenant(self._tenant_id)
        names = {meta.get("source") for meta in self._parents.list_meta(owned, ["source"])} if lost else set()
        own = {cited.source for _, cited in lost}
        # Source by source, so that a large library is never in memory; the cited ones first.
        for name in sorted(names - {None}, key=lambda name: (name not in own, name)):
            parents = self._where("meta.source", "==", name)
            for entry, cited in lost:
                if entry["now"] is None:
                    entry["now"] = self._place_of(cited, parents)
                    if entry["now"] is not None or name == cited.source:
                        entry["state"] = "changed" if entry["now"] is None else "moved"
        return entries

    def _state(self, citation: CitedSpan) -> str:
        if citation.other("origin", str) == "tool":
            return "outside"
        return "stands" if _stands(self._found.get(citation.parent_id), citation) else "gone"

    def _where(self, field: str, operator: str, value: Any) -> list[Document]:
        found = self._parents.filter_documents(of_tenant(self._tenant_id, where(field, operator, value)))
        return sorted(found, key=lambda parent: parent.meta.get("position", 0))

    def _place_of(self, citation: CitedSpan, parents: list[Document]) -> dict[str, Any] | None:
        """
        Find the words of a citation in the passages of one source: in the same passage, or in another one.

        In sources other than the cited one only the whole passage counts: a few words may occur there by chance.
        """
        passage = self._read.get(citation.parent_id)
        for parent in parents:
            if passage and _stands(parent, citation) and _is_as_read(parent, passage):
                return _place(parent, citation, citation.start)
        for parent in parents:
            same = parent.meta.get("source") == citation.source
            if same and citation.quote and (at := (parent.content or "").find(citation.quote)) >= 0:
                return _place(parent, citation, at)
        return None


def _stands(parent: Document | None, citation: CitedSpan) -> bool:
    return parent is not None and (parent.content or "")[citation.start : citation.end] == citation.quote


def _is_as_read(parent: Document | None, passage: ReadPassage) -> bool:
    return (
        parent is not None and text_sha256((parent.content or "")[slice(*passage.cut or (0, None))]) == passage.sha256
    )


def _place(parent: Document, citation: CitedSpan, start: int) -> dict[str, Any]:
    place = {name: parent.meta.get(name) for name in ("source", "section")}
    return {"parent_id": parent.id, **place, "start": start, "end": start + len(citation.quote)}
