"""Sizes of passages to be compared, and libraries made with them."""

import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import yaml
from bench.quality.retrieval_bars import stamped_folder

from shiguan.engine.library import Library
from shiguan.engine.loading import pipeline_path
from shiguan.evaluation.provenance import TENANT


@dataclass(frozen=True)
class Cut:
    """One way to cut documents."""

    name: str
    folder: str
    sizes: dict[str, int] = field(default_factory=dict)


def _sizes(parent: tuple[int, int], child: tuple[int, int]) -> dict[str, int]:
    return {
        "parent_min_tokens": parent[0],
        "parent_max_tokens": parent[1],
        "child_min_tokens": child[0],
        "child_max_tokens": child[1],
    }


DEFAULT_CUT = Cut("parents 300-800, children 50-150", "default")
CUTS = (
    DEFAULT_CUT,
    # One size for what is matched and what is read: the plain chunks of most systems.
    Cut("chunks of 64-128", "chunks-128", _sizes((64, 128), (64, 128))),
    Cut("chunks of 192-256", "chunks-256", _sizes((192, 256), (192, 256))),
    Cut("chunks of 384-512", "chunks-512", _sizes((384, 512), (384, 512))),
    Cut("parents 300-800, children 25-75", "small-children", _sizes((300, 800), (25, 75))),
    Cut("parents 300-800, children 100-250", "large-children", _sizes((300, 800), (100, 250))),
    Cut("parents 150-400, children 50-150", "small-parents", _sizes((150, 400), (50, 150))),
)


def library_of(files: list[Path], cut: Cut, keep: Path) -> Path:
    """Ingest files with a cut, unless a run with the same files, cut and code has done so."""
    data_dir = stamped_folder(keep / cut.folder, files)
    done = data_dir / "ingested"
    if done.exists():
        return data_dir
    definition = yaml.safe_load(pipeline_path("embedded", "index").read_text(encoding="utf-8"))
    definition["components"]["splitter"]["init_parameters"] |= cut.sizes
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, SHIGUAN_PIPELINES_DIR=folder):
        index = Path(folder) / "embedded" / "index.yml"
        index.parent.mkdir()
        index.write_text(yaml.safe_dump(definition, sort_keys=False, allow_unicode=True), encoding="utf-8")
        library = Library("embedded", data_dir=data_dir)
        for result in library.ingest(files, tenant_id=TENANT):
            if not result.sources:
                raise RuntimeError(f"{result.file} gave nothing: {result.skipped}")
        for store in library.stores.values():
            store.close()
    done.touch()
    return data_dir
