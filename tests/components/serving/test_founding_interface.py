"""Addresses, requests, answers and streams as clients know them from other engines, with requests as these send them."""

import json
from contextlib import closing
from functools import partial

import httpx
import openai
import pytest
from haystack.dataclasses import ChatMessage
from tests.doubles.served_app import Served
from tests.doubles.small_library import own_library
from tests.doubles.stand_in_llm import StandInLlm
from tests.doubles.stand_in_script import Fault

from shiguan.engine.runner import Runner
from shiguan.errors import RefusedError
from shiguan.llm.calls import no_answer_error
from shiguan.llm.failures import endpoint_error
from shiguan.llm.model_settings import NamedModel
from shiguan.serving import openai_routes, rag_routes, status_routes
from shiguan.serving.engine import Engine, in_use
from shiguan.serving.error_replies import as_api_error
from shiguan.serving.settings import ServingSettings

TENANT = "tenant-123"
QUESTION = "如何优化MySQL性能?"
TEXT = "优化MySQL性能的方法有三种。先给常查的列建索引。再用 EXPLAIN 查出慢的查询并改写。最后调大缓冲池的内存。"
ANSWER = "先给常查的列建索引[1]。再用 EXPLAIN 查出慢的查询并改写[1]。"
GENERATE = {
    "query": QUESTION, "tenant_id": TENANT, "rewrite_method": "multi", "top_k": 10, "include_citations": True,
}  # fmt: skip
QUERY = {"query": "如何优化MySQL性能？", "mode": "advanced", "top_k": 5}
CHAT = {"model": "shiguan-simple", "messages": [{"role": "user", "content": QUESTION}]}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    texts = {
        "mysql.md": f"# MySQL 手册\n\n## 性能\n\n{TEXT}\n", "tea.txt": "茶叶用八十度的水冲泡，三分钟即可。",
    }  # fmt: skip
    return own_library(tmp_path_factory.mktemp("library"), **{TENANT: texts})


@pytest.fixture(scope="module")
def model():
    with StandInLlm() as llm:
        yield llm


@pytest.fixture(autouse=True)
def llm(model):
    model.rules, model.default = [('"queries"', {"queries": ["MySQL 性能调优技巧"]})], ANSWER
    model.time_to_first_token = 0.0
    model.reset()
    return model


