"""The deployment's four files agree with each other."""

from pathlib import Path

import pytest
import yaml

FOLDER = Path(__file__).resolve().parents[3] / "pipelines" / "elasticsearch_qdrant"
MODES = ("simple", "advanced", "precise")
DESCRIBES_THE_COLLECTION = {"on_disk", "hnsw_config", "quantization_config", "shard_number", "replication_factor"}


def definition(name):
    return yaml.safe_load((FOLDER / f"{name}.yml").read_text(encoding="utf-8"))


def stores(node):
    """Every store of a file: its class's last name and its parameters."""
    if isinstance(node, dict):
        if str(node.get("type", "")).startswith("shiguan.stores.cluster.") and "index" in node.get(
            "init_parameters", {}
        ):
            yield node["type"].rsplit(".", 1)[1], node["init_parameters"]
        for value in node.values():
            yield from stores(value)
    elif isinstance(node, list):
        for value in node:
            yield from stores(value)


def models(node):
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "model":
                yield value
            yield from models(value)
    elif isinstance(node, list):
        for value in node:
            yield from models(value)


@pytest.mark.parametrize("mode", MODES)
def test_a_mode_reads_the_stores_that_the_index_writes(mode):
    def described(name):
        return {
            (kind, tuple(sorted((k, str(v)) for k, v in values.items() if k not in DESCRIBES_THE_COLLECTION)))
            for kind, values in stores(definition(name)["components"])
        }

    assert described(mode) == described("index")


def test_all_files_name_one_embedder_and_one_ranker():
    assert {model for name in (*MODES, "index") for model in models(definition(name)["components"])} == {
        "BAAI/bge-m3", "BAAI/bge-reranker-v2-m3",
    }  # fmt: skip
