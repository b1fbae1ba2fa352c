"""Reports the result of ingesting a file."""

from dataclasses import dataclass, field
from pathlib import Path

from haystack.core.errors import PipelineRuntimeError
from haystack.dataclasses import ByteStream

from shiguan.engine.pipeline_run import Results, value_at, warnings_of
from shiguan.errors import error_behind


@dataclass(frozen=True)
class IngestedFile:
    """The result of ingesting one file."""

    file: str
    sources: int = 0
    parents: int = 0
    children: int = 0
    new: int = 0
    vectors: int = 0
    missing: int = 0
    removed: int = 0
    skipped: list[dict[str, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def file_name(file: Path | ByteStream) -> str:
    """Return the name by which a file is recognized when it is ingested again."""
    return str(file.meta.get("file_name", "")) if isinstance(file, ByteStream) else str(file)


def failure_of(file: Path | ByteStream, error: PipelineRuntimeError) -> dict[str, str]:
    """Describe why a stage could not take a file; an error of our own is raised unchanged."""
    if (ours := error_behind(error)) is not None:
        raise ours
    reason = error.__cause__ or error
    return {
        "source": Path(file_name(file)).name,
        "stage": error.component_name or "unknown",
        "cause": f"the stage `{error.component_name}` failed: {type(reason).__name__}: {reason}",
        "next_step": "Run again; nothing that was in the library is lost",
    }


def ingested_file(file: Path | ByteStream, results: Results, outputs: dict[str, str]) -> IngestedFile:
    """Read the result of ingesting a file from the outputs of the index."""
    parents = value_at(results, outputs["parents"]) or []
    skipped = [entry for stage in results.values() for entry in stage.get("skipped", [])]
    return IngestedFile(
        file=file_name(file),
        sources=len({parent.meta["source_id"] for parent in parents}),
        parents=len(parents),
        children=len(value_at(results, outputs["children"]) or []),
        **{name: value_at(results, outputs[name]) or 0 for name in ("new", "vectors", "missing", "removed")},
        skipped=[{"source": Path(file_name(file)).name, **entry} for entry in skipped],
        warnings=warnings_of(results),
    )
