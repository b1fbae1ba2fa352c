"""What an answer leaves behind: all that is needed to say later how it came about, under a hash of its content."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Annotated, Any, Literal

from haystack import GeneratedAnswer
from pydantic import BaseModel, Field, NonNegativeInt

from shiguan import __version__
from shiguan.errors import RefusedError, StoreFullError
from shiguan.resources import utc_time

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
