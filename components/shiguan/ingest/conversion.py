"""Converts files to documents, in a process of its own with limits of time and memory."""

import json
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shiguan.limited_process import LimitError, Limits, run_limited, start_process

if TYPE_CHECKING:
    from haystack.dataclasses import ByteStream

# The limits per file, and per megabyte or byte of it: seconds of a processor, and bytes of memory. The slowest honest
# books take a tenth of either.
_SECONDS, _SECONDS_PER_MB = 8, 10
_MEMORY, _MEMORY_PER_BYTE = 768 * 1024**2, 16
# The answer is held by the library's own process; 30 times a book's bytes is already a lot.
_ANSWER, _ANSWER_PER_BYTE = 32 * 1024**2, 64
_NEXT_STEP = "Check where the file comes from; if it is an honest one, split it, or report the fault"
# Haystack's converters only log a file that they cannot read.
_NO_TEXT = {
    "cause": "no text was found in it",
    "next_step": "If its pages are pictures, run text recognition (OCR) on it; else check that it holds running text",
}


class Conversion:
    """
    Reads files with the converters of an index, so that a hostile file cannot stop or fill the library's process.

    The other process reads the file itself and sends back JSON: texts, plain meta, and the converters' reports.
    """

    def __init__(self, definition: dict[str, Any]) -> None:
        """Start the process; `definition` is a pipeline with `sources` in its inputs and `documents` in its outputs."""
        self._definition = json.dumps(definition)
        start_process(_pipeline, self._definition)

    def convert(self, source: "Path | ByteStream", waiting: Callable[[], None]) -> dict[str, Any]:
        """Convert a file; `waiting` is called repeatedly meanwhile, and stops the work by raising."""
        size = _size(source)
        limits = Limits(
            seconds=_SECONDS + _SECONDS_PER_MB * size / 1_000_000,
            memory=_MEMORY + _MEMORY_PER_BYTE * size,
            answer=_ANSWER + _ANSWER_PER_BYTE * size,
        )
        given, ready = (self._definition, source), (_pipeline, self._definition)
        try:
            answer: dict[str, Any] = run_limited(_converted, *given, limits=limits, prepare=ready, waiting=waiting)
        except LimitError as error:
            return _failed(f"reading it {error}")
        return answer


def _size(source: "Path | ByteStream") -> int:
    if not isinstance(source, Path):
        return len(source.data)
    try:
        return source.stat().st_size
    except (OSError, ValueError):
        return 0  # the inspector reports what is wrong with it


def _failed(cause: str, stage: str = "") -> dict[str, Any]:
    fault = {"cause": cause, "next_step": _NEXT_STEP}
    return {"documents": [], "skipped": [fault | ({"stage": stage} if stage else {})], "warnings": []}


# ---- the functions below run in the other process --------------------------------------------------------------------


@lru_cache(maxsize=1)
def _pipeline(definition: str) -> Any:
    import logging  # noqa: PLC0415

    # Haystack imports torch if it is installed, which takes three seconds and 150 MB that reading files does not need.
    sys.modules.setdefault("torch", None)  # type: ignore[arg-type]
    from haystack import Pipeline  # noqa: PLC0415

    from shiguan.haystack_compat import allow_types  # noqa: PLC0415

    # The converters' reports on a file come back with its documents.
    logging.disable(logging.ERROR)
    content = json.loads(definition)
    allow_types(content["components"])
    return Pipeline.from_dict(content)


def _converted(definition: str, source: "Path | ByteStream") -> dict[str, Any]:
    try:
        pipeline = _pipeline(definition)
        data: dict[str, dict[str, Any]] = {}
        for target in pipeline.metadata["inputs"]["sources"]:
            component, socket = target.split(".")
            data.setdefault(component, {})[socket] = [source]
        results = pipeline.run(data, include_outputs_from=set(pipeline.graph.nodes))
    except Exception as error:
        reason = error.__cause__ or error
        if isinstance(reason, MemoryError):
            raise
        stage = getattr(error, "component_name", None) or "conversion"
        return _failed(f"the stage `{stage}` failed: {type(reason).__name__}: {reason}", stage)
    sender, socket = pipeline.metadata["outputs"]["documents"].split(".")
    documents = results.get(sender, {}).get(socket, [])
    found = [
        (document.id, document.content, document.meta) for document in documents if (document.content or "").strip()
    ]
    skipped, warnings = (
        [entry for stage in results.values() for entry in stage.get(kind, [])] for kind in ("skipped", "warnings")
    )
    return {"documents": found, "skipped": skipped if found or skipped else [_NO_TEXT], "warnings": warnings}