@pytest.fixture(scope="module")
def served(library, model):
    """The modes, loaded once behind the real gate."""
    settings = ServingSettings(data_dir=library)
    readiness = status_routes.Readiness()
    readiness.checks = {"models": bool}
    routers = [routes.router for routes in (status_routes, rag_routes, openai_routes)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", model.url)
        patch.setenv("OPENAI_API_KEY", "test")
        engine = Engine(settings, modes=["simple", "advanced"])
        engine.warm_up()
    with closing(engine), in_use(engine):
        yield partial(Served(settings, *routers, readiness=readiness), who=TENANT)


@pytest.fixture
def asked(served):
    async def ask(body, path="/api/v1/rag/generate"):
        done = await served(path, body)
        assert done.status == 200, done.body.decode()
        return done.json

    return ask


def lines(call):
    """The data of each event, and what stands last."""
    told = [line.removeprefix("data: ") for line in call.body.decode().splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in told[:-1]], told[-1]


async def test_health_is_told_while_the_file_of_models_is_broken(served, monkeypatch, tmp_path):
    health = (await served("/api/v1/rag/health")).json
    assert (health["status"], type(health["model"])) == ("ready", bool)
    (tmp_path / "embedded").mkdir()
    (tmp_path / "embedded" / "models.yml").write_text("models: [")
    monkeypatch.setenv("SHIGUAN_PIPELINES_DIR", str(tmp_path))
    health = await served("/api/v1/rag/health")
    assert health.status == 200
    assert (health.json["status"], health.json["model"], health.json["parts"]) == (
        "degraded", False, {"models": "failed"}
    )  # fmt: skip


async def test_a_batch_of_texts_has_its_other_fields_in_common(served):
    body = {"queries": [QUESTION, "", "茶叶用多少度的水冲泡？"], "mode": "advanced", "top_k": 1}
    results = (await served("/api/v1/rag/batch", body)).json["results"]
    assert [one["index"] for one in results] == [0, 1, 2]
    assert results[1]["error"]["type"] == "invalid_request"
    for index in (0, 2):
        answer = results[index]["answer"]
        assert (answer["query"], answer["mode"], len(answer["documents"])) == (body["queries"][index], "advanced", 1)


@pytest.mark.parametrize(("body", "status"), [
    ({"tenant_id": TENANT}, 422), ({"queries": []}, 422), ({"requests": []}, 422), ({"queries": ["x"] * 51}, 422),
    ({"queries": ["x"], "requests": [GENERATE]}, 422),
    ({"requests": [GENERATE], "mode": "advanced"}, 422),
    ({"requests": [GENERATE, {**GENERATE, "tenant_id": "somebody-else"}]}, 403),
])  # fmt: skip
async def test_a_batch_that_cannot_be_taken_is_refused_whole(served, llm, body, status):
    assert (await served("/api/v1/rag/batch", body)).status == status
    assert llm.calls == 0


@pytest.mark.parametrize(
    ("spelled", "method"), [("multi", "multi_query"), ("step-back", "step_back"), ("decomposition", "decompose")]
)
async def test_methods_may_be_spelled_as_elsewhere(asked, spelled, method):
    answer = await asked({**GENERATE, "mode": "advanced", "rewrite_method": spelled, "strict": True})
    assert answer["metadata"]["method"] == method
    assert not [one for one in answer["metadata"]["warnings"] if "Unknown method" in one]


async def test_an_unknown_method_searches_the_question_as_it_stands_and_says_so(asked, served):
    answer = await asked({**GENERATE, "mode": "advanced", "rewrite_method": "semantic"})
    assert answer["metadata"]["queries"] == [QUESTION]
    assert any("Unknown method `semantic`" in one and "`multi_query`" in one for one in answer["metadata"]["warnings"])
    refused = await served("/api/v1/rag/generate", {**GENERATE, "rewrite_method": "semantic", "strict": True})
    assert (refused.status, [one["field"] for one in refused.error["fields"]]) == (422, ["rewrite_method"])


async def test_a_citation_has_its_passage_words_and_score_and_the_metadata_the_seconds_of_each_part(asked):
    answer = await asked(QUERY, "/api/v1/rag/query")
    assert (answer["answer"], answer["query"], answer["status"]) == (ANSWER, QUERY["query"], "answered")
    assert answer["rewritten_query"] == answer["metadata"]["queries"][0]
    assert answer["retrieved_count"] == answer["metadata"]["retrieved"] == 2
    assert answer["generation_time"] == pytest.approx(answer["metadata"]["timings_ms"]["total"] / 1000, abs=0.001)
    [source] = answer["sources"]
    assert set(source) == {"id", "title", "content", "score", "source", "citation_id"}
    assert (source["source"], source["citation_id"], source["content"]) == ("mysql.md", "[1]", TEXT)
    assert [(one["citation_num"], one["source_id"]) for one in answer["citations"]] == [(1, source["id"])] * 2
    for one in answer["citations"]:
        assert (one["source_id"], one["chunk_id"], one["score"]) == (source["id"], source["id"], source["score"])
        assert one["content"] == one["quote"]
        assert one["content"] in TEXT
        assert 0 <= one["confidence"] <= 1
    told = answer["metadata"]
    assert (told["chunks_found"], told["model"]) == (2, "gpt-4.1-mini")
    assert told["usage"]["total_tokens"] > 0
    parts = [told[f"{name}_time"] for name in ("rewrite", "retrieve", "generate")]
    assert all(0 < seconds <= told["total_time"] for seconds in parts)
    assert told["total_time"] == answer["generation_time"]


async def test_a_passage_that_is_not_cited_can_be_read_without_another_call(asked):
    answer = await asked({**GENERATE, "source_characters": 8})
    contents = {one["source"]: one["content"] for one in answer["documents"]}
    assert contents == {"mysql.md": TEXT[:8], "tea.txt": "茶叶用八十度的水"}
    assert [one["source"] for one in answer["sources"]] == ["mysql.md"]


async def test_sources_and_citations_can_be_left_out(asked):
    bare = await asked({**GENERATE, "include_sources": False, "include_citations": False})
    assert (bare["sources"], bare["documents"], bare["citations"], bare["formatted_citations"]) == ([], [], [], "")
    assert bare["answer"] == ANSWER


async def test_a_stream_has_named_numbered_events_that_can_be_read_without_their_names_one_terminal_and_done(served):
    call = await served("/api/v1/rag/query-stream", GENERATE)
    told, done = lines(call)
    assert (call.headers["content-type"], done) == ("text/event-stream; charset=utf-8", "[DONE]")
    assert told[-1]["request_id"] == call.headers["x-request-id"]
    kinds = [one["type"] for one in told]
    assert [kind for kind in kinds if kind in ("generation_complete", "error")] == ["generation_complete"]
    heads = [line for line in call.body.decode().splitlines() if line.startswith(("id: ", "event: "))]
    assert heads == [head for at, kind in enumerate(kinds, 1) for head in (f"id: {at}", f"event: {kind}")]
    assert kinds[:3] == ["query_rewritten", "documents_retrieved", "generation_start"]
    assert (told[0]["content"], told[1]["count"]) == (QUESTION, 2)
    assert "".join(one["content"] for one in told if one["type"] == "token") == ANSWER
    assert kinds[-1] == "generation_complete"
    assert [one["citation_id"] for one in told[-1]["sources"]] == ["[1]"]
    assert [one["citation_num"] for one in told[-1]["citations"]] == [1, 1]


async def test_a_stream_may_have_only_passages_text_citations_and_end(served):
    call = await served("/api/v1/rag/generate/stream?events=basic", GENERATE)
    told, done = lines(call)
    assert done == "[DONE]"
    kinds = [one["type"] for one in told]
    assert (kinds[0], set(kinds[1:-2]), kinds[-2:]) == ("context", {"chunk"}, ["citations", "done"])
    assert told[0] == {"type": "context", "chunks_count": 2}
    assert "".join(one["content"] for one in told if one["type"] == "chunk") == ANSWER
    assert {"source_id", "chunk_id", "content", "score"} <= told[-2]["citations"][0].keys()
    seconds = {"total_time", "rewrite_time", "retrieve_time", "generate_time", "chunks_found", "model", "usage"}
    assert seconds <= told[-1]["metadata"].keys()
    ids = [line for line in call.body.decode().splitlines() if line.startswith("id: ")]
    assert ids == [f"id: {number}" for number in range(1, len(told) + 1)]


async def test_a_basic_stream_ends_with_one_error(served, llm):
    llm.rule("", "", fault=Fault(status=400))
    told, done = lines(await served("/api/v1/rag/generate/stream?events=basic", GENERATE))
    assert ([one["type"] for one in told], done) == (["context", "error"], "[DONE]")
    assert told[-1]["error"]["type"] == "upstream_refused"
    assert (await served("/api/v1/rag/generate/stream?events=odd", GENERATE)).status == 422


REFERENCES = {
    "plain": "[1] MySQL 手册 > 性能 (mysql.md)",
    "markdown": "- [1] MySQL 手册 > 性能 (mysql.md)",
    "html": '<ol class="references">\n<li value="1">MySQL 手册 &gt; 性能 (mysql.md)</li>\n</ol>',
}


@pytest.mark.parametrize("form", REFERENCES)
async def test_the_list_of_references_is_written_as_asked_for(asked, served, form):
    asking = {**GENERATE, "citation_format": form}
    answer = await asked(asking)
    assert (answer["formatted_citations"], answer["answer"]) == (REFERENCES[form], ANSWER)
    whole = f"{ANSWER}\n\n{REFERENCES[form]}"
    assert (await asked({**asking, "references": True}))["answer"] == whole
    told, _ = lines(await served("/api/v1/rag/generate/stream", {**asking, "references": True}))
    assert "".join(one["content"] for one in told if one["type"] == "token") == whole
    reply = await asked({**CHAT, "citation_format": form}, "/v1/chat/completions")
    assert reply["choices"][0]["message"]["content"] == whole
    reply = await asked({**CHAT, "references": False}, "/v1/chat/completions")
    assert reply["choices"][0]["message"]["content"] == ANSWER


async def test_what_needs_no_library_is_answered_without_a_search_and_says_so(asked, llm):
    for mode in ("simple", "advanced"):
        answer = await asked({**GENERATE, "query": "12*8等于多少？", "mode": mode})
        assert (answer["status"], answer["retrieved_count"], answer["citations"]) == ("unsearched", 0, [])
        assert answer["answer"].startswith("12*8 = 96。")
    assert llm.calls == 0


async def test_the_metrics_tell_of_each_method_how_it_did(asked, served):
    name = 'shiguan_method_seconds_count{method="multi_query",mode="advanced"} '

    async def counted():
        told = (await served("/metrics", who="", role="metrics")).body.decode()
        return next((float(line.removeprefix(name)) for line in told.splitlines() if line.startswith(name)), 0.0)

    before = await counted()
    answer = await asked({**GENERATE, "mode": "advanced"})
    assert answer["metadata"]["method"] == "multi_query"
    assert await counted() == before + 1


async def test_what_a_model_refused_is_not_to_be_tried_again_in_some_seconds(served, llm):
    llm.rule("", "", fault=Fault(status=404))
    done = await served("/api/v1/rag/generate", GENERATE)
    assert (done.status, done.error["type"], done.error["stage"]) == (502, "upstream_refused", "generator")
    assert done.error["next_step"].startswith("Asking again changes nothing")
    assert "127.0.0.1" not in done.body.decode()


async def test_the_openai_route_says_why_no_model_answered(served, llm):
    llm.rule("", "", fault=Fault(status=401))
    done = await served("/v1/chat/completions", CHAT)
    assert done.status == 200, done.body.decode()
    assert "语言模型不接受所设的 API 密钥" in done.json["choices"][0]["message"]["content"]


def test_a_reply_without_an_answer_is_an_error_of_the_model_and_a_content_filter_asks_for_other_words():
    body = {"code": "content_filter", "message": "The prompt was filtered."}
    request = httpx.Request("POST", "http://llm.example/v1")
    error = openai.BadRequestError("filtered", response=httpx.Response(400, request=request), body=body)
    model = NamedModel(name="default", model="m")
    told = as_api_error(endpoint_error(error, model, stage="generator", attempts=1, streamed=False))
    words, said = "Ask in other words.", "The language model answered 400 for model `m`."
    assert (told.kind, told.next_step, told.message) == ("upstream_refused", words, said)
    ended = ChatMessage.from_assistant("", meta={"model": "m", "finish_reason": "content_filter"})
    assert as_api_error(no_answer_error(ended)).next_step == words
    told = as_api_error(no_answer_error(ChatMessage.from_assistant("")))
    assert (told.kind, told.status_code, told.stage) == ("upstream_unavailable", 503, "generator")


async def test_a_helper_that_fails_is_told_by_its_model_and_its_own_stage(asked, llm):
    llm.rules = []
    llm.rule('"queries"', "", fault=Fault(status=400))
    answer = await asked({**GENERATE, "mode": "advanced", "query": "怎样优化MySQL的性能?"})
    told = " ".join(answer["metadata"]["warnings"])
    assert "the language model answered 400" in told
    assert "127.0.0.1" not in told
    assert "`generator`" not in told


def test_many_questions_are_answered_in_their_order_with_an_error_each(library, llm, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", llm.url)
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    llm.time_to_first_token = 0.05
    questions = [QUESTION, "", {"query": QUESTION, "top_k": 1}, {"query": QUESTION, "top_k": 99}, QUESTION, QUESTION]
    with Runner("embedded", "simple", data_dir=library) as runner:
        results = runner.ask_many(questions, tenant_id=TENANT, at_once=2)
        with pytest.raises(ValueError, match="`at_once` must be positive"):
            runner.ask_many([], tenant_id=TENANT, at_once=0)
    assert [one["index"] for one in results] == list(range(6))
    assert [one["answer"]["answer"] if "answer" in one else type(one["error"]) for one in results] == [
        ANSWER, RefusedError, ANSWER, RefusedError, ANSWER, ANSWER,
    ]  # fmt: skip
    assert len(results[2]["answer"]["documents"]) == 1
    assert llm.max_in_flight == 2
