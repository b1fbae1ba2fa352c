"""The application of `shiguan serve`: Shiguan's routes and Hayhooks' run routes, one for each mode, behind one gate."""

import os
import sys
from typing import Any

from fastapi import FastAPI
from haystack.tracing.tracer import disable_tracing

from shiguan.resources import resource_folder
from shiguan.serving.service import Service
from shiguan.serving.settings import ServingSettings
from shiguan.serving.telemetry import write_logs

_SETTINGS = {
    "HAYHOOKS_CORS_ALLOW_ORIGINS": "[]",
    "HAYHOOKS_SHOW_TRACEBACKS": "false",
    "HAYHOOKS_DURABLE_MODE": "false",
    "HAYHOOKS_CHAINLIT_ENABLED": "false",
    "HAYHOOKS_MONITORING_ENABLED": "false",
    "HAYHOOKS_TRACING_ENABLED": "false",
    "HAYHOOKS_TRACING_INCLUDE_HAYSTACK_SPANS": "false",
    "HAYHOOKS_TRACING_INCLUDE_PAYLOAD_VALUES": "false",
    "HAYHOOKS_ADDITIONAL_PYTHON_PATH": "",
    # Side by side its threads go through `sys.modules` while others import, and leave out a mode where that fails.
    "HAYHOOKS_STARTUP_DEPLOY_WORKERS": "1",
    # FastAPI's own traces quote addresses, with the words of a search, and messages of errors.
    "FASTAPI_OTEL_AUTO_CONFIGURE": "false",
    # Hayhooks would read any .env that lies around in or above the current folder.
    "PYTHON_DOTENV_DISABLED": "1",
}


def create(settings: ServingSettings) -> FastAPI:
    """
    Build the application of one deployment, with its models loaded.

    :param settings: The settings of the server.
    :returns: The ASGI application.
    :raises ConfigurationError: If the settings cannot work.
    """
    write_logs()
    disable_tracing()  # a tracer of another program would get questions and passages
    service = Service(settings)
    os.environ.update(_SETTINGS)
    os.environ.setdefault("HAYHOOKS_PIPELINES_DIR", str(resource_folder("hayhooks") / "pipelines"))
    os.environ.setdefault("HAYHOOKS_LOG_LEVEL", "WARNING")
    os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")
    # Hayhooks reads its settings when it is imported.
    from hayhooks import create_app  # noqa: PLC0415

    _log_without_values()
    # An address is right or wrong; a redirect would let a client send its body twice.
    application = FastAPI(docs_url=None, redoc_url=None, redirect_slashes=False)
    service.install(application, create_app())
    return application


def _log_without_values() -> None:
    """Print where something failed, and never the values of variables, which hold questions and keys."""
    from loguru import logger  # noqa: PLC0415

    def line(record: Any) -> str:
        error = record["exception"]
        if error is None:
            return "{time:YYYY-MM-DD HH:mm:ss} | {level: <8} | {message}\n"
        return "{time:YYYY-MM-DD HH:mm:ss} | {level: <8} | {name}:{line} " + error.type.__name__ + "\n"

    logger.remove()
    level = os.environ["HAYHOOKS_LOG_LEVEL"].upper()
    logger.add(sys.stderr, level=level, format=line, diagnose=False, backtrace=False)
