"""Tools of the mode `agent` that get stuck hold up nobody but the questions that asked them."""

import concurrent.futures

import pytest
from tests.doubles.agent_file import agent_file, outside_tools
from tests.doubles.dripping import Dripping
from tests.doubles.server_process import ServerProcess
from tests.doubles.stand_in_llm import StandInLlm

from shiguan.serving.keys import KeyFile

pytestmark = pytest.mark.slow
QUESTIONS = 8


def test_other_tenants_are_answered_while_every_tool_of_eight_questions_is_stuck(tmp_path):
    keys = KeyFile(tmp_path / "keys.json")
    made = {name: keys.add(name, "write")[0] for name in ("acme", "beta")}
    call = {"tool_calls": [{"name": "query_cbdb", "arguments": {"person_name": "王安石"}}]}
    folder = tmp_path / "pipelines" / "embedded"
    folder.mkdir(parents=True)

    def by(name):
        return {"headers": {"Authorization": f"Bearer {made[name]}"}}

    with Dripping() as service, StandInLlm(default=call) as llm:
        agent_file(folder, outside_tools(service.url.rstrip("/")))
        environment = {
            "OPENAI_BASE_URL": llm.url, "OPENAI_API_KEY": "sk-x", "SHIGUAN_KEYS_FILE": str(keys.path),
            "SHIGUAN_PIPELINES_DIR": str(tmp_path / "pipelines"), "SHIGUAN_REQUEST_TIMEOUT": "120",
        }  # fmt: skip
        with ServerProcess(tmp_path / "data", **environment) as server:
            job = server.upload("wall.txt", b"The wall was pulled down in 904.", **by("acme"))
            assert server.wait_for_job(job.json()["id"], **by("acme"))["state"] == "done"

            def ask(number):
                body = {"query": f"When was wall {number} pulled down?", "mode": "agent"}
                return server.post("/api/v1/rag/query", json=body, timeout=120, **by("acme"))

            with concurrent.futures.ThreadPoolExecutor(QUESTIONS) as pool:
                asked = [pool.submit(ask, number) for number in range(QUESTIONS)]
                assert service.wait_until_holding(QUESTIONS)
                replies = [
                    server.get("/ready"),
                    server.get("/api/v1/documents", **by("beta")),
                    server.post("/api/v1/rag/query", json={"query": "Which wall?", "mode": "simple"}, **by("beta")),
                    server.get("/api/v1/conversations", **by("beta")),
                    server.get("/ready"),
                ]
                # They came while every tool was still held: none had been given up, which takes nine seconds.
                assert not service.left.is_set()
                assert [reply.status_code for reply in replies] == [200] * len(replies)
                answers = [future.result() for future in asked]
    assert [answer.status_code for answer in answers] == [200] * QUESTIONS
    warnings = [answer.json()["metadata"]["warnings"] for answer in answers]
    assert all("The tool `query_cbdb` failed" in " ".join(told) for told in warnings)
