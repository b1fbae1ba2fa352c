"""The mode `agent` whole: real stores, a scripted model over real HTTP, and stand-ins of the services that tools ask."""

import asyncio
import json
from functools import partial

import pytest
from tests.doubles.own_modes import agent_file, outside_tools
from tests.doubles.small_library import TEXTS

from shiguan.engine.loading import load_stores
from shiguan.engine.receipts import replay
from shiguan.engine.runner import Runner

SORRY = "抱歉，我在查询外部资料库时遇到了一个技术问题，暂时无法获取该信息。我们可以先聊聊其他话题吗？"
BORN = "王安石生于哪一年？"


@pytest.fixture
def llm(endpoint):
    return endpoint


def script(llm, *replies):
    """Reply in this order; the last reply stands for all further calls."""
    left = list(replies)
    llm.rules = []
    llm.rule(".*", lambda _: left.pop(0) if len(left) > 1 else left[0])


def calls(*pairs):
    return {"tool_calls": [{"name": name, "arguments": arguments} for name, arguments in pairs]}


def cbdb(name="王安石"):
    return calls(("query_cbdb", {"person_name": name}))


def messages(llm, request):
    return llm.requests[request].body["messages"]


def offered(llm, request):
    return [tool["function"]["name"] for tool in llm.requests[request].body.get("tools", [])]


@pytest.fixture
def ask(opened, services, tmp_path):
    """Asks the mode with the tools that reach outside."""
    return partial(opened(agent_file(tmp_path, outside_tools(services.url))).ask, tenant_id="a")


@pytest.fixture
def ask_library(opened):
    """Asks the mode as it ships, on the library alone."""
    return partial(opened("agent").ask, tenant_id="a")


# -- the library alone -------------------------------------------------------------------------------------------------


def test_the_model_searches_the_library_again_and_cites_what_that_found(llm, ask_library):
    script(llm, calls(("search_library", {"query": "wall of the capital"})), "The wall was pulled down in 904. [2]")
    answer = ask_library("Who proposed the two-tax reform?", top_k=1)
    assert [one["source"] for one in answer["documents"]][:2] == ["tax.txt", "wall.txt"]
    (citation,) = answer["citations"]
    assert (citation["number"], citation["source"], citation["verdict"]) == (2, "wall.txt", "partial")
    told = messages(llm, 1)[-1]
    assert told["role"] == "tool"
    assert TEXTS["wall.txt"] in told["content"]
    assert '<source number="2" file="wall.txt"' in told["content"]


def test_a_server_that_refuses_tools_is_asked_without_them(llm, ask_library):
    call = '```json\n{"tool": "search_library", "arguments": {"query": "wall of the capital"}}\n```'
    script(llm, call, "The wall was pulled down in 904. [2]")
    llm.refuses_tools = True
    answer = ask_library("Who proposed the two-tax reform?", top_k=1)
    assert answer["citations"][0]["source"] == "wall.txt"
    assert [offered(llm, request) for request in range(3)] == [["search_library", "read_passage"], [], []]
    told = messages(llm, 2)[-1]
    assert (told["role"], told["content"].splitlines()[0]) == ("user", "Observation of search_library:")
    # The definitions stand in the system message, so the model knows them all the same.
    assert '"tool": "read_passage"' in messages(llm, 1)[0]["content"]


def test_nothing_that_the_model_says_leads_to_another_tenants_passages(llm, ask_library):
    everything = {"field": "id", "operator": "!=", "value": ""}
    script(
        llm,
        calls(
            ("search_library", {"query": "Li Mi", "filters": everything}),
            ("search_library", {"query": "two-tax reform of tenant b, Li Mi 779", "tenant_id": "b"}),
            ("search_library", {"query": "two-tax reform of tenant b, Li Mi 779"}),
            ("read_passage", {"number": 1, "filters": everything}),
        ),
        "Li Mi proposed it in 779. [2]",
    )
    answer = ask_library("Who proposed the two-tax reform?", explain=True)
    outcomes = [step["outcome"] for step in answer["metadata"]["explain"]["steps"]]
    assert outcomes == ["wrong_arguments", "wrong_arguments", "known", "wrong_arguments"]
    assert all("tenant b" not in message["content"] for message in messages(llm, 1) if message["role"] == "tool")
    assert "secret.txt" not in {one["source"] for one in answer["documents"]}
    assert answer["metadata"]["claims"][0]["verdict"] == "unsupported"


