"""A library of ten million passages is resumed, upgraded and deleted in as much memory as a small one."""

import json
import os
import subprocess
import sys

import pytest
from tests.doubles.generated_servers import GeneratedElasticsearch, GeneratedQdrant
from tests.doubles.started import ROOT

from shiguan.stores.cluster.elasticsearch_store import ElasticsearchStore
from shiguan.stores.cluster.qdrant_store import QdrantStore

COUNT, MISSING = 1_000_000, 1_500


def grown(action):
    command = [sys.executable, "-m", "tests.doubles.million_ids", action]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "components"), str(ROOT)])}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert ran.returncode == 0, ran.stderr
    sys.stdout.write(f"{action}: {ran.stdout}")
    found = json.loads(ran.stdout)
    return found["done"], found["grew"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of a process's memory as Linux says it")
def test_memory_stays_while_a_million_ids_are_gone_through(monkeypatch):
    with GeneratedElasticsearch(COUNT) as elasticsearch, GeneratedQdrant(COUNT, MISSING) as qdrant:
        monkeypatch.setenv("SHIGUAN_ELASTICSEARCH_URL", elasticsearch.url)
        monkeypatch.setenv("SHIGUAN_QDRANT_URL", qdrant.url)
        ElasticsearchStore("children").set_up()
        QdrantStore("children", embedding_dim=2).set_up()
        # One was embedded before the measurement, and another deleted.
        done, grew = grown("resume")
        assert (done, grew <= 50) == (MISSING - 2, True), grew
        done, grew = grown("upgrade")
        assert (done, grew <= 50) == (COUNT - 1, True), grew
        done, grew = grown("delete")
        assert (done, grew <= 50) == (COUNT - 1, True), grew
