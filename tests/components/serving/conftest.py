"""A small application behind the real gate."""

import asyncio
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest
from fastapi import Depends, FastAPI, Request
from pydantic import BaseModel, Field
from tests.doubles.asgi_caller import AsgiCall

from shiguan.errors import AnswerError, RefusedError, StoreLockedError
from shiguan.serving import telemetry
from shiguan.serving.authentication import KeyRing, check_tenant, reading_principal, writing_principal
from shiguan.serving.current_request import Principal, current_request
from shiguan.serving.event_stream import EventStreamResponse, ServerEvent
from shiguan.serving.gate import install_gate
from shiguan.serving.keys import KeyFile
from shiguan.serving.request_lifetime import Admission
from shiguan.serving.settings import ServingSettings


class Question(BaseModel):
    query: str = Field(min_length=1, max_length=10)
    tenant_id: str | None = None


@dataclass
class Gated:
    app: FastAPI
    keys: KeyFile
    admission: Admission
    started: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    release: asyncio.Event = field(default_factory=asyncio.Event)

    def call(self, path: str, **more: Any) -> AsgiCall:
        return AsgiCall(self.app, path, **more)


async def until(condition) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0)


def count(name: str, **labels: str) -> float:
    return telemetry.REGISTRY.get_sample_value(name, labels) or 0.0


@pytest.fixture
def gated(tmp_path):  # noqa: C901
    """Make an application behind the gate, with any settings."""

    def make(**given: Any) -> Gated:  # noqa: C901
        settings = ServingSettings(data_dir=tmp_path, **given)
        app, admission = FastAPI(), Admission(settings)
        install_gate(app, settings, keys=KeyRing(settings), admission=admission)
        made = Gated(app, KeyFile(settings.keys_path), admission)

        @app.post("/ask")
        async def ask(question: Question, principal: Annotated[Principal, Depends(reading_principal)]):
            check_tenant(principal, question.tenant_id)
            inside = current_request().principal
            return {"tenant": principal.tenant_id, "inside": inside.tenant_id, "role": principal.role}

        @app.post("/write")
        async def write(principal: Annotated[Principal, Depends(writing_principal)]):
            return {"tenant": principal.tenant_id}

        @app.post("/wait")
        async def wait():
            made.started.append(current_request().id)
            try:
                await made.release.wait()
            except asyncio.CancelledError:
                made.cancelled.append(current_request().id)
                raise
            return {"waited": True}

        @app.post("/stream")
        async def stream():
            async def events():
                yield ServerEvent({}, "token", 1)
                made.started.append("stream")
                try:
                    await made.release.wait()
                except asyncio.CancelledError:
                    made.cancelled.append("stream")
                    raise
                yield ServerEvent({}, "generation_complete", 2)

            return EventStreamResponse(events())

        @app.post("/broken-stream/{after}")
        async def broken_stream(after: int):
            async def events():
                for name in ("token", "generation_complete")[:after]:
                    yield ServerEvent({}, name)
                raise RuntimeError("the text of a document")

            return EventStreamResponse(events())

        @app.post("/fail/{kind}")
        async def fail(kind: str):
            raise {
                "refused": RefusedError("The question is empty. Type one."),
                "answer": AnswerError("The stage failed: KeyError: 'the text of a document'.", stage="generator"),
                "locked": StoreLockedError("The data folder `/srv/secret` is open."),
                "full": OSError(28, "No space left on device", "/srv/secret"),
                "bug": RuntimeError("the text of a document"),
            }[kind]

        @app.post("/api/v1/documents")
        @app.post("/echo")
        async def echo(request: Request):
            return {"bytes": len(await request.body())}

        @app.get("/metrics")
        async def metrics():
            return {"numbers": True}

        @app.get("/health")
        async def health():
            return {"alive": True}

        return made

    return make
