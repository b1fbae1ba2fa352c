"""What can be reached at the server: every route, and nothing of Hayhooks that nobody asked for."""

import importlib
import json
import os
import shutil
import sys
from inspect import signature
from pathlib import Path

import pytest
from tests.doubles.asgi_caller import AsgiCall

from shiguan.engine.library import Library
from shiguan.errors import ConfigurationError
from shiguan.haystack_compat import AsyncPipeline
from shiguan.serving import service
from shiguan.serving.engine import AnswerRequest
from shiguan.serving.long_work import LongWork
from shiguan.serving.settings import ServingSettings
from shiguan.serving.wrapped_mode import WrappedMode

ROOT = Path(__file__).resolve().parents[2]

MODES = ("simple", "advanced", "agent", "precise")
GET = [
    "/", "/docs", "/health", "/metrics", "/openapi.json", "/ready", "/ui/{name}", "/v1/models", "/v1/models/{model}",
    "/api/v1/conversations", "/api/v1/conversations/{conversation_id}", "/api/v1/conversations/{conversation_id}/export",
    "/api/v1/documents", "/api/v1/documents/jobs/{job_id}", "/api/v1/library/contents", "/api/v1/library/passages",
    "/api/v1/library/passages/{passage_id}", "/api/v1/library/search", "/api/v1/library/timeline", "/api/v1/rag/health",
    "/api/v1/receipts/{receipt_id}", "/api/v1/receipts/{receipt_id}/export", "/api/v1/receipts/{receipt_id}/places",
]  # fmt: skip
POST = [
    *(f"/{mode}/run" for mode in MODES), "/mcp", "/v1/chat/completions", "/api/v1/documents", "/api/v1/feedback",
    "/api/v1/rag/batch", "/api/v1/rag/generate", "/api/v1/rag/generate/stream", "/api/v1/rag/query",
    "/api/v1/rag/query-stream", "/api/v1/verify", "/api/v1/verify/text", "/api/v1/why",
]  # fmt: skip
OTHER = [
    ("DELETE", "/api/v1/conversations/{conversation_id}"), ("PATCH", "/api/v1/conversations/{conversation_id}"),
    ("DELETE", "/api/v1/documents/{source:path}"),
]  # fmt: skip
ROUTES = {*(("GET", path) for path in GET), *(("POST", path) for path in POST), *OTHER}


def listed_routes(app):
    found = set()
    for route in app.router.routes:
        path = getattr(route, "path", None)
        methods = getattr(route, "methods", None)
        if path is None or not methods:
            found.add(("*", path or type(route).__name__))
        else:
            found.update((method, path) for method in methods if method != "HEAD")
    return found


class EngineWithoutModels:
    """Loads nothing, so that routes can be looked at in a moment."""

    modes = MODES

    def __init__(self, settings):
        self.settings, self.library = settings, Library(data_dir=settings.data_dir)
        self.long_work = LongWork(settings.request_timeout)

    def runner(self, mode):
        return type("Runner", (), {"pipeline": AsyncPipeline()})

    async def ask(self, request, tenant_id):
        return {"asked": request.mode}

    def search(self, query, tenant_id, **options):
        return [], []

    def verify(self, given, tenant_id, on_item=None):
        return {"items": [], "counts": {}, "warnings": []}

    def warm_up(self):
        pass

    def close(self):
        pass


@pytest.fixture
def app_module(monkeypatch):
    """hayhooks/app.py, with everything that it sets undone afterwards."""
    before = dict(os.environ)
    monkeypatch.syspath_prepend(str(ROOT / "hayhooks"))
    monkeypatch.delitem(sys.modules, "app", raising=False)
    monkeypatch.setattr(service, "Engine", EngineWithoutModels)
    yield importlib.import_module("app")
    sys.modules.pop("app", None)
    from hayhooks.server.pipelines.registry import registry

    registry.clear()
    for name in set(os.environ) - set(before):
        del os.environ[name]


@pytest.fixture
def settings(tmp_path):
    return ServingSettings(data_dir=tmp_path / "data")


def test_modes_are_deployed_one_after_the_other(app_module, settings):
    """Hayhooks' threads would go through `sys.modules` while others import, and a mode be left out."""
    app_module.create(settings)
    assert importlib.import_module("hayhooks.settings").settings.startup_deploy_workers == 1


async def test_every_route_of_the_server_is_known(app_module, settings):
    application = app_module.create(settings)
    async with application.router.lifespan_context(application):
        assert listed_routes(application) == ROUTES
        paths = application.openapi()["paths"]
        assert "/api/v1/documents" in paths
        assert not any("deploy" in path or "trace" in path or "files" in path for path in paths)
        assert (await application.state.readiness.ready()) == (
            True,
            {"keys": "ok", "stores": "ok", "models": "ok", "pipelines": "ok", "ingest": "ok"},
        )
    assert (await application.state.readiness.ready())[0] is False


async def test_a_server_without_the_extra_says_what_mcp_needs(app_module, settings, monkeypatch):
    monkeypatch.setattr(service, "find_spec", lambda name: None)
    application = app_module.create(settings)
    async with application.router.lifespan_context(application):
        reply = await AsgiCall(application, "/mcp", body=b"{}", headers={"Content-Type": "application/json"}).done()
    assert (reply.status, "shiguan[mcp]" in reply.error["next_step"]) == (404, True)


