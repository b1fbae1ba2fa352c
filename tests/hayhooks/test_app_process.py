"""The real server as its callers meet it, with a model that can be slow."""

import concurrent.futures
import json
import re
import socket

import pytest
from tests.doubles.server_process import ServerProcess
from tests.doubles.stand_in_llm import StandInLlm

from shiguan.cli import main
from shiguan.resources import text_hash
from shiguan.serving.keys import KeyFile

pytestmark = pytest.mark.slow
GUO = b"Guo Ziyi retook Chang'an in 757. He served four emperors of the Tang.\n"
SALT = b"Salt was taxed by the state from 758 on. The tax paid for half of the army.\n"
LIMIT = 6


@pytest.fixture(scope="module")
def llm():
    with StandInLlm(default="Guo Ziyi retook Chang'an in 757 [1].") as llm:
        yield llm


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    file = KeyFile(tmp_path_factory.mktemp("keys") / "keys.json")
    made = {name: file.add(name, "write")[0] for name in ("acme", "beta", "load")}
    return {**made, "reader": file.add("acme", "read")[0], "metrics": file.add("", "metrics")[0], "file": file}


@pytest.fixture(scope="module")
def server(tmp_path_factory, llm, keys):
    with ServerProcess(
        tmp_path_factory.mktemp("served"),
        OPENAI_BASE_URL=llm.url, OPENAI_API_KEY="sk-never-in-a-log", OPENAI_MODEL="stand-in",
        SHIGUAN_KEYS_FILE=str(keys["file"].path), SHIGUAN_MAX_IN_FLIGHT=str(LIMIT), SHIGUAN_MAX_UPLOAD_BYTES="200000",
        SHIGUAN_REQUEST_TIMEOUT="8", SHIGUAN_LOG_LEVEL="INFO",
    ) as server:  # fmt: skip
        yield server


@pytest.fixture
def ready(server, llm):
    llm.reset()
    llm.time_to_first_token = 0
    return server


def by(keys, name):
    return {"headers": {"Authorization": f"Bearer {keys[name]}"}}


def ask(server, keys, name, query="When did Guo Ziyi retake Chang'an?", **more):
    return server.post("/api/v1/rag/query", json={"query": query, "mode": "simple"}, **by(keys, name), **more)


def put(server, keys, name, file, content):
    reply = server.upload(file, content, **by(keys, name))
    assert reply.status_code == 202, reply.text
    assert reply.headers["location"] == f"/api/v1/documents/jobs/{reply.json()['id']}"
    return server.wait_for_job(reply.json()["id"], **by(keys, name))


def names(server, keys, name):
    sources = server.get("/api/v1/documents", **by(keys, name)).json()["sources"]
    return [source["source"] for source in sources]


def test_it_is_ready_when_it_answers_and_tells_without_a_key_only_that(ready, keys):
    reply = ready.get("/ready")
    assert reply.json() == {
        "status": "ready",
        "parts": {"keys": "ok", "stores": "ok", "models": "ok", "pipelines": "ok", "ingest": "ok"},
    }
    assert ready.get("/health").text == "ok\n"
    assert ready.get("/api/v1/rag/health").status_code == 401
    told = ready.get("/api/v1/rag/health", **by(keys, "reader")).json()
    assert (told["status"], told["role"]) == ("ready", "read")
    assert told["modes"] == ["simple", "advanced", "precise", "agent"]
    assert str(ready.data_dir) not in json.dumps(told)


def test_an_upload_is_ingested_answered_from_replaced_and_deleted(ready, keys):
    done = put(ready, keys, "acme", "guo.txt", GUO)
    assert (done["state"], done["result"]["sources"], done["result"]["parents"]) == ("done", 1, 1)
    answer = ask(ready, keys, "reader").json()
    assert [citation["source"] for citation in answer["citations"]] == ["guo.txt"]

    again = put(ready, keys, "acme", "guo.txt", GUO)
    assert (again["result"]["new"], again["result"]["removed"]) == (0, 0)
    changed = put(ready, keys, "acme", "guo.txt", b"Li Guangbi held Taiyuan in 757 with ten thousand men.\n")
    assert changed["result"]["new"] == 1
    assert changed["result"]["removed"] == 2  # the parent and the child of the old text
    assert names(ready, keys, "acme") == ["guo.txt"]

    assert ready.delete("/api/v1/documents/guo.txt", **by(keys, "acme")).json() == {
        "source": "guo.txt", "deleted": 1, "cancelled_jobs": 0,
    }  # fmt: skip
    gone = ready.delete("/api/v1/documents/guo.txt", **by(keys, "acme"))
    assert (gone.status_code, gone.json()["error"]["type"]) == (404, "not_found")
    assert names(ready, keys, "acme") == []
    lines = [json.loads(line) for line in (ready.data_dir / "audit.jsonl").read_text().splitlines()]
    assert [(line["action"], line["tenant"], line["source"]) for line in lines[-5:]] == [
        *[("upload", "acme", "guo.txt")] * 3,
        *[("delete", "acme", "guo.txt")] * 2,
    ]
    assert lines[-1]["key"] == text_hash(keys["acme"])[:12]
    assert lines[-1]["request"] == gone.json()["error"]["request_id"]
    assert "Guo Ziyi" not in json.dumps(lines)


