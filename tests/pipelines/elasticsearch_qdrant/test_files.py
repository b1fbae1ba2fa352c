"""The deployment's four files agree with each other."""

import pytest
import yaml
from tests.doubles.own_modes import PIPELINES

from shiguan.engine.loading import mappings

FOLDER = PIPELINES / "elasticsearch_qdrant"
MODES = ("simple", "advanced", "precise")
DESCRIBES_THE_COLLECTION = {"on_disk", "hnsw_config", "quantization_config", "shard_number", "replication_factor"}


def definition(name):
    return yaml.safe_load((FOLDER / f"{name}.yml").read_text(encoding="utf-8"))


def stores(name):
    """Every store of a file: its class, and its parameters but for those that describe the collection."""
    for node in mappings(definition(name)["components"]):
        values = node.get("init_parameters", {})
        if str(node.get("type", "")).startswith("shiguan.stores.cluster.") and "index" in values:
            yield node["type"], *sorted((k, str(v)) for k, v in values.items() if k not in DESCRIBES_THE_COLLECTION)


@pytest.mark.parametrize("mode", MODES)
def test_a_mode_reads_the_stores_that_the_index_writes(mode):
    assert set(stores(mode)) == set(stores("index")) != set()


def test_all_files_name_one_embedder_and_one_ranker():
    parts = [node for name in (*MODES, "index") for node in mappings(definition(name)["components"])]
    assert {node["model"] for node in parts if "model" in node} == {"BAAI/bge-m3", "BAAI/bge-reranker-v2-m3"}
