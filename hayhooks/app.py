"""
The ASGI application that is served: Hayhooks with the modes of a deployment, behind Shiguan's gate.

    shiguan serve                                   # the usual way
    uvicorn --app-dir hayhooks app:app --port 1416  # the same by hand, from a checkout

`app` is built when it is asked for: importing this file reads no environment and loads nothing.
"""

import asyncio
import os
import sys
from inspect import Parameter, Signature, signature
from types import FrameType, SimpleNamespace
from typing import Annotated, Any, ClassVar

import uvicorn
from fastapi import APIRouter, FastAPI, Request
from haystack import AsyncPipeline, logging
from pydantic import BaseModel, Field
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute

from shiguan.engine.pipeline_run import MAX_QUESTION
from shiguan.errors import ConfigurationError
from shiguan.serving.authentication import Reader, check_open_host, check_tenant, current_principal
from shiguan.serving.engine import AnswerRequest, current_engine, read_request
from shiguan.serving.error_replies import ApiError, counted
from shiguan.serving.gate import Connection, limit_connections
from shiguan.serving.service import Service, include_routes
from shiguan.serving.settings import ServingSettings
from shiguan.serving.telemetry import log_handler, write_logs


class Expectation(BaseModel, extra="forbid"):
    """A passage that should have been used for a question."""

    question: Annotated[str, Field(min_length=1, max_length=MAX_QUESTION)]
    expected: Annotated[str, Field(min_length=1, max_length=2_000, pattern=r"\S", description="Its words, or its id.")]
    mode: Annotated[str, Field(max_length=40)] = "simple"


logger = logging.getLogger(__name__)
router = APIRouter()


@router.post("/api/v1/why", tags=["rag"], summary="Say where an expected passage was lost")
async def why(body: Expectation, request: Request, asker: Reader) -> dict[str, Any]:
    """Ask the question again and name the stage that lost the passage, with its rank at each."""
    # Here, since the server and the measuring of modes know nothing of each other.
    from shiguan.evaluation.attribution import (  # noqa: PLC0415
        ExpectedPassages,
        TracedMode,
        attribute,
    )

    runner = current_engine().runner(body.mode)
    stores = request.app.state.ingest_jobs.library.stores

    def look() -> dict[str, Any]:
        expected = ExpectedPassages(stores, asker.tenant_id).find(body.expected)
        found = attribute(TracedMode(runner).ask(body.question, tenant_id=asker.tenant_id).trace(), expected)
        return {**found.to_json(), "passages": expected.places()[:10]}

    return await asyncio.to_thread(look)


@router.get("/draw/{mode}", tags=["config"], response_class=PlainTextResponse)
async def draw(mode: str) -> Response:
    """
    Draw a mode.

    Hayhooks' own route of this name sends the pipeline to a public server to have it drawn. This one gives the text of
    a Mermaid diagram.
    """
    engine = current_engine()
    if mode not in engine.modes:
        raise ApiError("not_found", message="There is no such mode.", next_step=f"Modes: {', '.join(engine.modes)}.")
    pipeline = engine.runner(mode).pipeline
    return PlainTextResponse(mermaid(pipeline), media_type="text/vnd.mermaid")


def mermaid(pipeline: AsyncPipeline) -> str:
    """Write a pipeline as Mermaid's text."""
    names = {name: f"c{number}" for number, name in enumerate(pipeline.graph.nodes)}
    lines = ["flowchart TD"]
    for name, key in names.items():
        kind = type(pipeline.graph.nodes[name]["instance"]).__name__
        lines.append(f'  {key}["{name}<br/>{kind}"]')
    for sender, receiver, data in pipeline.graph.edges(data=True):
        lines.append(f'  {names[sender]} -->|"{data["from_socket"].name}"| {names[receiver]}')
    return "\n".join(lines) + "\n"


class WrappedMode:
    """A mode at Hayhooks' own routes, such as `/simple/run`: the engine's, for the tenant of the caller's key."""

    mode: ClassVar[str] = ""
    # A tool call of MCP or A2A has no API key, and so no tenant.
    skip_mcp: bool = True
    skip_a2a: bool = True
    pipeline: AsyncPipeline

    def setup(self) -> None:
        """Take the mode as the engine has loaded it."""
        self.pipeline = current_engine().runner(self.mode).pipeline

    async def run_api_async(self, **given: Any) -> dict[str, Any]:
        """Answer a question from the caller's documents."""
        asker = current_principal()
        request = read_request({"mode": self.mode, **given})
        check_tenant(asker, request.tenant_id)
        try:
            return await current_engine().ask(request, asker.tenant_id)
        except Exception as error:
            raise counted(error) from error


# Hayhooks reads from the signature what the route takes.
WrappedMode.run_api_async.__signature__ = Signature(  # type: ignore[attr-defined]
    [
        Parameter("self", Parameter.POSITIONAL_ONLY),
        *(one for one in signature(AnswerRequest).parameters.values() if one.name != "mode"),
    ],
    return_annotation=dict[str, Any],
)


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
        before = list(application.router.routes)
        for mode in service.modes:
            wrapper = type("PipelineWrapper", (WrappedMode, BasePipelineWrapper), {"mode": mode})
            made: Any = SimpleNamespace(PipelineWrapper=wrapper)  # in place of a file for each mode
            prepared = PreparedPipeline(mode, create_pipeline_wrapper_instance(made, allow_durable=False))
            commit_prepared_pipeline(prepared, app=application)
        check_deployed(application, before, service.modes)

    application = create_app()
    # Deploying, undeploying, uploads of code, traces, a drawing made by a public server: what is not put back cannot
    # be reached.
    only_routes(application)
    include_routes(application, status_router)
    include_routes(application, router)
    service.install(application, deploy=deploy)
    return application


def only_routes(app: FastAPI) -> None:
    """Take out every route that the application came with, and the pages that load foreign scripts."""
    app.router.routes.clear()
    app.docs_url = app.redoc_url = None
    # An address is right or wrong; a redirect would let a client send its body twice.
    app.router.redirect_slashes = False


def check_deployed(app: FastAPI, before: list[BaseRoute], modes: list[str]) -> None:
    """Make sure that deploying the modes added one route for each, and nothing else."""
    expected = {("POST", f"/{mode}/run") for mode in modes} | {("GET", app.openapi_url), ("HEAD", app.openapi_url)}
    known = {id(route) for route in before}
    for route in app.router.routes:
        came = {(method, getattr(route, "path", "")) for method in getattr(route, "methods", None) or ("*",)}
        if id(route) not in known and came - expected:
            raise ConfigurationError(
                f"The server would have the route {sorted(came)[0]} that nobody asked for. Check the version of "
                "Hayhooks: `pip install 'shiguan[serve]'`."
            )


def limit_callers_connections(settings: ServingSettings) -> str:
    """Do the same for the server that is loading the application, which says not who it is; give its address."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        config = frame.f_locals.get("self")
        if isinstance(config, uvicorn.Config):
            limit_connections(config, settings)
            # It chose these before it loaded the application.
            config.http_protocol_class, config.ws_protocol_class = Connection, None
            return config.host
        frame = frame.f_back
    logger.warning(
        "The server that loads the application is not uvicorn's command, so how large and how slow heads are "
        "is up to it. `shiguan serve` limits both."
    )
    return "127.0.0.1"


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
