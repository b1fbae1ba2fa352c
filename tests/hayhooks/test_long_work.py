"""Work without end over real sockets: it ends with its caller and with the server, and keeps nobody else waiting."""

import contextlib
import threading

import psutil
import pytest
from tests.doubles.server_process import ServerProcess
from tests.doubles.stand_in_llm import Fault, Rule, StandInLlm

from shiguan.serving.keys import KeyFile

pytestmark = pytest.mark.slow
# Far more than the server could check in the time that it has.
SENTENCES = "".join(f"Guo Ziyi retook Chang'an in the year {number}. " for number in range(40_000))
QUOTATIONS = "".join(f'"Guo Ziyi retook Chang\'an in {number}" ' for number in range(40_000))
SPACES = '"a" ' * 50_000 + " " * 1_300_000
QUESTION = {"query": "When did Guo Ziyi retake Chang'an?"}


@pytest.fixture
def llm():
    silent = [Rule("SILENT", fault=Fault(hang=True)), Rule("You sum up parts", fault=Fault(hang=True))]
    with StandInLlm(silent, default="Guo Ziyi retook Chang'an in 757 [1].") as llm:
        yield llm


@pytest.fixture
def keys(tmp_path):
    file = KeyFile(tmp_path / "keys.json")
    return {name: {"Authorization": f"Bearer {file.add(name, 'write')[0]}"} for name in ("acme", "beta")}


@pytest.fixture
def server(tmp_path, llm, keys):
    environment = {"OPENAI_BASE_URL": llm.url, "OPENAI_API_KEY": "sk-x"}
    server = ServerProcess(tmp_path / "data", SHIGUAN_KEYS_FILE=str(tmp_path / "keys.json"), **environment).start()
    try:
        for by in keys.values():
            job = server.upload("guo.txt", b"Guo Ziyi retook Chang'an in 757. He served four emperors.", headers=by)
            assert server.wait_for_job(job.json()["id"], headers=by)["state"] == "done"
        yield server
    finally:
        server.kill()


def at_rest(process):
    """Wait until the process has computed for less than a fifth of some half second; False after ten seconds."""
    pause = threading.Event()
    for _ in range(20):
        before = sum(process.cpu_times()[:2])
        pause.wait(0.5)
        if sum(process.cpu_times()[:2]) - before < 0.1:
            return True
    return False


@pytest.mark.parametrize(("path", "bodies"), [
    ("/api/v1/verify", [{"text": SENTENCES}] * 8),
    ("/api/v1/verify", [{"text": QUOTATIONS, "stream": True}] * 8),
    ("/api/v1/verify", [{"text": SPACES}] * 8),
    ("/api/v1/why", [{"query": f"SILENT {number}?", "expected": "Guo Ziyi retook"} for number in range(24)]),
], ids=["sentences", "quotations", "spaces", "why"])  # fmt: skip
def test_others_are_answered_meanwhile_and_the_work_ends_with_its_caller_and_with_the_server(
    server, llm, keys, path, bodies
):
    def answered():
        replies = [
            server.get("/ready"),
            server.post("/api/v1/rag/query", json=QUESTION, headers=keys["beta"]),
            server.get("/api/v1/documents", headers=keys["beta"]),
            server.get("/api/v1/conversations", headers=keys["beta"]),
            server.get("/api/v1/library/search", params=QUESTION, headers=keys["beta"]),
            server.post("/api/v1/verify", json={"text": "Guo Ziyi retook Chang'an in 757."}, headers=keys["beta"]),
            server.get("/ready"),
        ]
        return [reply.status_code for reply in replies]

    with contextlib.ExitStack() as lines:
        for body in bodies:
            lines.enter_context(server.send(path, body, **keys["acme"]))
        if path.endswith("why"):
            assert llm.wait_for(lambda llm: llm.in_flight == len(bodies), 20)
        assert answered() == [200] * 7
    assert llm.wait_for(lambda llm: llm.in_flight == 0, 10)
    assert at_rest(psutil.Process(server.process.pid))
    with contextlib.ExitStack() as lines:
        for body in bodies:
            lines.enter_context(server.send(path, body, **keys["acme"]))
        assert server.get("/ready").status_code == 200
        assert server.stop(10) in (0, -15)
    assert [told for told in ("Traceback", "Application shutdown failed") if told in server.errors] == []


def test_a_summary_that_a_model_never_writes_keeps_the_server_from_ending_for_seconds_only(server, llm, keys):
    asked = {**QUESTION, "conversation_id": "c"}
    assert server.post("/api/v1/rag/query", json=asked, headers=keys["acme"]).status_code == 200
    assert llm.wait_for(lambda llm: llm.in_flight == 1, 20)
    server.stop(10)