def test_no_key_writes_for_another_tenant(ready, keys):
    other = ready.post(
        "/api/v1/documents", files={"file": ("a.txt", GUO)}, data={"tenant_id": "beta"}, **by(keys, "acme")
    )
    assert (other.status_code, other.json()["error"]["type"]) == (403, "tenant_mismatch")
    assert names(ready, keys, "beta") == []


def test_an_upload_without_a_length_is_bounded_while_it_comes(ready, keys):
    def parts():
        yield b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
        for _ in range(64):
            yield b"x" * 16_384
        yield b"\r\n--x--\r\n"

    headers = {"Content-Type": "multipart/form-data; boundary=x", **by(keys, "acme")["headers"]}
    reply = ready.post("/api/v1/documents", content=parts(), headers=headers)
    assert reply.status_code == 413, reply.text


def test_numbers_are_read_with_a_key_of_their_own_and_name_nobody(ready, keys):
    put(ready, keys, "acme", "guo.txt", GUO)
    assert ask(ready, keys, "reader").status_code == 200
    text = ready.get("/metrics", **by(keys, "metrics")).text
    for series in (
        'shiguan_requests_total{method="POST",route="/api/v1/rag/query",status="200"}',
        'shiguan_answers_total{mode="simple",status="answered"}',
        'shiguan_stage_seconds_bucket{le="0.005",mode="simple",stage="generator"}',
        'shiguan_tokens_total{kind="completion",mode="simple"}',
        'shiguan_llm_calls_total{mode="simple"}',
        'shiguan_ingest_jobs_total{state="done"}',
        'shiguan_verdicts_total{mode="simple",verdict="supported"}',
    ):
        assert series in text, series
    for name in ("acme", "beta", "guo.txt", "reader"):
        assert name not in text


def test_nothing_of_users_stands_in_the_log(ready, keys):
    ask(ready, keys, "reader", query="a very private question")
    ready.post("/simple/run", json={"query": ""}, **by(keys, "reader"))
    ready.post("/api/v1/rag/query", json={"query": "x", "mode": "a private mode"}, **by(keys, "reader"))
    log = ready.errors
    for secret in ("private", "Guo Ziyi", "sk-never", keys["acme"], keys["reader"], "guo.txt", "Traceback"):
        assert secret not in log, log[-2000:]


def test_a_requests_lines_of_the_log_have_its_id(ready, keys):
    ready.log.clear()
    asked = by(keys, "reader")["headers"] | {"X-Request-ID": "this-question"}
    assert ready.post("/api/v1/rag/query", json={"query": "Who?"}, headers=asked).status_code == 200
    line = "Running component tenant_filter [request this-question]"
    for _ in range(500):  # a thread reads the log
        ready.get("/health", headers={"X-Request-ID": "not-this-one"})
        if line in ready.errors:
            break
    assert line in ready.errors


def test_a_second_server_on_the_same_folder_answers_too(ready, keys):
    with ServerProcess(ready.data_dir, SHIGUAN_KEYS_FILE=str(keys["file"].path)) as second:
        assert put(second, keys, "load", "second.txt", b"The wall was pulled down in 904.")["state"] == "done"
        for server in (ready, second):
            assert "second.txt" in names(server, keys, "load")
        second.kill()
    assert ask(ready, keys, "load", "When was the wall pulled down?").status_code == 200


def test_of_two_servers_that_race_for_a_port_one_serves_and_the_other_says_so(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    both = [ServerProcess(tmp_path / name, port=port) for name in ("one", "two")]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        started = [pool.submit(server.start) for server in both]
    served = [server for server, start in zip(both, started, strict=True) if start.exception() is None]
    for server in served:
        assert server.get("/health").status_code == 200
        server.stop()
    (lost,) = (server for server in both if server not in served)
    lost._end()
    assert lost.process.returncode == 2
    (said,) = lost.errors.splitlines()
    assert f"127.0.0.1:{port} cannot be used" in said


def test_without_keys_another_address_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SHIGUAN_DATA_DIR", str(tmp_path))
    assert main(["serve", "--host", "0.0.0.0", "--port", "0"]) == 2
    assert re.search(r"No API keys.*shiguan keys add.*127\.0\.0\.1", capsys.readouterr().err)
