"""A server that is killed in the middle of an answer, or of writing one down, leaves nothing half done."""

import json
import os
import signal
import subprocess
import sys
import threading

import pytest
from tests.doubles.server_process import ROOT, ServerProcess
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


def test_a_server_makes_the_vectors_that_a_killed_ingest_left_to_be_made(tmp_path):
    text, data = tmp_path / "horses.txt", tmp_path / "data"
    text.write_text("\n\n".join(f"In {900 + n} they counted {n * 7} horses in the stable." for n in range(60)))
    steps = [sys.executable, ROOT / "tests/doubles/ingest_in_steps.py", "ingest", text, "--data-dir", data]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'components'}{os.pathsep}{ROOT}"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(steps, text=True, env=environment, **pipes) as ingest:
        assert ingest.stdout.readline() == "slice\n"
        ingest.kill()
    with ServerProcess(data) as server:
        for _ in range(600):
            (source,) = server.get("/api/v1/documents").json()["sources"]
            if source["complete"]:
                break
            threading.Event().wait(0.05)
        assert source["vectors"] == source["words"] == source["units"] > 8
