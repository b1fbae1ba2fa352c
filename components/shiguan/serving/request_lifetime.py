"""From the moment a request is let in to its end: its turn, its time, and what happens when it is cut off."""

import asyncio
import contextlib
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from shiguan.serving import metrics
from shiguan.serving.admission import Admission
from shiguan.serving.authentication import METRICS_PATH, OPEN_PATHS
from shiguan.serving.error_replies import ApiError, as_api_error, error_response, log_failure
from shiguan.serving.principal import Principal
from shiguan.serving.request_body import RequestBody, check_length
from shiguan.serving.response_watch import ResponseWatch
from shiguan.serving.settings import ServingSettings

UPLOAD_PATH = "/api/v1/documents"
_UNLIMITED = OPEN_PATHS | {METRICS_PATH}
# A stream that keeps its own time has this many seconds to say itself that it is over.
_STREAM_GRACE = 2.0
# Work that is cancelled has this many seconds to let go of what it holds.
_CANCEL_SECONDS = 1.0


class RequestLifetime:
    """
    ASGI middleware: runs each request as a task, which ends when its work does, its caller hangs up, its time is over
    or the server shuts down.

    Ending a task cancels what it awaits: the pipeline, and with it the call of the LLM. That holds for replies in one
    piece, too, which no framework cancels by itself. The caller gets 504 or 503, in a stream an `error` event.
    """

    def __init__(self, app: ASGIApp, *, settings: ServingSettings, admission: Admission) -> None:
        """Stand before an application."""
        self.app = app
        self.settings = settings
        self.admission = admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        upload = scope["path"] == UPLOAD_PATH and scope["method"] == "POST"
        limit = self.settings.max_upload_bytes if upload else self.settings.max_body_bytes
        body = RequestBody(receive, limit=limit)
        reply = ResponseWatch(send)
        if scope["path"] in _UNLIMITED:
            await self.app(scope, body, reply)
            return
        seconds = self.settings.upload_timeout if upload else self.settings.request_timeout
        principal: Principal = scope["state"]["principal"]
        try:
            with self.admission.admitted(principal.tenant_id, limited=principal.key_id != "keyless"):
                check_length(scope, limit)
                await self._run(scope, body, reply, seconds)
        except ApiError as error:
            metrics.record_failure(error.kind)
            await error_response(error, scope["state"].get("request_id"))(scope, receive, send)

    async def _run(self, scope: Scope, body: RequestBody, reply: ResponseWatch, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[str] = loop.create_future()

        def end(reason: str) -> None:
            if not ended.done():
                ended.set_result(reason)

        def time_is_over() -> None:
            if reply.started and not reply.complete:
                timers.append(loop.call_later(_STREAM_GRACE, end, "timeout"))
            else:
                end("timeout")

        timers = [loop.call_later(seconds, time_is_over)]
        scope["state"]["deadline"] = loop.time() + seconds
        work = asyncio.create_task(self._work(scope, body, reply))
        first: set[asyncio.Future[Any]] = {work, ended}
        watch = asyncio.create_task(body.watch(lambda: end("disconnect")))
        try:
            with self.admission.stoppable(end):
                await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            if ended.done() and not work.done() and not reply.complete:
                await self._cut_off(work, ended.result(), reply, scope)
            else:
                await asyncio.wait({work})
            await self._conclude(work, reply, scope)
        finally:
            for timer in timers:
                timer.cancel()
            watch.cancel()
            if not work.done():
                # The server itself cancels this request; the work must not outlive it.
                work.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watch

    async def _work(self, scope: Scope, body: RequestBody, reply: ResponseWatch) -> None:
        if not await body.start():
            return
        async with self.admission.turn():
            await self.app(scope, body, reply)

    async def _cut_off(self, work: asyncio.Task[None], reason: str, reply: ResponseWatch, scope: Scope) -> None:
        metrics.CANCELLED.labels(reason).inc()
        work.cancel(reason)
        await asyncio.wait({work}, timeout=_CANCEL_SECONDS)
        if reason == "disconnect":
            reply.close()
            return
        error = ApiError("timeout" if reason == "timeout" else "shutting_down")
        metrics.record_failure(error.kind)
        await reply.end(error, scope["state"].get("request_id"), scope)

    async def _conclude(self, work: asyncio.Task[None], reply: ResponseWatch, scope: Scope) -> None:
        """Answer for work that failed: nothing leaves the server without an end."""
        if not work.done() or work.cancelled():
            return
        failure = work.exception()
        if failure is None or reply.complete:
            return
        request_id = scope["state"].get("request_id")
        told = as_api_error(failure)
        if not isinstance(failure, ApiError):
            log_failure(failure, request_id)
        metrics.record_failure(told.kind)
        await reply.end(told, request_id, scope)