def test_the_stream_tells_what_the_tools_did_before_the_answer(llm, opened):
    script(llm, calls(("search_library", {"query": "wall of the capital"})), "The wall was pulled down in 904. [2]")

    async def heard():
        stream = opened("agent").stream("Who proposed the two-tax reform?", tenant_id="a", top_k=1)
        return [(event.name, event.data) async for event in stream]

    events = asyncio.run(heard())
    names = [name for name, _ in events]
    assert names[:5] == ["query_rewritten", "generation_start", "tool_call", "tool_result", "documents_retrieved"]
    assert names[5] == "token"
    assert names[-1] == "generation_complete"
    told = dict(events)
    assert told["tool_call"] == {"tool": "search_library", "arguments": {"query": "wall of the capital"}}
    assert (told["tool_result"]["outcome"], told["tool_result"]["numbers"][0]) == ("found", 2)
    assert told["documents_retrieved"]["attempt"] == 1
    text = "".join(data["text"] for name, data in events if name == "token")
    assert text == told["generation_complete"]["answer"] == "The wall was pulled down in 904. [2]"


# -- tools that reach outside ------------------------------------------------------------------------------------------


def test_they_are_off_as_the_mode_ships(llm, services, ask_library):
    script(llm, cbdb(), "Yang Yan proposed the two-tax reform in 780. [1]")
    answer = ask_library("Who proposed the two-tax reform?", explain=True)
    assert answer["metadata"]["explain"]["steps"][0]["outcome"] == "unknown_tool"
    assert services.requests == []


def test_a_record_of_a_tool_is_cited_as_what_it_is(llm, services, ask):
    """(a) of the specification."""
    script(llm, cbdb(), "王安石生于1021年。[9]")
    answer = ask(BORN)
    (citation,) = answer["citations"]
    number = citation["number"]
    address = f"{services.url}/person.php?id=1762"
    assert answer["answer"] == f"王安石生于1021年。[{number}]"
    assert (citation["origin"], citation["source"]) == ("tool", f"query_cbdb {address}")
    assert (citation["title"], citation["anchor"], citation["verdict"]) == ("王安石", {"url": address}, "supported")
    assert citation["quote"] == "王安石生于1021年。"
    assert services.requests == [("/person.php", {"o": "json", "name": "王安石"})]
    assert f'file="query_cbdb {address}" title="王安石"' in messages(llm, 1)[-1]["content"]


def test_a_receipt_knows_the_prompt_and_that_a_tools_record_cannot_be_read_again(llm, services, library, tmp_path):
    kept = []
    script(llm, cbdb(), "王安石生于1021年。")
    path = agent_file(tmp_path, outside_tools(services.url))
    with Runner("embedded", path, data_dir=library, keep_receipt=kept.append, keep_prompts=True) as runner:
        runner.ask(BORN, tenant_id="a")
    parents = load_stores("embedded", data_dir=library)["parents"]
    assert replay(kept[0], parents, tenant_id="a") == ["outside"]
    assert "王安石生于哪一年？" in kept[0].prompt["prompt_rendered"]["messages"][-1]["text"]


def test_an_error_that_passes_is_tried_again(llm, services, ask, waits, caplog):
    """(b) of the specification."""
    services.next("/person.php", status=503, times=2)
    script(llm, cbdb(), "王安石生于1021年。")
    with caplog.at_level("WARNING"):
        answer = ask(BORN)
    assert answer["citations"][0]["origin"] == "tool"
    assert [seconds for seconds in waits if seconds >= 1] == [1, 2]
    assert "trying again in 1.0 s" in caplog.text
    assert "trying again in 2.0 s" in caplog.text
    assert len(services.requests) == 3


def test_no_result_is_an_observation_and_the_next_tool_is_offered(llm, services, ask):
    """(c) of the specification."""
    script(llm, cbdb("王安"), calls(("search_wikipedia", {"query": "Wang Anshi"})), "王安石是宋代宰相。")
    answer = ask(BORN, explain=True)
    assert "查询无结果" in messages(llm, 1)[-1]["content"]
    assert "search_wikipedia" in offered(llm, 1)
    assert [step["outcome"] for step in answer["metadata"]["explain"]["steps"]] == ["empty", "found"]


