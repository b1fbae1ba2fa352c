"""A server behind the stores is stopped and started while questions come: each is answered, or told when to come again."""

import hashlib
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from tests.doubles.cluster import with_small_models
from tests.doubles.server_process import ServerProcess
from tests.doubles.small_library import TEXTS
from tests.doubles.stand_in_elasticsearch import StandInElasticsearch
from tests.doubles.stand_in_qdrant import StandInQdrant

from shiguan.cli import main

pytestmark = pytest.mark.slow

KEY = {"Authorization": "Bearer the-key-of-this-test"}
QUESTION = {"query": "Who proposed the two-tax reform?", "mode": "simple"}
ANSWERED, COME_AGAIN = (200, None), (503, "5")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
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
        }
        for name, value in variables.items():
            patch.setenv(name, value)
        assert main(["stores", "init"]) == 0
        assert main(["ingest", str(texts), "--tenant", "default", "--deployment", "elasticsearch_qdrant"]) == 0
        with ServerProcess(folder / "data", **variables) as server:
            yield server, {"Elasticsearch": elasticsearch, "Qdrant": qdrant}


@pytest.mark.parametrize("name", ["Elasticsearch", "Qdrant"])
def test_no_question_is_lost_when_a_server_is_started_anew(cluster, name):
    server, stores = cluster
    store, begun = stores[name], threading.Semaphore(0)

    def ask(_):
        begun.release()
        reply = httpx.post(f"{server.url}/api/v1/rag/query", json=QUESTION, headers=KEY, timeout=60)
        return reply.status_code, reply.headers.get("retry-after")

    with ThreadPoolExecutor(4) as pool:
        asked = pool.map(ask, range(300))
        for _ in range(20):
            begun.acquire()
        store.stop()
        # Until the server has noticed; the questions of meanwhile wait, or are told to come again.
        noticed = httpx.get(f"{server.url}/ready", timeout=60).status_code
        store.start_again()
        outcomes = Counter(asked)
    assert noticed == 503
    assert set(outcomes) <= {ANSWERED, COME_AGAIN}
    assert outcomes[ANSWERED] >= 250
    assert Counter(map(ask, range(20))) == {ANSWERED: 20}
