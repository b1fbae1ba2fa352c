"""Sizes of passages to be compared, and libraries made with them."""

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

import yaml
from bench.quality.retrieval_bars import stamped_folder

from shiguan.engine.library import Library
from shiguan.engine.loading import pipeline_path
from shiguan.evaluation.provenance import TENANT
from shiguan.ingest import parent_child_splitter
from shiguan.ingest.passages import Passage, PassageSizes, cut_passages
from shiguan.models.token_counter import TokenCounter
from shiguan.text.sentences import sentence_spans


@dataclass(frozen=True)
class Cut:
    """
    One way to cut documents.

    :param name: How the table calls it.
    :param folder: Where its libraries are kept.
    :param sizes: Parameters of `ParentChildSplitter` that differ from `index.yml`.
    :param overlap: Whether a child begins with the last sentence of the one before it.
    """

    name: str
    folder: str
    sizes: dict[str, int] = field(default_factory=dict)
    overlap: bool = False


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
OVERLAPPING_CUT = Cut("the same, children overlap by a sentence", "overlap", overlap=True)


def overlapping(texts: Sequence[str], counter: TokenCounter, sizes: PassageSizes) -> list[list[Passage]]:
    """Cut as the splitter does; then let every child but a parent's first begin with the last sentence before it."""
    return [
        [passage._replace(children=_with_sentence_before(text, passage.children)) for passage in passages]
        for text, passages in zip(texts, cut_passages(texts, counter, sizes), strict=True)
    ]


def _with_sentence_before(text: str, children: list[tuple[int, int]]) -> list[tuple[int, int]]:
    begun = [start + sentence_spans(text[start:end])[-1][0] for (start, end), _ in pairwise(children)]
    return [children[0], *((start, end) for start, (_, end) in zip(begun, children[1:], strict=True))]


def library_of(files: list[Path], cut: Cut, keep: Path) -> Path:
    """
    Ingest files with a cut, unless a run with the same files, cut and code has done so.

    :param files: What is ingested.
    :param cut: The sizes.
    :param keep: Where the libraries are kept.
    :returns: The library's folder.
    :raises RuntimeError: If a file gave nothing.
    """
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
        # No parameter of the splitter: it would be one only if the table said so.
        with patch.object(parent_child_splitter, "cut_passages", overlapping if cut.overlap else cut_passages):
            for result in library.ingest(files, tenant_id=TENANT):
                if not result.sources:
                    raise RuntimeError(f"{result.file} gave nothing: {result.skipped}")
        for store in library.stores.values():
            store.close()
    done.touch()
    return data_dir
