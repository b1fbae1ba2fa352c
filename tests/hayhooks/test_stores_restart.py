"""A server behind the stores is stopped and started while questions come: each is answered, or told when to come again."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from tests.doubles.cluster import KEY, prepared_cluster
from tests.doubles.server_process import ServerProcess

pytestmark = pytest.mark.slow

QUESTION = {"query": "Who proposed the two-tax reform?", "mode": "simple"}
ANSWERED, COME_AGAIN = (200, None), (503, "5")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    with prepared_cluster(folder) as (variables, stores), ServerProcess(folder / "data", **variables) as server:
        yield server, stores


@pytest.mark.parametrize("name", ["Elasticsearch", "Qdrant"])
def test_no_question_is_lost_when_a_server_is_started_anew(cluster, name):
    server, stores = cluster
    store, begun = stores[name], threading.Semaphore(0)

    def ask(_):
        begun.release()
        reply = httpx.post(f"{server.url}/api/v1/rag/query", json=QUESTION, headers=KEY, timeout=60)
        return reply.status_code, reply.headers.get("retry-after")

    with ThreadPoolExecutor(4) as pool:
        asked = pool.map(ask, range(150))
        for _ in range(20):
            begun.acquire()
        store.stop()
        # Until the server has noticed; the questions of meanwhile wait, or are told to come again.
        noticed = httpx.get(f"{server.url}/ready", timeout=60).status_code
        store.start_again()
        outcomes = Counter(asked)
    assert noticed == 503
    assert set(outcomes) <= {ANSWERED, COME_AGAIN}
    assert outcomes[ANSWERED] >= 110
    assert Counter(map(ask, range(20))) == {ANSWERED: 20}
