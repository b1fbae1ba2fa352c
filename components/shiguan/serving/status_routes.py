"""/health, /ready, /metrics and /api/v1/rag/health: the state of the server, and what it serves."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from haystack import logging
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from shiguan import __version__
from shiguan.engine.loading import has_model
from shiguan.errors import ConfigurationError
from shiguan.serving.authentication import Reader
from shiguan.serving.engine import current_engine
from shiguan.serving.error_replies import ApiError
from shiguan.serving.telemetry import REGISTRY

logger = logging.getLogger(__name__)

_CHECK_SECONDS = 3.0
_FRESH_SECONDS = 1.0


class Readiness:
    """Checks each part that questions need, in a thread with a time limit; a second's probes cost one check."""

    def __init__(self) -> None:
        self.stopping = False
        self.checks: dict[str, Callable[[], Any]] = {}
        self._states: dict[str, str] = {}
        self._looked = float("-inf")
        self._looking = asyncio.Lock()
        # Threads of their own, one for each part: what else the server does cannot keep a check waiting.
        self._threads = ThreadPoolExecutor(thread_name_prefix="ready")
        self._checking: dict[str, asyncio.Future[Any]] = {}

    async def ready(self) -> tuple[bool, dict[str, str]]:
        """Check every part; whether all are well, and the state of each."""
        async with self._looking:
            if time.monotonic() - self._looked > _FRESH_SECONDS:
                states = await asyncio.gather(*(self._state(part, check) for part, check in self.checks.items()))
                self._states = dict(zip(self.checks, states, strict=True))
                self._looked = time.monotonic()
        good = bool(self._states) and not self.stopping and set(self._states.values()) == {"ok"}
        return good, dict(self._states)

    async def _state(self, part: str, check: Callable[[], Any]) -> str:
        checking = self._checking.get(part)
        if checking is None or checking.done():  # one that is stuck is not started a second time
            checking = self._checking[part] = asyncio.get_running_loop().run_in_executor(self._threads, check)
        try:
            await asyncio.wait_for(asyncio.shield(checking), _CHECK_SECONDS)
        except TimeoutError:
            logger.warning("The part {part} did not answer in time.", part=part)
            return "slow"
        except Exception as error:
            logger.warning("The part {part} is not ready: {kind}.", part=part, kind=type(error).__name__)
            return "failed"
        return "ok"


router = APIRouter()


@router.get("/health", tags=["health"], response_class=PlainTextResponse)
async def health() -> PlainTextResponse:
    """Report that the process is alive; nothing is checked."""
    return PlainTextResponse("ok\n")


@router.get("/ready", tags=["health"])
async def ready(request: Request) -> Response:
    readiness: Readiness = request.app.state.readiness
    good, parts = await readiness.ready()
    if good:
        return JSONResponse({"status": "ready", "parts": parts})
    failed = ", ".join(f"`{part}`" for part, state in parts.items() if state != "ok")
    message = "The server is shutting down." if readiness.stopping else f"Not ready: {failed or 'starting'}."
    error = ApiError("shutting_down" if readiness.stopping else "not_ready", message=message)
    return JSONResponse({**error.body(), "parts": parts}, status_code=503, headers={"Retry-After": "2"})


@router.get("/api/v1/rag/health", tags=["health"])
async def rag_health(request: Request, principal: Reader) -> dict[str, Any]:
    """Report what is served, and its state."""
    engine = current_engine()
    settings = engine.settings
    good, parts = await request.app.state.readiness.ready()
    try:
        model = has_model(engine.deployment)
    except ConfigurationError as error:  # its `models.yml` was broken after the start
        logger.warning("Whether there is a model is unknown: {error}", error=str(error))
        good, model, parts["models"] = False, False, "failed"
    return {
        "status": "ready" if good else "degraded",
        "version": __version__,
        "deployment": engine.deployment,
        "modes": engine.modes,
        "model": model,
        "role": principal.role,
        "parts": parts,
        "limits": {
            "in_flight": settings.max_in_flight,
            "request_seconds": settings.request_timeout,
            "body_bytes": settings.max_body_bytes,
            "upload_bytes": settings.max_upload_bytes,
        },
    }


@router.get("/metrics", tags=["health"], response_class=PlainTextResponse)
async def metrics() -> Response:
    """Return the metrics for Prometheus; this needs a key of the role `metrics`."""
    return Response(generate_latest(REGISTRY), media_type=CONTENT_TYPE_LATEST)
