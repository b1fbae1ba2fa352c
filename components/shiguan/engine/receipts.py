"""What an answer leaves behind: all that is needed to say later how it came about, under a hash of its content."""

import hashlib
import json
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from haystack import GeneratedAnswer
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt

from shiguan import __version__
from shiguan.errors import RefusedError

_LARGEST = 4 * 1024 * 1024


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")


class ReadPassage(_Part):
    """A passage that was read: which span of the stored parent (all without `cut`), and the hash of its text."""

    number: int
    id: str
    source: str
    sha256: str
    cut: tuple[NonNegativeInt, NonNegativeInt] | None
    kept: list[tuple[NonNegativeInt, NonNegativeInt]]
    summary: str | None


class CitedSpan(_Part):
    """A citation of the answer object: what a replay reads of it, and whatever else it has."""

    number: int
    parent_id: str
    source: str
    section: list[str]
    start: NonNegativeInt
    end: NonNegativeInt
    quote: str


class ToldAnswer(_Part):
    """The answer object as it was given: what a replay reads of it, and whatever else it has."""

    query: str
    mode: str
    status: str
    citations: Annotated[list[CitedSpan], Field(max_length=1000)]


class SentPrompt(_Part):
    """The prompt that the answer was written from: names, hashes, and the variables beside the passages."""

    name: str
    hash: str
    layers: dict[str, str]
    variables: dict[str, str]
    sha256: str


class Receipt(_Part):
    """
    How one answer came about; `id` is the SHA-256 of everything else.

    `calls` are the calls of language models that gave a reply, `role` the stage that asked. `grading` is what a mode
    that grades itself tried, took out and chose.
    """

    version: Literal[1]
    id: str = ""
    written: str
    shiguan: str
    tenant_id: str
    deployment: str
    mode_sha256: str
    parameters: dict[str, Any]
    prompt: SentPrompt | None
    passages: Annotated[list[ReadPassage], Field(max_length=1000)]
    calls: list[dict[str, Any]]
    grading: dict[str, Any]
    answer: ToldAnswer

    def own_id(self) -> str:
        """Hash the content."""
        return text_sha256(json.dumps({**self.model_dump(mode="json"), "id": ""}, sort_keys=True))


def text_sha256(text: str) -> str:
    """Hash a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def receipt_of(answer: GeneratedAnswer, told: dict[str, Any], **run: Any) -> Receipt:
    """Write the receipt of an answer; `told` is the answer object that it becomes, `run` has the remaining fields."""
    meta = answer.meta
    prompt = {"name": meta.get("prompt"), "hash": meta.get("prompt_hash"), "layers": meta.get("prompt_layers", {})}
    passages = [
        {
            "number": document.meta.get("number", place),
            "id": document.id,
            "source": document.meta.get("source", ""),
            "sha256": text_sha256(document.content or ""),
            **{name: document.meta.get(name) for name in ("cut", "summary")},
            "kept": document.meta.get("kept") or [],
        }
        for place, document in enumerate(answer.documents, start=1)
    ]
    data = {
        "version": 1,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "shiguan": __version__,
        "prompt": {**prompt, **meta["prompt_rendered"]} if "prompt_rendered" in meta else None,
        "passages": passages,
        "grading": meta.get("grounding") or {},
        "answer": deepcopy(told),
        **run,
    }
    receipt = Receipt.model_validate(data)
    return receipt.model_copy(update={"id": receipt.own_id()})


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
