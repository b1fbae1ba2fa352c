"""What can be reached at the server: every route, and nothing of Hayhooks that nobody asked for."""

import importlib
import os
import sys
from pathlib import Path

import pytest
from haystack import AsyncPipeline

from shiguan.errors import ConfigurationError, UnsafePipelineError
from shiguan.serving import service
from shiguan.serving.service import listed_routes
from shiguan.serving.settings import ServingSettings

ROOT = Path(__file__).resolve().parents[2]

ROUTES = [
    ("POST", "/advanced/run"),
    ("GET", "/api/v1/documents"),
    ("POST", "/api/v1/documents"),
    ("GET", "/api/v1/documents/jobs/{job_id}"),
    ("DELETE", "/api/v1/documents/{source:path}"),
    ("POST", "/api/v1/rag/batch"),
    ("GET", "/api/v1/rag/health"),
    ("POST", "/api/v1/rag/query"),
    ("POST", "/api/v1/rag/query-stream"),
    ("GET", "/api/v1/receipts/{receipt_id}"),
    ("GET", "/draw/{mode}"),
    ("GET", "/health"),
    ("GET", "/metrics"),
    ("GET", "/openapi.json"),
    ("POST", "/precise/run"),
    ("GET", "/ready"),
    ("POST", "/simple/run"),
    ("GET", "/status"),
    ("GET", "/status/{pipeline_name}"),
    ("POST", "/v1/chat/completions"),
    ("GET", "/v1/models"),
    ("GET", "/v1/models/{model}"),
]


class EngineWithoutModels:
    """Loads nothing, so that routes can be looked at in a moment."""

    modes = ("simple", "advanced", "precise")

    def __init__(self, settings):
        self.settings = settings

    def runner(self, mode):
        return type("Runner", (), {"pipeline": AsyncPipeline()})

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


async def test_every_route_of_the_server_is_known(app_module, settings):
    application = app_module.create(settings).app
    async with application.router.lifespan_context(application):
        assert listed_routes(application) == ROUTES
        paths = application.openapi()["paths"]
        assert "/api/v1/documents" in paths
        assert not any("deploy" in path or "trace" in path or "files" in path for path in paths)
        assert (await application.state.readiness.ready()) == (
            True,
            {"stores": "ok", "models": "ok", "pipelines": "ok", "ingest": "ok"},
        )
    assert (await application.state.readiness.ready())[0] is False


@pytest.mark.parametrize("spoil", ["broken", "foreign", "missing"])
async def test_a_mode_that_cannot_be_deployed_stops_the_start(app_module, settings, tmp_path, monkeypatch, spoil):
    import shutil

    wrappers = tmp_path / "hayhooks" / "wrappers"
    shutil.copytree(ROOT / "hayhooks" / "wrappers", wrappers)
    if spoil == "broken":
        (wrappers / "precise" / "pipeline_wrapper.py").write_text("raise ImportError('no')\n")
    elif spoil == "missing":
        shutil.rmtree(wrappers / "precise")
    else:
        shutil.copytree(wrappers / "simple", wrappers / "other")
    monkeypatch.setattr(app_module, "resource_folder", lambda name: tmp_path / name)
    application = app_module.create(settings).app
    with pytest.raises(ConfigurationError, match="other" if spoil == "foreign" else "precise"):
        async with application.router.lifespan_context(application):
            pass


def test_a_route_that_comes_in_with_the_modes_stops_the_start(app_module, settings):
    from fastapi import FastAPI

    from shiguan.serving.service import check_deployed

    application = FastAPI()
    before = list(application.router.routes)
    application.add_api_route("/simple/run", lambda: None, methods=["POST"])
    check_deployed(application, before, ["simple"], ["simple"])
    application.add_api_route("/simple/debug", lambda: None, methods=["GET"])
    with pytest.raises(ConfigurationError, match="/simple/debug"):
        check_deployed(application, before, ["simple"], ["simple"])


def test_importing_the_file_builds_nothing_and_asking_for_app_does(app_module, monkeypatch, tmp_path):
    assert "app" not in vars(app_module)
    monkeypatch.setenv("SHIGUAN_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr(sys, "argv", ["uvicorn", "app:app"])
    assert app_module.app is app_module.app
    with pytest.raises(AttributeError):
        app_module.other  # noqa: B018


@pytest.mark.parametrize("arguments", [["--host", "0.0.0.0"], ["--host=::"], ["--port", "80", "--host", "10.0.0.1"]])
def test_uvicorn_on_another_address_needs_keys(app_module, monkeypatch, tmp_path, arguments):
    monkeypatch.setenv("SHIGUAN_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr(sys, "argv", ["uvicorn", "app:app", *arguments])
    with pytest.raises(ConfigurationError, match="shiguan keys add"):
        app_module.app  # noqa: B018
    monkeypatch.setenv("SHIGUAN_API_KEYS", "acme:read:" + "0" * 64)
    assert app_module.app is not None


def test_unsafe_deserialisation_is_refused(app_module, settings, monkeypatch):
    monkeypatch.setenv("HAYSTACK_UNSAFE_DESERIALIZATION", "1")
    with pytest.raises(UnsafePipelineError, match="HAYSTACK_UNSAFE_DESERIALIZATION"):
        app_module.create(settings)


def test_an_unknown_deployment_is_refused_with_the_known_ones(app_module, tmp_path):
    with pytest.raises(ConfigurationError, match="embedded"):
        app_module.create(ServingSettings(data_dir=tmp_path, deployment="nowhere"))
