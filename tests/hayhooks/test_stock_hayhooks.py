"""Hayhooks as it comes, without Shiguan's server: its commands, its routes, its OpenAI API and its MCP server."""

import json
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from tests.doubles.server_process import ServerProcess
from tests.doubles.small_library import copy_library
from tests.doubles.stand_in_llm import StandInLlm
from tests.hayhooks.test_app_routes import ROOT

pytestmark = pytest.mark.slow
MODES = ["simple", "advanced", "precise", "agent"]
QUESTION = "Who proposed the two-tax reform?"
HAYHOOKS = str(Path(sys.executable).with_name("hayhooks"))


def hayhooks(library, pipelines="hayhooks/pipelines", **environment):
    command = [HAYHOOKS, "run", "--host", "127.0.0.1", "--port", "{port}", "--pipelines-dir", str(pipelines)]
    return ServerProcess(library, command=command, ready="/status", SHIGUAN_TENANT="a", **environment)


@pytest.fixture(scope="module")
def stock(library):
    with hayhooks(library, HAYHOOKS_STARTUP_DEPLOY_WORKERS="1") as server:
        assert sorted(server.get("/status").json()["pipelines"]) == sorted(MODES), server.errors
        yield server


@pytest.mark.parametrize("mode", MODES)
def test_a_mode_answers_at_its_own_address(stock, mode):
    answer = stock.post(f"/{mode}/run", json={"query": QUESTION, "top_k": 2}).json()["result"]
    assert "Yang Yan" in answer["answer"]
    assert "Li Mi" not in json.dumps(answer)  # another tenant's
    assert (answer["mode"], answer["citations"][0]["source"]) == (mode, "tax.txt")


def test_the_body_names_no_other_tenant_and_nothing_unknown(stock):
    other = stock.post("/simple/run", json={"query": QUESTION, "tenant_id": "b"})
    assert (other.status_code, other.json()["detail"]) == (403, "The body names another tenant than the key's.")
    assert stock.post("/simple/run", json={"query": ""}).status_code == 422


@pytest.mark.parametrize("given", [
    {"query": "Who \ud800 proposed it?"}, {"conversation_id": "\ud800"},
    {"history": [{"role": "user", "content": "\ud800"}]},
    {"filters": {"field": "meta.title", "operator": "==", "value": "\ud800"}},
    {"top_k": float("inf")}, {"top_k": 99},
])  # fmt: skip
def test_a_wrong_value_is_refused_with_its_field_also_one_that_no_reply_can_quote(stock, given):
    body = json.dumps({"query": QUESTION, **given}).encode()
    reply = stock.post("/simple/run", content=body, headers={"Content-Type": "application/json"})
    assert reply.status_code == 422
    assert f"`{next(iter(given))}" in reply.json()["detail"]


def test_the_fields_of_a_question_are_described(stock):
    description = stock.get("/openapi.json").json()["components"]["schemas"]
    fields = description["simpleRunRequest"]["properties"]
    assert description["simpleRunRequest"]["required"] == ["query"]
    assert (fields["query"]["type"], fields["query"]["maxLength"]) == ("string", 2000)
    assert "HistoryMessage" in json.dumps(fields["history"])
    assert "headers" not in fields


def chat(stock, **more):
    body = {"model": "simple", "messages": [{"role": "user", "content": QUESTION}], **more}
    return stock.post("/v1/chat/completions", json=body)


def test_the_openai_api_answers_with_its_sources_and_a_stream_says_the_same(stock):
    reply = chat(stock).json()
    whole = reply["choices"][0]["message"]["content"]
    assert "Yang Yan" in whole
    assert whole.rstrip().endswith("[1] tax (tax.txt)")
    assert reply["shiguan"]["citations"][0]["source"] == "tax.txt"
    lines = chat(stock, stream=True).text.splitlines()
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    text = "".join(choice["delta"]["content"] or "" for chunk in chunks for choice in chunk["choices"])
    assert text == whole
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert chunks[-1]["shiguan"]["citations"][0]["source"] == "tax.txt"


