"""
Receipts of answers: all that is needed to show later how an answer came about, identified by a hash of the content.

A replay compares the passages of a receipt with the current library.
"""

import asyncio
import hashlib
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from haystack import Document, GeneratedAnswer
from pydantic import BaseModel, Field, NonNegativeInt, TypeAdapter, ValidationError

from shiguan import __version__
from shiguan.errors import RefusedError, StoreFullError
from shiguan.resources import utc_time
from shiguan.tenants import of_tenant, where

_LARGEST = 4 * 1024 * 1024


class ReadPassage(BaseModel, extra="forbid"):
    """A passage that was read: the span of the stored parent (all of it without `cut`), and the hash of its text."""

    number: int
    id: str
    sha256: str
    source: str = ""
    cut: tuple[NonNegativeInt, NonNegativeInt] | None = None
    kept: list[tuple[NonNegativeInt, NonNegativeInt]] = []
    summary: str | None = None


class CitedSpan(BaseModel, extra="allow"):
    """A citation of the answer object: the fields that a replay reads, and any others."""

    number: int
    parent_id: str
    source: str
    section: list[str]
    start: NonNegativeInt
    end: NonNegativeInt
    quote: str


class ShownAnswer(BaseModel, extra="allow"):
    """The answer object without the text of its passages: the fields that a replay reads, and any others."""

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


def receipt_of(answer: GeneratedAnswer, shown: dict[str, Any], **run: Any) -> Receipt:
    """Create the receipt of an answer; `shown` is its answer object, `run` has the remaining fields."""
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
        "calls": shown["metadata"]["calls"],
        "grading": meta.get("grounding") or {},
        # Copied, because the receipt's id is added to the answer's metadata afterwards.
        "answer": {**shown, "metadata": dict(shown["metadata"])},
        **run,
    }
    receipt = Receipt.model_validate(data)
    return receipt.model_copy(update={"id": receipt.own_id()})


async def write_receipt(
    answer: GeneratedAnswer,
    shown: dict[str, Any],
    keep: Callable[[Receipt], None] | None,
    about: dict[str, Any],
) -> None:
    """Keep the receipt of an answer and add its id to the answer; a failure only adds a warning."""
    metadata = shown["metadata"]
    try:
        receipt = receipt_of(answer, shown, **about)
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
        self._owned = partial(of_tenant, tenant_id)
        self._read = {passage.id: passage for passage in receipt.passages}
        ids = sorted({*self._read, *(citation.parent_id for citation in receipt.answer.citations)})
        self._found = {parent.id: parent for parent in self._where("id", "in", ids)} if ids else {}

    @property
    def is_stale(self) -> bool:
        """Whether a passage that the answer cites has changed or is gone."""
        cited = (citation for citation in self.receipt.answer.citations if not _is_outside(citation))
        return not all(_stands(self._found.get(citation.parent_id), citation) for citation in cited)

    @property
    def lost(self) -> list[int]:
        return [read.number for read in self.receipt.passages if _as_read(self._found.get(read.id), read) is None]

    def citations(self) -> list[dict[str, Any]]:
        """
        Return each citation with its `state`, and `now`, where its words are if that is another place.

        `stands`: the words are where they were; `moved`: they are in another passage or span; `changed`: the source is
        there without them; `gone`; `outside`: a tool found them outside the library, so they cannot be checked.
        """
        citations = self.receipt.answer.citations
        entries = [{**citation.model_dump(), "state": "stands", "now": None} for citation in citations]
        pairs = zip(entries, citations, strict=True)
        lost = [(entry, cited) for entry, cited in pairs if not _stands(self._found.get(cited.parent_id), cited)]
        for entry, cited in lost:
            entry["state"] = "outside" if _is_outside(cited) else "gone"
        lost = [(entry, cited) for entry, cited in lost if not _is_outside(cited)]
        names = {meta.get("source") for meta in self._parents.list_meta(self._owned(), ["source"])} if lost else set()
        own = {cited.source for _, cited in lost}
        # Source by source, so that a large library is never in memory. In sources other than the cited ones only whole
        # passages count: a few words may occur there by chance.
        for name in sorted(names - {None}, key=lambda name: (name not in own, name)):
            parents = self._where("meta.source", "==", name)
            for entry, cited in lost:
                if entry["now"] is None:
                    entry["now"] = self._place_of(cited, parents, whole=name != cited.source)
                    if entry["now"] is not None or name == cited.source:
                        entry["state"] = "changed" if entry["now"] is None else "moved"
        return entries

    def _where(self, field: str, operator: str, value: Any) -> list[Document]:
        found = self._parents.filter_documents(self._owned(where(field, operator, value)))
        return sorted(found, key=lambda parent: parent.meta.get("position", 0))

    def _place_of(self, citation: CitedSpan, parents: list[Document], *, whole: bool) -> dict[str, Any] | None:
        """Find the words of a citation in the same passage or, unless only whole passages count, in another one."""
        passage = self._read.get(citation.parent_id)
        for parent in parents:
            if passage and _stands(parent, citation) and _as_read(parent, passage) is not None:
                return _place(parent, citation, citation.start)
        for parent in () if whole or not citation.quote else parents:
            if citation.quote in (parent.content or ""):
                return _place(parent, citation, (parent.content or "").index(citation.quote))
        return None


def _is_outside(citation: CitedSpan) -> bool:
    return getattr(citation, "origin", None) == "tool"


def _stands(parent: Document | None, citation: CitedSpan) -> bool:
    return parent is not None and (parent.content or "")[citation.start : citation.end] == citation.quote


def _as_read(parent: Document | None, passage: ReadPassage) -> str | None:
    text = (parent.content or "") if parent else ""
    stretch = text if passage.cut is None else text[passage.cut[0] : passage.cut[1]]
    return stretch if parent and text_sha256(stretch) == passage.sha256 else None


def _place(parent: Document, citation: CitedSpan, start: int) -> dict[str, Any]:
    place = {name: parent.meta.get(name) for name in ("source", "section")}
    return {"parent_id": parent.id, **place, "start": start, "end": start + len(citation.quote)}
