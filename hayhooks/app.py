"""
The ASGI application that is served: Hayhooks with the modes of a deployment, behind Shiguan's gate.

    shiguan serve                                   # the usual way
    uvicorn --app-dir hayhooks app:app --port 1416  # the same by hand, from a checkout

`app` is built when it is asked for: importing this file reads no environment and loads nothing.
"""

import asyncio
import os
import sys
from types import SimpleNamespace
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Request
from pydantic import BaseModel, ConfigDict, Field

from shiguan.engine.pipeline_run import MAX_QUESTION
from shiguan.serving.authentication import Reader, check_open_host
from shiguan.serving.connections import limit_callers_connections
from shiguan.serving.engine import WrappedMode, current_engine
from shiguan.serving.logs import log_handler, write_logs
from shiguan.serving.service import Service, include_routes, only_routes
from shiguan.serving.settings import ServingSettings


class Expectation(BaseModel):
    """A passage that should have been used for a question."""

    model_config = ConfigDict(extra="forbid")

    question: Annotated[str, Field(min_length=1, max_length=MAX_QUESTION)]
    expected: Annotated[str, Field(min_length=1, max_length=2_000, pattern=r"\S", description="Its words, or its id.")]
    mode: Annotated[str, Field(max_length=40)] = "simple"


router = APIRouter(prefix="/api/v1", tags=["rag"])


@router.post("/why", summary="Say where an expected passage was lost")
async def why(body: Expectation, request: Request, asker: Reader) -> dict[str, Any]:
    """Ask the question again and name the stage that lost the passage, with its rank at each."""
    # Here, since the server and the measuring of modes know nothing of each other.
    from shiguan.evaluation.attribution import ExpectedPassages, attribute  # noqa: PLC0415
    from shiguan.evaluation.traced_mode import TracedMode  # noqa: PLC0415

    runner = current_engine().runner(body.mode)
    stores = request.app.state.ingest_jobs.library.stores

    def look() -> dict[str, Any]:
        expected = ExpectedPassages(stores, asker.tenant_id).find(body.expected)
        found = attribute(TracedMode(runner).ask(body.question, tenant_id=asker.tenant_id).trace(), expected)
        return {**found.to_json(), "passages": expected.places()[:10]}

    return await asyncio.to_thread(look)


def create(settings: ServingSettings) -> Any:
    """
    Build the application of one deployment; its models are loaded when it starts.

    :param settings: The settings of the server.
    :returns: The ASGI application.
    :raises ConfigurationError: If the settings cannot work.
    """
    write_logs(settings.log_format)
    service = Service(settings)
    _set_hayhooks_up()
    # Hayhooks reads its settings when it is imported.
    from hayhooks.server.app import create_app  # noqa: PLC0415
    from hayhooks.server.routers import status_router  # noqa: PLC0415
    from hayhooks.server.utils.deploy_utils import commit_prepared_pipeline  # noqa: PLC0415
    from hayhooks.server.utils.models import PreparedPipeline  # noqa: PLC0415
    from hayhooks.server.utils.module_loader import create_pipeline_wrapper_instance  # noqa: PLC0415

    from hayhooks import BasePipelineWrapper  # noqa: PLC0415

    _log_without_values(settings.log_format)

    def deploy(application: FastAPI) -> None:
        for mode in service.modes:
            wrapper = type("PipelineWrapper", (WrappedMode, BasePipelineWrapper), {"mode": mode})
            made: Any = SimpleNamespace(PipelineWrapper=wrapper)  # in place of a file for each mode
            prepared = PreparedPipeline(mode, create_pipeline_wrapper_instance(made, allow_durable=False))
            commit_prepared_pipeline(prepared, app=application)

    application = create_app()
    # Deploying, undeploying, uploads of code, traces, a drawing made by a public server: what is not put back cannot
    # be reached.
    only_routes(application)
    include_routes(application, status_router)
    include_routes(application, router)
    service.install(application, deploy=deploy)
    return application


def __getattr__(name: str) -> Any:
    """Build `app` for a server that is given `app:app`."""
    if name != "app":
        raise AttributeError(name)
    settings = ServingSettings.from_environment()
    application = create(settings)
    check_open_host(limit_callers_connections(settings), keyless=application.state.keys.keyless)
    globals()["app"] = application
    return application


def _set_hayhooks_up() -> None:
    os.environ.update(
        {
            "HAYHOOKS_CORS_ALLOW_ORIGINS": "[]",
            "HAYHOOKS_SHOW_TRACEBACKS": "false",
            "HAYHOOKS_DURABLE_MODE": "false",
            "HAYHOOKS_CHAINLIT_ENABLED": "false",
            "HAYHOOKS_MONITORING_ENABLED": "false",
            "HAYHOOKS_TRACING_ENABLED": "false",
            "HAYHOOKS_TRACING_INCLUDE_HAYSTACK_SPANS": "false",
            "HAYHOOKS_TRACING_INCLUDE_PAYLOAD_VALUES": "false",
            "HAYHOOKS_ADDITIONAL_PYTHON_PATH": "",
            # FastAPI's own traces quote addresses, with the words of a search, and messages of errors.
            "FASTAPI_OTEL_AUTO_CONFIGURE": "false",
            # Hayhooks would read any .env that lies around in or above the current folder.
            "PYTHON_DOTENV_DISABLED": "1",
        }
    )
    os.environ.setdefault("HAYHOOKS_LOG_LEVEL", "WARNING")
    os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")


def _log_without_values(form: str) -> None:
    """Print where something failed, and never the values of variables, which hold questions and keys."""
    from loguru import logger  # noqa: PLC0415

    def line(record: Any) -> str:
        error = record["exception"]
        if form == "json":
            return "{message}" if error is None else "{name}:{line}"
        if error is None:
            return "{time:YYYY-MM-DD HH:mm:ss} | {level: <8} | {message}\n"
        return "{time:YYYY-MM-DD HH:mm:ss} | {level: <8} | {name}:{line} " + error.type.__name__ + "\n"

    logger.remove()
    sink: Any = log_handler(form) if form == "json" else sys.stderr
    logger.add(sink, level=os.environ["HAYHOOKS_LOG_LEVEL"].upper(), format=line, diagnose=False, backtrace=False)