@pytest.mark.parametrize("tenant", ["nobody", "a"], ids=["an empty library", "passages that do not answer"])
def test_what_failed_for_good_ends_in_a_friendly_sentence(llm, services, ask, waits, tenant):
    """(d) of the specification."""
    services.next("/person.php", body=b'{"Package": {"Pers')
    services.next("/w/api.php", status=500, times=4)
    both = calls(("query_cbdb", {"person_name": "王安石"}), ("search_wikipedia", {"query": "王安石"}))
    script(llm, both, "我不知道。" if tenant == "nobody" else "所查资料中没有找到这个问题的答案。")
    answer = ask(BORN, tenant_id=tenant)
    assert (answer["answer"], answer["status"], answer["citations"]) == (SORRY, "refused", [])
    assert [seconds for seconds in waits if seconds >= 1] == [1, 2, 4]
    assert offered(llm, 1) == ["search_library", "read_passage"]
    failed = [text for text in answer["metadata"]["warnings"] if "was not offered again" in text]
    assert [text.split("`")[1] for text in failed] == ["query_cbdb", "search_wikipedia"]


def test_a_model_that_calls_tools_for_ever_is_stopped(llm, services, ask_library):
    """(e) of the specification: four calls of tools, then one more call of the model without."""
    script(llm, calls(("search_library", {"query": "wall"})))
    answer = ask_library("Who proposed the two-tax reform?", explain=True)
    assert llm.calls == 5
    assert len(answer["metadata"]["explain"]["steps"]) == 4
    assert [bool(offered(llm, request)) for request in range(5)] == [True] * 4 + [False]
    assert answer["status"] == "refused"
    assert answer["answer"].startswith("No answer came about within the limit of steps.")


def test_a_model_whose_call_cannot_be_read_answers_without_tools(llm, ask_library):
    broken = {"tool_calls": [{"name": "search_library", "arguments": "no JSON"}]}
    script(llm, broken, "Yang Yan proposed the two-tax reform in 780. [1]")
    answer = ask_library("Who proposed the two-tax reform?")
    assert [bool(offered(llm, request)) for request in range(llm.calls)] == [True, False]
    assert answer["status"] == "answered"
    script(llm, broken)  # and nothing else
    answer = ask_library("杨炎提出了什么？")
    assert (llm.calls, answer["answer"], answer["status"]) == (2 + 2, SORRY, "refused")


@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_budget_keeps_the_last_call_for_the_answer(llm, ask_library, most):
    looking = [calls(("search_library", {"query": f"wall {number}"})) for number in range(most - 1)]
    script(llm, *looking, "The wall was pulled down in 904. [1]")
    answer = ask_library("When was the wall of Chang'an pulled down?", budget={"calls": most})
    assert answer["answer"].startswith("The wall was pulled down in 904.")
    assert (llm.calls, answer["metadata"]["llm_calls"]) == (most, most)
    assert [bool(offered(llm, request)) for request in range(most)] == [True] * (most - 1) + [False]


def test_the_first_messages_are_the_same_bytes_up_to_the_context(llm, services, ask, ask_library):
    """(f) of the specification."""
    script(llm, cbdb(), "王安石生于1021年。")
    for question in (BORN, "安禄山在哪里起兵？"):
        ask(question)
    prefixes = {
        json.dumps(messages(llm, request)[0]) + messages(llm, request)[1]["content"].partition("<sources>")[0]
        for request in range(llm.calls)
    }
    tools = {json.dumps(request.body["tools"]) for request in llm.requests}
    assert (len(prefixes), len(tools)) == (1, 1)
    system = messages(llm, 0)[0]["content"]
    definition = '{"arguments": {"additionalProperties": false'
    parts = ["你是“史官”", "首要准则：", "工具箱：", definition, "思考与行动（ReAct）：", "输出格式："]
    assert sorted(parts, key=system.index) == parts


def test_what_only_a_tool_says_stands_below_the_library(llm, services, ask):
    """The library has the wall pulled down in 904."""
    services.articles = [{"title": "Wall", "index": 1, "extract": "The wall was pulled down in 905.", "fullurl": "x"}]
    script(llm, calls(("search_wikipedia", {"query": "wall"})), "The wall was pulled down in 905.")
    answer = ask("When was the wall of the capital pulled down?")
    (claim,) = answer["metadata"]["claims"]
    assert claim["verdict"] == "partial"
    assert "only a tool says so" in claim["reason"]
    assert answer["citations"][0]["origin"] == "tool"
