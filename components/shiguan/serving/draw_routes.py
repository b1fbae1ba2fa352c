"""/draw: a mode's components and connections, as a picture or as the text of one."""

import tempfile
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import PlainTextResponse, Response
from haystack import AsyncPipeline

from shiguan.serving.engine import Engine
from shiguan.serving.error_replies import ApiError

router = APIRouter(tags=["config"])

_DRAW_SECONDS = 20


@router.get("/draw/{mode}", response_class=PlainTextResponse)
async def draw(mode: str, request: Request) -> Response:
    """
    Draw a mode.

    Hayhooks' own route of this name sends the pipeline to a public server to have it drawn. This one gives the text of
    a Mermaid diagram, and a PNG only where SHIGUAN_MERMAID_URL names a server to draw it.
    """
    engine: Engine = request.app.state.engine
    if mode not in engine.modes:
        raise ApiError("not_found", message="There is no such mode.", next_step=f"Modes: {', '.join(engine.modes)}.")
    pipeline = engine.runner(mode).pipeline
    url = request.app.state.settings.mermaid_url
    if not url:
        return PlainTextResponse(mermaid(pipeline), media_type="text/vnd.mermaid")
    return Response(await run_in_threadpool(_picture, pipeline, url), media_type="image/png")


def mermaid(pipeline: AsyncPipeline) -> str:
    """Write a pipeline as a Mermaid flowchart."""
    names = {name: f"c{number}" for number, name in enumerate(pipeline.graph.nodes)}
    lines = ["flowchart TD"]
    for name, key in names.items():
        kind = type(pipeline.graph.nodes[name]["instance"]).__name__
        lines.append(f'  {key}["{name}<br/>{kind}"]')
    for sender, receiver, data in pipeline.graph.edges(data=True):
        lines.append(f'  {names[sender]} -->|"{data["from_socket"].name}"| {names[receiver]}')
    return "\n".join(lines) + "\n"


def _picture(pipeline: AsyncPipeline, url: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mode.png"
        try:
            pipeline.draw(path=path, server_url=url, timeout=_DRAW_SECONDS)
        except Exception as error:  # Haystack raises what the drawing server's client raised.
            raise ApiError(
                "upstream_unavailable",
                message="The Mermaid server did not draw it.",
                next_step="Check SHIGUAN_MERMAID_URL.",
            ) from error
        return path.read_bytes()
