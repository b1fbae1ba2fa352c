"""A server that is killed in the middle of an answer leaves nothing half done; one that is told to end, nothing at all."""

import json
import signal

import pytest
from tests.doubles.server_process import ServerProcess
from tests.doubles.stand_in_llm import StandInLlm

pytestmark = pytest.mark.slow
QUESTION = {"query": "When was the wall pulled down?", "mode": "simple", "conversation_id": "c"}


def test_a_kill_in_the_middle_of_a_stream_keeps_no_turn_and_no_broken_file(tmp_path):
    with StandInLlm(default="The wall was pulled down in 904. [1] " * 50) as llm:
        environment = {"OPENAI_BASE_URL": llm.url, "OPENAI_API_KEY": "sk-x"}
        first = ServerProcess(tmp_path, **environment).start()
        job = first.upload("wall.txt", b"The wall was pulled down in 904.").json()
        assert first.wait_for_job(job["id"])["state"] == "done"
        llm.time_per_token = 0.5
        with first.client.stream("POST", f"{first.url}/api/v1/rag/query-stream", json=QUESTION) as reply:
            assert any("generation_start" in line for line in reply.iter_lines())
            first.process.send_signal(signal.SIGKILL)
        first.kill()
        llm.time_per_token = 0
        llm.default = "The wall was pulled down in 904. [1]"
        with ServerProcess(tmp_path, **environment) as second:
            assert second.get("/ready").status_code == 200
            assert second.get("/api/v1/conversations").json() == {"conversations": []}
            answer = second.post("/api/v1/rag/query", json=QUESTION).json()
            assert answer["status"] == "answered"
            (kept,) = second.get("/api/v1/conversations").json()["conversations"]
            assert kept["turns"] == 1
            kept_receipt = second.get(f"/api/v1/receipts/{answer['metadata']['receipt']}")
            assert kept_receipt.json()["receipt"]["answer"]["answer"] == answer["answer"]
    for path in tmp_path.rglob("*.json"):
        json.loads(path.read_text(encoding="utf-8"))


def test_sigterm_in_the_middle_of_an_ingest_leaves_no_folder_and_no_semaphore(tmp_path):
    places = tmp_path / "tmp"
    places.mkdir()
    with ServerProcess(tmp_path / "data", TMPDIR=str(places)) as server:
        job = server.upload("long.txt", "\n\n".join(f"The wall {n} was pulled down. " * 9 for n in range(90)).encode())
        address = f"/api/v1/documents/jobs/{job.json()['id']}"
        while (running := server.get(address).json())["state"] == "queued" or not running["progress"]["done"]:
            pass
        assert running["state"] == "running"
        assert list(places.glob("shiguan-*"))
        server.stop()
    assert "leaked" not in server.errors
    assert not list(places.glob("shiguan-*"))
