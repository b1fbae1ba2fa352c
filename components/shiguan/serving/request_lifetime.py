"""From the moment a request is let in to its end: how many there may be, its reply, its time, how it is cut off."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shiguan.serving import telemetry
from shiguan.serving.authentication import METRICS_PATH, UPLOAD_PATH, current_principal, is_open
from shiguan.serving.error_replies import ApiError, counted, error_response
from shiguan.serving.request_body import RequestBody, check_length
from shiguan.serving.settings import ServingSettings

deadline_of_request: ContextVar[float | None] = ContextVar("deadline_of_request", default=None)
"""When, by the clock of the event loop, the request that is being served is given up."""

_RETRY_AFTER = {"Retry-After": "1"}


class Admission:
    """
    Counts requests, turns away at once what would only wait, and ends all of them when the server shuts down.

    Of at most `max_in_flight` in the server half run, and the others wait in their order; a tenant may have half. All
    of it happens on the event loop, so plain numbers are enough.
    """

    def __init__(self, settings: ServingSettings) -> None:
        self.max_in_flight = settings.max_in_flight
        self.half = max(1, settings.max_in_flight // 2)
        self.in_flight = 0
        self.stopping = False
        self.ends: set[Callable[[str], None]] = set()
        self._of_tenant: Counter[str] = Counter()
        self._turns = asyncio.Semaphore(self.half)

    def stop(self) -> None:
        self.stopping = True
        for end in list(self.ends):
            end("shutdown")

    @contextlib.contextmanager
    def admitted(self, tenant_id: str, *, limited: bool = True) -> Iterator[None]:
        if self.stopping:
            telemetry.REJECTED.labels("shutting_down").inc()
            raise ApiError("shutting_down", headers={"Retry-After": "5", "Connection": "close"})
        if self.in_flight >= self.max_in_flight:
            telemetry.REJECTED.labels("overloaded").inc()
            raise ApiError(
                "overloaded", message=f"The server has {self.in_flight} requests at once.", headers=_RETRY_AFTER
            )
        if limited and self._of_tenant[tenant_id] >= self.half:
            telemetry.REJECTED.labels("tenant_limit").inc()
            raise ApiError(
                "too_many_requests",
                message=f"This tenant has {self._of_tenant[tenant_id]} requests at once, its limit.",
                headers=_RETRY_AFTER,
            )
        self.in_flight += 1
        self._of_tenant[tenant_id] += 1
        try:
            with telemetry.IN_FLIGHT.track_inprogress():
                yield
        finally:
            self.in_flight -= 1
            self._of_tenant[tenant_id] -= 1
            if not self._of_tenant[tenant_id]:
                del self._of_tenant[tenant_id]

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        with telemetry.WAITING.track_inprogress():
            await self._turns.acquire()
        try:
            yield
        finally:
            self._turns.release()


# Whole lines: in the JSON of an event every line break is written `\\n`, so no text can look like one of these.
_TERMINAL = (b"\nevent: error\n", b"\nevent: generation_complete\n")
_DONE = b"\ndata: [DONE]\n"


class ResponseWatch:
    """
    An ASGI `send` that remembers how far the reply is.

    A stream of server-sent events owes its reader exactly one terminal event and then `[DONE]`. Where its producer is
    cut off, by a timeout, a shutdown or an error, `end` sends what is missing of these.
    """

    def __init__(self, send: Send) -> None:
        self.started = False
        self.complete = False
        self._send = send
        self._events = False
        self._terminal = False
        self._done = False
        self._tail = b"\n"
        self._closed = False

    async def __call__(self, message: Message) -> None:
        if self._closed:
            return
        if message["type"] == "http.response.start":
            self.started = True
            kind = Headers(raw=message.get("headers", [])).get("content-type", "")
            self._events = kind.startswith("text/event-stream")
        elif message["type"] == "http.response.body":
            if self._events:
                self._look_at(message.get("body", b""))
            self.complete = not message.get("more_body", False)
        await self._send(message)

    async def end(self, error: ApiError, scope: Scope) -> None:
        """End the reply with an error; from then on nothing more of the application gets through."""
        if self._closed or self.complete:
            return
        self._closed = True
        if not self.started:
            self.started = True
            await error_response(error)(scope, _nothing, self._send)
        elif self._events:
            body = b"" if self._tail == b"\n" or self._tail.endswith(b"\n\n") else b"\n\n"
            if not self._terminal and not self._done:
                data = json.dumps(error.body(), ensure_ascii=False)
                body += f"event: error\ndata: {data}\n\n".encode()
            if not self._done:
                body += b"data: [DONE]\n\n"
            await self._send({"type": "http.response.body", "body": body, "more_body": False})
        self.complete = True

    def close(self) -> None:
        """Send nothing more: the reader is gone."""
        self._closed = True

    def _look_at(self, part: bytes) -> None:
        # A mark may lie across two parts; its first half is then at the end of the tail.
        seen = self._tail + part
        self._terminal = self._terminal or any(mark in seen for mark in _TERMINAL)
        self._done = self._done or _DONE in seen
        self._tail = seen[-40:]


async def _nothing() -> Message:
    return {"type": "http.disconnect"}


# A stream that keeps its own time has this many seconds to say itself that it is over.
_STREAM_GRACE = 2.0
# Work that is cancelled has this many seconds to let go of what it holds.
_CANCEL_SECONDS = 1.0


def _is_upload(scope: Scope) -> bool:
    return bool(scope["path"] == UPLOAD_PATH and scope["method"] == "POST")


class RequestLifetime:
    """
    ASGI middleware: runs each request as a task, which ends when its work does, its caller hangs up, its time is over
    or the server shuts down.

    Ending a task cancels what it awaits: the pipeline, and with it the call of the LLM. That holds for replies in one
    piece, too, which no framework cancels by itself. The caller gets 504 or 503, in a stream an `error` event.
    """

    def __init__(self, app: ASGIApp, *, settings: ServingSettings, admission: Admission) -> None:
        self.app = app
        self.settings = settings
        self.admission = admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        upload = _is_upload(scope)
        limit = self.settings.max_upload_bytes if upload else self.settings.max_body_bytes
        body = RequestBody(receive, limit=limit)
        reply = ResponseWatch(send)
        if is_open(scope["path"]) or scope["path"] == METRICS_PATH:
            await self.app(scope, body, reply)
            return
        seconds = self.settings.upload_timeout if upload else self.settings.request_timeout
        principal = current_principal()
        try:
            with self.admission.admitted(principal.tenant_id, limited=principal.key_id != "keyless"):
                check_length(scope, limit)
                await self._run(scope, body, reply, seconds)
        except ApiError as error:
            await error_response(counted(error))(scope, receive, send)

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
        work = asyncio.create_task(self._work(scope, body, reply, loop.time() + seconds))
        first: set[asyncio.Future[Any]] = {work, ended}
        watch = asyncio.create_task(body.watch(lambda: end("disconnect")))
        self.admission.ends.add(end)
        try:
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            if ended.done() and not work.done() and not reply.complete:
                await self._cut_off(work, ended.result(), reply, scope)
            else:
                await asyncio.wait({work})
            await self._conclude(work, reply, scope)
        finally:
            self.admission.ends.discard(end)
            for timer in timers:
                timer.cancel()
            watch.cancel()
            if not work.done():
                # The server itself cancels this request; the work must not outlive it.
                work.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watch

    async def _work(self, scope: Scope, body: RequestBody, reply: ResponseWatch, deadline: float) -> None:
        deadline_of_request.set(deadline)
        if not await body.start(whole=not _is_upload(scope)):
            return
        async with self.admission.turn():
            await self.app(scope, body, reply)

    async def _cut_off(self, work: asyncio.Task[None], reason: str, reply: ResponseWatch, scope: Scope) -> None:
        telemetry.CANCELLED.labels(reason).inc()
        work.cancel(reason)
        await asyncio.wait({work}, timeout=_CANCEL_SECONDS)
        if reason == "disconnect":
            reply.close()
            return
        await reply.end(counted(ApiError("timeout" if reason == "timeout" else "shutting_down")), scope)

    async def _conclude(self, work: asyncio.Task[None], reply: ResponseWatch, scope: Scope) -> None:
        """Answer for work that failed: nothing leaves the server without an end."""
        if not work.done() or work.cancelled():
            return
        failure = work.exception()
        if failure is None or reply.complete:
            return
        await reply.end(counted(failure), scope)
