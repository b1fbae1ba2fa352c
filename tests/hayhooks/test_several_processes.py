"""Several processes of the real server over the cluster's stand-ins: replicas behind the shipped proxy."""

import re
import shutil
import socket
import subprocess
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import httpx
import pytest
from tests.doubles.cluster import KEY, prepared_cluster
from tests.doubles.server_process import ROOT, ServerProcess
from tests.doubles.stand_in_llm import StandInLlm

pytestmark = [pytest.mark.slow, pytest.mark.transformers]  # the deployment's ranker needs the extra

QUESTION = {"query": "Who proposed the two-tax reform?", "mode": "simple"}
NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin:/opt/homebrew/bin")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """The variables of a prepared cluster and an LLM."""
    folder = tmp_path_factory.mktemp("cluster")
    with (
        StandInLlm(default="Yang Yan proposed the two-tax reform in 780. [1]") as llm,
        prepared_cluster(folder, OPENAI_BASE_URL=llm.url, OPENAI_API_KEY="any") as (variables, _),
    ):
        yield variables


def ask(url, *, count, clients=4):
    """Ask a new connection each time, so that any process may get it; statuses and answers."""

    def one(_):
        reply = httpx.post(f"{url}/api/v1/rag/query", json=QUESTION, headers=KEY, timeout=60)
        return reply.status_code, reply.json().get("answer", "")[:36]

    with ThreadPoolExecutor(clients) as pool:
        return Counter(pool.map(one, range(count)))


ANSWERED = (200, "Yang Yan proposed the two-tax reform")


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
def test_replicas_behind_the_shipped_proxy_share_questions_and_stand_in_for_each_other(cluster, tmp_path):
    with (
        ServerProcess(tmp_path, **cluster) as one,
        ServerProcess(tmp_path, **cluster) as other,
        proxy(tmp_path, [one.url, other.url]) as (url, log),
    ):
        assert ask(url, count=40) == {ANSWERED: 40}
        served = Counter(re.findall(r"query 200 \S+ 127\.0\.0\.1:(\d+)$", log(), re.MULTILINE))
        assert set(served) == {server.url.rsplit(":", 1)[1] for server in (one, other)}
        assert sum(served.values()) == 40
        with httpx.stream("POST", f"{url}/api/v1/rag/query-stream", json=QUESTION, headers=KEY, timeout=60) as reply:
            names = [line[7:] for line in reply.iter_lines() if line.startswith("event: ")]
        assert "token" in names
        assert names[-1] == "generation_complete"
        assert httpx.get(f"{url}/metrics").status_code == 404
        one.stop()
        assert ask(url, count=10) == {ANSWERED: 10}


@contextmanager
def proxy(folder, replicas):
    """The shipped nginx.conf, with addresses of this machine in place of Docker's name server; gives URL and log."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    servers = "".join(f"server {url.removeprefix('http://')} max_fails=2 fail_timeout=5s;\n" for url in replicas)
    text = (ROOT / "docker" / "nginx.conf").read_text(encoding="utf-8")
    text = re.sub(r" +resolver .*\n", "", text)
    text = re.sub(r" +server api-scale:1416 .*\n", servers, text)
    text = text.replace("listen 8080", f"listen 127.0.0.1:{port}")
    own = folder / "nginx"
    own.mkdir()
    own.chmod(0o777)
    text = text.replace("/tmp/", f"{own}/").replace("/dev/stdout", f"{own}/access.log")
    (own / "nginx.conf").write_text(text, encoding="utf-8")
    command = [NGINX, "-e", "stderr", "-p", str(own), "-c", str(own / "nginx.conf"), "-g", "daemon off;"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    try:
        pause = threading.Event()
        for _ in range(200):
            assert process.poll() is None, process.stderr.read().decode()
            with suppress(httpx.ConnectError):
                httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False)
                break
            pause.wait(0.05)
        yield f"http://127.0.0.1:{port}", (own / "access.log").read_text
    finally:
        process.terminate()
        process.communicate()
