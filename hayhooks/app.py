"""
The ASGI application that is served: Hayhooks with the modes of a deployment, behind Shiguan's gate.

    shiguan serve                                   # the usual way
    uvicorn --app-dir hayhooks app:app --port 1416  # the same by hand, from a checkout

`app` is built when it is asked for: importing this file reads no environment and loads nothing.
"""

import os
import sys
from types import SimpleNamespace
from typing import Any

from fastapi import FastAPI

from shiguan.serving.authentication import check_open_host
from shiguan.serving.connections import limit_callers_connections
from shiguan.serving.engine import WrappedMode
from shiguan.serving.service import PlainStartupFailure, Service, include_routes, only_routes
from shiguan.serving.settings import ServingSettings


def create(settings: ServingSettings) -> Any:
    """
    Build the application of one deployment; its models are loaded when it starts.

    :param settings: The settings of the server.
    :returns: The ASGI application.
    :raises ConfigurationError: If the settings cannot work.
    """
    service = Service(settings)
    _set_hayhooks_up()
    # Hayhooks reads its settings when it is imported.
    from hayhooks.server.app import create_app  # noqa: PLC0415
    from hayhooks.server.routers import status_router  # noqa: PLC0415
    from hayhooks.server.utils.deploy_utils import commit_prepared_pipeline  # noqa: PLC0415
    from hayhooks.server.utils.models import PreparedPipeline  # noqa: PLC0415
    from hayhooks.server.utils.module_loader import create_pipeline_wrapper_instance  # noqa: PLC0415

    from hayhooks import BasePipelineWrapper  # noqa: PLC0415

    _log_without_values()

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
    service.install(application, deploy=deploy)
    return PlainStartupFailure(application)


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
            # Hayhooks would read any .env that lies around in or above the current folder.
            "PYTHON_DOTENV_DISABLED": "1",
        }
    )
    os.environ.setdefault("HAYHOOKS_LOG_LEVEL", "WARNING")
    os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")


def _log_without_values() -> None:
    """Print where something failed, and never the values of variables, which hold questions and keys."""
    from loguru import logger  # noqa: PLC0415

    def line(record: Any) -> str:
        error = record["exception"]
        if error is None:
            return "{time:YYYY-MM-DD HH:mm:ss} | {level: <8} | {message}\n"
        return "{time:YYYY-MM-DD HH:mm:ss} | {level: <8} | {name}:{line} " + error.type.__name__ + "\n"

    logger.remove()
    logger.add(sys.stderr, level=os.environ["HAYHOOKS_LOG_LEVEL"].upper(), format=line, diagnose=False, backtrace=False)
