"""Fixtures for tests of the deployment `elasticsearch_qdrant`: its servers' stand-ins and its files with small models."""

import hashlib
import inspect
import re
import shutil
import time
from contextlib import contextmanager

import pytest
import yaml
from haystack.core.serialization import import_class_by_name
from tests.doubles.small_library import TEXTS
from tests.doubles.stand_in_elasticsearch import StandInElasticsearch
from tests.doubles.stand_in_qdrant import StandInQdrant

from shiguan.cli import main
from shiguan.engine import loading
from shiguan.engine.loading import mappings
from shiguan.resources import resource_folder

_EMBEDDER = re.compile(
    r"haystack_integrations\S+SentenceTransformers(?P<kind>Text|Document)Embedder\n(?P<indent> +)init_parameters:"
    r"(?: \{model: BAAI/bge-m3, progress_bar: false\}\n"
    r"|\n +model: BAAI/bge-m3.*\n +progress_bar: false\n(?P<more>(?: +meta_fields_to_embed: .*\n)?))"
)
_RANKER = re.compile(
    r"(?P<type>haystack\S+Ranker)\n +init_parameters: \{(?P<model>model: \S+), (?P<top_k>top_k: \d+)\}\n"
)
_OWN_RANKER = (
    r"shiguan.retrieval.best_window_ranker.BestWindowRanker\n"
    r"  init_parameters: {\g<top_k>, ranker: {type: \g<type>, init_parameters: {\g<model>}}}\n"
)


def _packaged_embedder(found):
    stage = {"Text": "query.e5_text_embedder", "Document": "ingest.e5_document_embedder"}[found["kind"]]
    parameters = f"\n{found['more']}" if found["more"] else " {}\n"
    return f"shiguan.{stage}.E5{found['kind']}Embedder\n{found['indent']}init_parameters:{parameters}"


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


def with_small_models(folder, monkeypatch):
    """Let `load_pipeline` read copies of the deployments' files that need no weights: their embedder is packaged."""
    pipelines = folder / "pipelines"
    shutil.copytree(resource_folder("pipelines"), pipelines)
    for path in (pipelines / "elasticsearch_qdrant").glob("*.yml"):
        text = _EMBEDDER.sub(_packaged_embedder, path.read_text(encoding="utf-8"))
        assert "SentenceTransformers" not in text
        text = _RANKER.sub(_OWN_RANKER, text)
        text = text.replace("BAAI/bge-m3", "intfloat/multilingual-e5-small")
        path.write_text(text.replace("embedding_dim: 1024", "embedding_dim: 384"), encoding="utf-8")
    monkeypatch.setattr(
        loading, "resource_folder", lambda name: pipelines if name == "pipelines" else resource_folder(name)
    )


def with_names_of_their_own(folder, prefix):
    """Let every store of the copied files have a name that begins with a prefix."""
    for path in (folder / "pipelines" / "elasticsearch_qdrant").glob("*.yml"):
        definition = yaml.safe_load(path.read_text(encoding="utf-8"))
        for node in mappings(definition):
            if str(node.get("type", "")).startswith("shiguan.stores.cluster."):
                parameters = node.setdefault("init_parameters", {})
                if "words" not in parameters:  # of the pair each has one
                    default = inspect.signature(import_class_by_name(node["type"])).parameters["index"].default
                    name = parameters.get("index", default)
                    parameters["index"] = name if name.startswith(prefix) else f"{prefix}-{name}"
        path.write_text(yaml.safe_dump(definition, allow_unicode=True, sort_keys=False), encoding="utf-8")


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
            "SHIGUAN_API_KEYS": f"default:write:{hashlib.sha256(b'the-key-of-this-test').hexdigest()}",
            "HF_HUB_OFFLINE": "1",
            **more,
        }
        for name, value in variables.items():
            patch.setenv(name, value)
        assert main(["stores", "init"]) == 0
        assert main(["ingest", str(texts), "--tenant", "default", "--deployment", "elasticsearch_qdrant"]) == 0
        yield variables, {"Elasticsearch": elasticsearch, "Qdrant": qdrant}