ODD = {
    "surrogate": '"\\ud800"', "long number": "9" * 400, "longer number": "9" * 5000, "deep": "[" * 600 + "]" * 600,
    "deepest": "[" * 100_000 + "]" * 100_000, "many": "[" + "1," * 20_000 + "1]", "no number": "NaN",
}  # fmt: skip
FIELDS = (
    *("query", "mode", "top_k", "temperature", "filters", "history", "conversation_id", "task", "profile", "language"),
    *("tenant_id", "include_sources", "requests", "model", "messages", "stream", "stream_options", "tools", "n"),
    "surprise",
)
GIVEN = {"query": "Who?", "requests": [{"query": "Who?"}], "model": "shiguan-simple"}


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["by turns", "every"])
async def test_no_json_body_of_any_route_makes_an_error_of_the_server(app_module, settings, every):
    """Each odd value stands in a fifth of the fields of a route: over the seven of them, in every field."""
    application = app_module.create(settings)
    async with application.router.lifespan_context(application):
        for turn, odd in enumerate(ODD.values()):
            for path in POST:
                for field in FIELDS if every else FIELDS[turn % 5 :: 5]:
                    for body in spoiled_bodies(field, odd):
                        reply = await AsgiCall(
                            application, path, body=body.encode(), headers={"Content-Type": "application/json"}
                        ).done()
                        assert 400 <= reply.status < 500, (path, field, reply.body)
                        assert reply.error["message"]


def spoiled_bodies(field, odd):
    """Write an odd value into a field, into a filter and into a list."""
    fields = {name: json.dumps(value) for name, value in GIVEN.items() if name != field}
    fields["messages"] = '[{"role": "user", "content": "Who?"}]'
    for value in (
        odd,
        f'{{"field": "meta.a", "operator": "==", "value": {odd}}}',
        f'[{{"query": {odd}, "role": {odd}, "content": {odd}}}]',
    ):
        yield "{" + ", ".join(f'"{name}": {text}' for name, text in {**fields, field: value}.items()) + "}"


@pytest.fixture
def own_mode(tmp_path, monkeypatch):
    def make(name):
        folder = tmp_path / "own" / "embedded"
        folder.mkdir(parents=True)
        shutil.copy(ROOT / "pipelines" / "embedded" / "simple.yml", folder / f"{name}.yml")
        monkeypatch.setenv("SHIGUAN_PIPELINES_DIR", str(folder.parent))

    return make


async def test_a_mode_of_ones_own_is_served_and_listed_under_its_name(app_module, settings, own_mode, monkeypatch):
    own_mode("numbers")
    monkeypatch.setattr(EngineWithoutModels, "modes", (*MODES, "numbers"))
    application = app_module.create(settings)
    async with application.router.lifespan_context(application):
        assert listed_routes(application) == ROUTES  # its own wrapper is its owner's to write
        listed = json.loads((await AsgiCall(application, "/v1/models", method="GET").done()).body)
        assert "shiguan-numbers" in [model["id"] for model in listed["data"]]


@pytest.mark.parametrize("name", ["two words", "{mode}", "a" * 41, "a.b", "a%2fb"])
def test_a_mode_whose_name_is_no_part_of_an_address_is_refused(app_module, settings, own_mode, name):
    own_mode(name)
    with pytest.raises(ConfigurationError, match="cannot be served"):
        app_module.create(settings)


def test_the_routes_of_the_modes_take_the_same_options():
    taken = set(signature(WrappedMode.run_api_async).parameters)
    assert taken - {"headers"} == {"self", *AnswerRequest.model_fields} - {"mode"}


async def test_a_field_that_a_mode_does_not_take_is_refused_by_its_name(app_module, settings):
    """Hayhooks ignores it: a misspelled filter would answer from the whole library."""
    application = app_module.create(settings)
    json_body = {"Content-Type": "application/json"}
    async with application.router.lifespan_context(application):
        for path, given, named in (
            ("/simple/run", {"tenant_id": "default"}, []),
            ("/simple/run", {"tenent_id": "default"}, ["tenent_id"]),
            ("/agent/run", {"filters": None, "filter": None}, ["filter"]),
            ("/agent/run", {"mode": "simple"}, ["mode"]),
        ):
            body = json.dumps({"query": "Who?", **given}).encode()
            reply = await AsgiCall(application, path, body=body, headers=json_body).done()
            if not named:
                assert (reply.status, json.loads(reply.body)) == (200, {"result": {"asked": "simple"}})
                continue
            assert reply.status == 422, given
            assert [one["field"] for one in reply.error["fields"]] == named
            assert "/openapi.json lists them" in reply.error["message"]
        for body in (b"[1]", b"null", b"", b"{"):
            for headers in (json_body, {"Content-Type": "text/plain"}):
                reply = await AsgiCall(application, "/simple/run", body=body, headers=headers).done()
                assert 400 <= reply.status < 500, (body, headers)
