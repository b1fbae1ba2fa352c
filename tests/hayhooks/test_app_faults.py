"""The real server when things go wrong around it: a crash, a full disk."""

import os
import shutil
import subprocess

import pytest
from tests.doubles.server_process import ServerProcess
from tests.doubles.stand_in_llm import StandInLlm

pytestmark = pytest.mark.slow
QUESTION = {"query": "Which town was number 77?", "mode": "simple"}


def town_book(paragraphs, first=0):
    return "\n\n".join(
        f"In the year {600 + n} the town number {n} paid its tax in salt and in iron, and its people built a wall of "
        f"{n * 3} feet around the granary, so that the army of the emperor could rest there in the winter."
        for n in range(first, first + paragraphs)
    ).encode()


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    """A disk of 200 MB where this machine lets us mount one, else a folder."""
    folder, mount = tmp_path_factory.mktemp("disk"), shutil.which("mount")
    mounted = False
    if os.name == "posix" and mount and os.geteuid() == 0:
        command = [mount, "-t", "tmpfs", "-o", "size=200m", "tmpfs", str(folder)]
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    yield folder
    if mounted:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture(scope="module")
def crashed(disk):
    """A server that was killed in the middle of an ingest, with more uploads waiting, and started again."""
    with StandInLlm(default="The town number 77 paid its tax in salt and in iron [1].") as llm:
        data, endpoint = disk / "data", {"OPENAI_BASE_URL": llm.url, "OPENAI_API_KEY": "sk-x"}
        first = ServerProcess(data, **endpoint).start()
        before = first.upload("before.txt", town_book(2, 900)).json()
        assert first.wait_for_job(before["id"])["state"] == "done"
        jobs = [first.upload("long.txt", town_book(90)).json()]
        jobs.append(first.upload("short.txt", town_book(3, 500)).json())
        for _ in range(2000):
            running = first.get(f"/api/v1/documents/jobs/{jobs[0]['id']}").json()
            if running["progress"]["done"] or running["state"] == "done":
                break
        first.kill()
        with ServerProcess(data, **endpoint) as second:
            yield second, before, jobs, running


def test_a_kill_during_an_ingest_loses_nothing(crashed):
    server, before, jobs, running = crashed
    assert running["state"] == "running"  # it was killed in the middle
    done = [server.wait_for_job(job["id"]) for job in jobs]
    assert [job["state"] for job in done] == ["done", "done"]
    assert done[0]["attempts"] == 2
    assert server.get(f"/api/v1/documents/jobs/{before['id']}").json()["state"] == "done"
    sources = {s["source"]: s["passages"] for s in server.get("/api/v1/documents").json()["sources"]}
    # As many as an ingest that nobody interrupts gives: nothing twice, nothing missing.
    assert sources == {"before.txt": 1, "long.txt": done[0]["result"]["parents"], "short.txt": 1}
    again = server.upload("long.txt", town_book(90)).json()
    assert server.wait_for_job(again["id"])["result"]["new"] == 0
    answer = server.post("/api/v1/rag/query", json=QUESTION).json()
    assert answer["citations"][0]["source"] == "long.txt"


def test_a_full_disk_is_told_of_and_loses_nothing(crashed, disk):
    server, *_ = crashed
    if not disk.is_mount():
        pytest.skip("a small disk can only be mounted by root")
    ballast = disk / "ballast"
    with ballast.open("wb") as file:
        for _ in range(shutil.disk_usage(disk).free // 1_000_000 - 30):
            file.write(b"\1" * 1_000_000)
    refused = server.upload("later.txt", town_book(3, 700))
    assert (refused.status_code, refused.json()["error"]["type"]) == (503, "storage_full")
    assert str(disk) not in refused.text
    assert server.post("/api/v1/rag/query", json=QUESTION).status_code == 200
    assert server.get("/ready").status_code == 200
    ballast.unlink()
    taken = server.upload("later.txt", town_book(3, 700))
    assert server.wait_for_job(taken.json()["id"])["state"] == "done"
    names = [source["source"] for source in server.get("/api/v1/documents").json()["sources"]]
    assert names == ["before.txt", "later.txt", "long.txt", "short.txt"]
