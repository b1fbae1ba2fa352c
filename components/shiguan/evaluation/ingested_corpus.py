"""A library with exactly the documents that the questions are about."""

import json
from pathlib import Path
from typing import Any

from shiguan.errors import RefusedError
from shiguan.evaluation.json_lines import file_hash
from shiguan.evaluation.provenance import code_hash
from shiguan.library import Library, Progress
from shiguan.loading import pipeline_path

TENANT = "evaluation"
"""Whose library it is; nothing else is in it."""

_STAMP = "ingested.json"


def corpus_stamp(files: list[Path], deployment: str) -> dict[str, Any]:
    """Name what an ingested corpus hangs on."""
    return {
        "corpus": {file.name: file_hash(file) for file in files},
        "index": file_hash(pipeline_path(deployment, "index")),
        "code": code_hash("ingest", "stores"),
        "deployment": deployment,
    }


def ingest_corpus(files: list[Path], *, deployment: str, data_dir: Path, progress: Progress | None = None) -> list[str]:
    """Put the corpus into a data folder, unless an earlier run did."""
    stamp = corpus_stamp(files, deployment)
    begun, done = data_dir / f"{_STAMP}.begun", data_dir / _STAMP
    for path in (done, begun):
        if path.is_file():
            earlier = json.loads(path.read_text(encoding="utf-8"))
            if {key: earlier.get(key) for key in stamp} != stamp:
                changed = ", ".join(key for key in stamp if earlier.get(key) != stamp[key])
                raise RefusedError(
                    f"{data_dir} was made with another {changed}. Name another `--data-dir`, or remove the folder."
                )
            if path == done:
                return list(earlier["notes"])
    if not begun.is_file() and data_dir.is_dir() and any(data_dir.iterdir()):
        raise RefusedError(
            f"{data_dir} holds a library that no evaluation made; its other documents would be found too. Name an "
            "empty `--data-dir`, or leave it out."
        )
    data_dir.mkdir(parents=True, exist_ok=True)
    begun.write_text(json.dumps(stamp), encoding="utf-8")
    library = Library(deployment, data_dir=data_dir)
    notes: list[str] = []
    for result in library.ingest(files, tenant_id=TENANT, progress=progress):
        notes += [f"{entry['source']}: {entry['cause']}" for entry in result.skipped]
        notes += result.warnings
    if not library.count(tenant_id=TENANT):
        raise RefusedError(f"Nothing could be ingested from {files[0]}: {'; '.join(notes[:3]) or 'it has no text'}.")
    for store in library.stores.values():
        if hasattr(store, "close"):
            store.close()
    done.write_text(json.dumps({**stamp, "notes": notes}, ensure_ascii=False), encoding="utf-8")
    begun.unlink()
    return notes
