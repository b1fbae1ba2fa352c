"""Fixtures for tests of the deployment `elasticsearch_qdrant`: its servers' stand-ins and its files with small models."""

import shutil

import pytest
from tests.support.stand_in_elasticsearch import StandInElasticsearch
from tests.support.stand_in_qdrant import StandInQdrant

from shiguan import loading
from shiguan.resources import resource_folder

SMALL_MODELS = {
    "BAAI/bge-m3": "sentence-transformers/all-MiniLM-L6-v2",
    "embedding_dim: 1024": "embedding_dim: 384",
}
"""What stands in a file of the deployment, and what stands there where its models are too large."""


@pytest.fixture
def elasticsearch(monkeypatch):
    """A stand-in for Elasticsearch, named by the environment."""
    with StandInElasticsearch() as server:
        monkeypatch.setenv("SHIGUAN_ELASTICSEARCH_URL", server.url)
        yield server


@pytest.fixture
def qdrant(monkeypatch):
    """A stand-in for Qdrant, named by the environment."""
    with StandInQdrant() as server:
        monkeypatch.setenv("SHIGUAN_QDRANT_URL", server.url)
        yield server


def with_small_models(folder, monkeypatch):
    """Let `load_pipeline` read copies of the deployments' files that name the packaged embedder."""
    pipelines = folder / "pipelines"
    shutil.copytree(resource_folder("pipelines"), pipelines)
    for path in (pipelines / "elasticsearch_qdrant").glob("*.yml"):
        text = path.read_text(encoding="utf-8")
        for large, small in SMALL_MODELS.items():
            text = text.replace(large, small)
        path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(
        loading, "resource_folder", lambda name: pipelines if name == "pipelines" else resource_folder(name)
    )


@pytest.fixture
def small_models(tmp_path, monkeypatch):
    """The deployments' files with the packaged embedder; the ranker's weights are absent."""
    with_small_models(tmp_path, monkeypatch)