@pytest.fixture
def own_library(library, tmp_path):
    """A copy, since the embedded store lets one process in."""
    return copy_library(library, tmp_path / "data")


def test_a_caller_who_hangs_up_ends_the_call_of_the_model(own_library, tmp_path):
    shutil.copytree(ROOT / "hayhooks" / "pipelines" / "simple", tmp_path / "own" / "simple")
    asked = [{"role": "user", "content": QUESTION}]
    bodies = {
        "/simple/run": {"query": QUESTION},
        "/v1/chat/completions": {"model": "simple", "messages": asked, "stream": True},
    }
    with StandInLlm(time_to_first_token=60) as llm:
        model = {"OPENAI_BASE_URL": llm.url, "OPENAI_API_KEY": "sk-x"}
        with hayhooks(own_library, tmp_path / "own", **model) as server:
            for number, (path, body) in enumerate(bodies.items(), start=1):
                with server.send(path, body):
                    assert llm.wait_for(lambda llm, calls=number: llm.calls == calls, 30)
                assert llm.wait_for(lambda llm, calls=number: llm.disconnects == calls, 20)


@pytest.mark.skipif(version("mcp").startswith("2"), reason="Hayhooks 2.1 serves MCP with mcp<2 alone")
def test_the_modes_are_tools_of_hayhooks_mcp_server(own_library):
    command = [HAYHOOKS, "mcp", "run", "--json-response", "--port", "{port}", "--pipelines-dir", "hayhooks/pipelines"]
    with ServerProcess(own_library, command=command, ready="/status", SHIGUAN_TENANT="a") as server:

        def call(method, **params):
            message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            return server.post("/mcp/", json=message, headers={"Accept": "application/json, text/event-stream"}).json()

        assert {*MODES} <= {tool["name"] for tool in call("tools/list")["result"]["tools"]}
        found = call("tools/call", name="simple", arguments={"query": QUESTION})["result"]["content"][0]["text"]
    assert "Yang Yan" in found
    assert "tax.txt" in found


def test_a_wrapper_of_a_mode_that_is_not_there_says_so_and_the_others_are_deployed(own_library, tmp_path):
    for mode in ("simple", "missing"):
        shutil.copytree(ROOT / "hayhooks" / "pipelines" / "simple", tmp_path / "own" / mode)
    wrapper = tmp_path / "own" / "missing" / "pipeline_wrapper.py"
    wrapper.write_text(wrapper.read_text(encoding="utf-8").replace('"simple"', '"missing"'), encoding="utf-8")
    with hayhooks(own_library, tmp_path / "own") as server:
        assert server.get("/status").json()["pipelines"] == ["simple"]
        assert server.post("/simple/run", json={"query": QUESTION}).status_code == 200
    assert "`missing`" in server.errors


@pytest.mark.parametrize("mode", MODES)
def test_it_deploys_the_file_of_a_mode_that_needs_only_the_question_and_the_tenant(stock, mode):
    source = (ROOT / "pipelines" / "embedded" / f"{mode}.yml").read_text(encoding="utf-8")
    deploy = {"name": f"own_{mode}", "source_code": source, "save_file": False, "overwrite": True}
    assert stock.post("/deploy-yaml", json=deploy).status_code == 200
    for tenant, named in (("a", "Yang Yan"), ("b", "Li Mi")):
        asked = stock.post(f"/own_{mode}/run", json={"query": QUESTION, "tenant_id": tenant})
        assert asked.status_code == 200, asked.text
        (answer,) = asked.json()["result"]["citation_extractor"]["answers"]
        assert [name for name in ("Yang Yan", "Li Mi") if name in answer["data"]] == [named]
        assert answer["meta"]["citations"]
    assert stock.post(f"/own_{mode}/run", json={"query": QUESTION}).status_code == 422
