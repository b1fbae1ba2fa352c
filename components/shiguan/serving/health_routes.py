"""/health, /ready, /metrics and /api/v1/rag/health: how the server is."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST

from shiguan import __version__
from shiguan.serving.error_replies import ApiError
from shiguan.serving.metrics import exposition
from shiguan.serving.principal import Principal, current_principal
from shiguan.serving.readiness import Readiness

router = APIRouter(tags=["health"])


@router.get("/health")
async def health() -> PlainTextResponse:
    """Say that the process is alive. Nothing is looked at."""
    return PlainTextResponse("ok\n")


@router.get("/ready")
async def ready(request: Request) -> Response:
    """Say whether questions can be answered: 200, or 503 with the parts that cannot work."""
    readiness: Readiness = request.app.state.readiness
    good, parts = await readiness.ready()
    if good:
        return JSONResponse({"status": "ready", "parts": parts})
    failed = ", ".join(f"`{part}`" for part, state in parts.items() if state != "ok")
    message = "The server is shutting down." if readiness.stopping else f"Not ready: {failed or 'starting'}."
    error = ApiError("shutting_down" if readiness.stopping else "not_ready", message=message)
    body = error.body(getattr(request.state, "request_id", None))
    return JSONResponse({**body, "parts": parts}, status_code=503, headers={"Retry-After": "2"})


@router.get("/api/v1/rag/health")
async def rag_health(request: Request, principal: Annotated[Principal, Depends(current_principal)]) -> dict[str, Any]:
    """Tell a caller what is served and how it is."""
    state = request.app.state
    good, parts = await state.readiness.ready()
    return {
        "status": "ready" if good else "degraded",
        "version": __version__,
        "deployment": state.settings.deployment,
        "modes": state.modes,
        "role": principal.role,
        "parts": parts,
        "limits": {
            "in_flight": state.settings.max_in_flight,
            "request_seconds": state.settings.request_timeout,
            "body_bytes": state.settings.max_body_bytes,
            "upload_bytes": state.settings.max_upload_bytes,
        },
    }


@router.get("/metrics")
async def metrics() -> Response:
    """Give the numbers to Prometheus; the authentication asks for a key of the role `metrics`."""
    return Response(exposition(), media_type=CONTENT_TYPE_LATEST)
