"""Fixtures for tests of the deployment `elasticsearch_qdrant`: its servers' stand-ins and its files with small models."""

import inspect
import shutil
import time
from contextlib import contextmanager
from functools import cache
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml
from haystack.core.serialization import import_class_by_name
from tests.doubles.key_file import key_file
from tests.doubles.small_library import TEXTS
from tests.doubles.stand_in_elasticsearch import StandInElasticsearch
from tests.doubles.stand_in_qdrant import StandInQdrant

from shiguan.cli import main
from shiguan.engine import loading
from shiguan.engine.loading import mappings
from shiguan.resources import resource_folder

_PACKAGED = {
    "SentenceTransformersTextEmbedder": "shiguan.query.e5_text_embedder.E5TextEmbedder",
    "SentenceTransformersDocumentEmbedder": "shiguan.ingest.e5_document_embedder.E5DocumentEmbedder",
}


@pytest.fixture
def waits(monkeypatch):
    """What was waited for between two tries, in seconds; nothing waits."""
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    return waited


@pytest.fixture
def elasticsearch(monkeypatch, waits):
    """A stand-in for Elasticsearch, named by the environment."""
    with StandInElasticsearch() as server:
        monkeypatch.setenv("SHIGUAN_ELASTICSEARCH_URL", server.url)
        yield server


@pytest.fixture
def qdrant(monkeypatch, waits):
    """A stand-in for Qdrant, named by the environment."""
    with StandInQdrant() as server:
        monkeypatch.setenv("SHIGUAN_QDRANT_URL", server.url)
        yield server


def change_components(folder, change):
    """Let `change` alter every component of a deployment's files, which it gets with the name of its class."""
    for path in folder.glob("*.yml"):
        text = path.read_text(encoding="utf-8")
        definition = yaml.safe_load(text)
        for node in list(mappings(definition)):
            if "." in str(node.get("type")):
                change(node["type"].rpartition(".")[2], node)
        comment = "".join(takewhile(lambda line: line.startswith("#"), text.splitlines(keepends=True)))
        path.write_text(comment + yaml.safe_dump(definition, allow_unicode=True, sort_keys=False), encoding="utf-8")


def _with_small_model(name, node):
    if name in _PACKAGED:
        kept = {key: value for key, value in node["init_parameters"].items() if key == "meta_fields_to_embed"}
        node |= {"type": _PACKAGED[name], "init_parameters": kept}
    elif name == "TransformersSimilarityRanker":
        inner = {"type": node["type"], "init_parameters": {"model": node["init_parameters"]["model"]}}
        parameters = {"top_k": node["init_parameters"]["top_k"], "ranker": inner}
        node |= {"type": "shiguan.retrieval.best_window_ranker.BestWindowRanker", "init_parameters": parameters}
    elif name == "QdrantStore":
        node["init_parameters"] |= {"embedding_dim": 384, "embedding_model": "intfloat/multilingual-e5-small"}


@cache
def _small_model_files():
    files = TemporaryDirectory(prefix="small-models-")
    shutil.copytree(resource_folder("pipelines"), files.name, dirs_exist_ok=True)
    change_components(Path(files.name, "elasticsearch_qdrant"), _with_small_model)
    return files


def with_small_models(folder, monkeypatch):
    """Let `load_pipeline` read copies of the deployments' files that need no weights: their embedder is packaged."""
    pipelines = folder / "pipelines"
    shutil.copytree(_small_model_files().name, pipelines)
    monkeypatch.setattr(
        loading, "resource_folder", lambda name: pipelines if name == "pipelines" else resource_folder(name)
    )


def with_names_of_their_own(folder, prefix):
    """Let every store of the copied files have a name that begins with a prefix."""

    def renamed(_, node):
        parameters = node.setdefault("init_parameters", {})
        known = inspect.signature(import_class_by_name(node["type"])).parameters
        if node["type"].startswith("shiguan.stores.cluster.") and "index" in known:
            name = parameters.get("index", known["index"].default)
            parameters["index"] = name if name.startswith(prefix) else f"{prefix}-{name}"

    change_components(folder / "pipelines" / "elasticsearch_qdrant", renamed)


@pytest.fixture
def small_models(tmp_path, monkeypatch):
    """The deployments' files with the packaged embedder, and a ranker that does without its weights."""
    with_small_models(tmp_path, monkeypatch)


KEY = {"Authorization": "Bearer the-key-of-this-test"}
"""Opens the library of a `prepared_cluster` over HTTP."""


@contextmanager
def prepared_cluster(folder, **more):
    """A small library on the stand-ins of both servers; gives the variables of a server's process, and the stand-ins."""
    texts = folder / "texts"
    texts.mkdir()
    for name, text in TEXTS.items():
        (texts / name).write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch, StandInElasticsearch() as elasticsearch, StandInQdrant() as qdrant:
        with_small_models(folder, patch)
        variables = {
            "SHIGUAN_ELASTICSEARCH_URL": elasticsearch.url,
            "SHIGUAN_QDRANT_URL": qdrant.url,
            "SHIGUAN_PIPELINES_DIR": str(folder / "pipelines"),
            "SHIGUAN_DEPLOYMENT": "elasticsearch_qdrant",
            "SHIGUAN_KEYS_FILE": key_file(folder, "the-key-of-this-test", "default"),
            "HF_HUB_OFFLINE": "1",
            **more,
        }
        for name, value in variables.items():
            patch.setenv(name, value)
        assert main(["stores", "init"]) == 0
        assert main(["ingest", str(texts), "--tenant", "default", "--deployment", "elasticsearch_qdrant"]) == 0
        yield variables, {"Elasticsearch": elasticsearch, "Qdrant": qdrant}
