from dataclasses import replace

import pytest
from tests.components.commands.conftest import shiguan  # noqa: F401  a fixture

from shiguan.engine import loading
from shiguan.ingest.e5_document_embedder import E5DocumentEmbedder

VECTOR = [1.0] + [0.0] * 383


@pytest.fixture
def quick_vectors(monkeypatch):
    """Let the embedder give every text the same vector, without its model."""

    def run(_, documents):
        return {"documents": [replace(document, embedding=VECTOR) for document in documents]}

    monkeypatch.setattr(E5DocumentEmbedder, "warm_up", lambda _: None)
    monkeypatch.setattr(E5DocumentEmbedder, "run", run)
    monkeypatch.setattr(E5DocumentEmbedder, "identity", "intfloat/multilingual-e5-small, of a test")


@pytest.fixture
def write_mode(tmp_path, monkeypatch):
    """Write a mode of the deployment `here`, the only one that there is."""
    folder = tmp_path / "pipelines" / "here"
    folder.mkdir(parents=True)
    monkeypatch.setattr(loading, "resource_folder", lambda name: tmp_path / name)

    def write(text, mode="tiny"):
        path = folder / f"{mode}.yml"
        path.write_text(text, encoding="utf-8")
        return path

    return write
