"""From the moment a request is let in to its end: how many there may be, body, reply, time, how it is cut off."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shiguan.serving import telemetry
from shiguan.serving.authentication import METRICS_PATH, UPLOAD_PATH, current_principal, is_open
from shiguan.serving.current_request import in_request
from shiguan.serving.error_replies import ApiError, counted, error_response
from shiguan.serving.settings import ServingSettings
from shiguan.tenants import odd_value
from shiguan.text.terminal import one_line

_RETRY_AFTER = {"Retry-After": "1"}


class Admission:
    """Counts requests on the event loop, turns away at once what would only wait, and ends them all at a shutdown."""

    def __init__(self, settings: ServingSettings) -> None:
        self.max_in_flight = settings.max_in_flight
        self.half = max(1, settings.max_in_flight // 2)  # run, and the others wait; also a tenant's share
        self.in_flight = 0
        self.stopping = False
        self.ends: set[Callable[[str], None]] = set()
        self._of_tenant: Counter[str] = Counter()
        self._turns = asyncio.Semaphore(self.half)

    def stop(self) -> None:
        self.stopping = True
        for end in list(self.ends):
            end("shutting_down")

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


# Work that is cancelled has this many seconds to let go of what it holds.
_CANCEL_SECONDS = 1.0


class _Reply:
    """An ASGI `send` that remembers how far the reply is, and sends nothing more once it is closed."""

    def __init__(self, send: Send) -> None:
        self.started = self.complete = self.closed = False
        self._send = send

    async def __call__(self, message: Message) -> None:
        if self.closed:
            return
        self.started = True
        self.complete = message["type"] == "http.response.body" and not message.get("more_body", False)
        await self._send(message)


_MOST_VALUES = 20_000
_DEEPEST = 64


class RequestBody:
    """An ASGI `receive` that counts what arrives, whatever `Content-Length` says, and notices when the caller goes."""

    def __init__(self, receive: Receive, *, limit: int) -> None:
        self.limit = limit
        self._receive = receive
        self._first: Message | None = None
        self._size = 0
        self._complete = asyncio.Event()
        self._gone = asyncio.Event()

    async def start(self, *, whole: bool = False) -> bool:
        """Read the first message, or the whole body; that of an upload must not pile up here."""
        self._first = await self._next()
        parts = [self._first.get("body", b"")]
        while whole and not self._complete.is_set():
            if self._size > self.limit:
                raise too_large(self.limit)
            parts.append((await self._next()).get("body", b""))
        if whole and not self._gone.is_set():
            body = b"".join(parts)
            if len(body) <= self.limit:
                check_json(body)
            self._first = {"type": "http.request", "body": body, "more_body": False}
        return not self._gone.is_set()

    async def __call__(self) -> Message:
        if self._first is not None:
            message, self._first = self._first, None
        elif self._complete.is_set():
            await self._gone.wait()
            return {"type": "http.disconnect"}
        else:
            message = await self._next()
        if self._size > self.limit:
            raise too_large(self.limit)
        return message

    async def watch(self, gone: Callable[[], None]) -> None:
        await self._complete.wait()
        while not self._gone.is_set():
            await self._next()
        gone()

    async def _next(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self._gone.set()
            self._complete.set()
        else:
            self._size += len(message.get("body", b""))
            if not message.get("more_body", False):
                self._complete.set()
        return message


def too_large(limit: int) -> ApiError:
    return ApiError(
        "payload_too_large",
        message=f"The body has more than {limit:,} bytes.",
        next_step=f"Send at most {limit:,} bytes.",
    )


def check_json(body: bytes) -> None:
    """Refuse JSON that a library behind a route would fail on or be busy with; what is no JSON the route refuses."""
    try:
        level: list[Any] = [json.loads(body, object_pairs_hook=_with_each_name_once)]
    except RecursionError:
        raise _refused(f"more than {_DEEPEST} levels", "Nest less deep.") from None
    except ValueError:
        return
    depth = count = 0
    while level:
        depth += 1
        below: list[Any] = []
        if depth > _DEEPEST:
            raise _refused(f"more than {_DEEPEST} levels", "Nest less deep.")
        for value in level:
            if isinstance(value, (dict, list)):
                count += len(value)
                if count > _MOST_VALUES:
                    raise _refused(f"at least {count:,} values, the limit is {_MOST_VALUES:,}", "Send fewer at once.")
                below += (*value, *value.values()) if isinstance(value, dict) else value
            elif odd := odd_value(value):
                raise _refused(odd, "Send Unicode text and finite numbers of at most 64 bits.")
        level = below


def _with_each_name_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:  # of which only the last would count, of filters too
            raise _refused(f"the name `{one_line(name)[:40]}` twice", "Name every field of an object once.")
        found[name] = value
    return found


def _refused(what: str, next_step: str) -> ApiError:
    return ApiError("bad_request", message=f"The body has {what}.", next_step=next_step)


class RequestLifetime:
    """ASGI middleware: each request is a task that is cancelled when its caller, its time or the server ends."""

    def __init__(self, app: ASGIApp, *, settings: ServingSettings, admission: Admission) -> None:
        self.app = app
        self.settings = settings
        self.admission = admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        upload = scope["path"] == UPLOAD_PATH and scope["method"] == "POST"
        body = RequestBody(receive, limit=self.settings.max_upload_bytes if upload else self.settings.max_body_bytes)
        if is_open(scope["path"]) or scope["path"] == METRICS_PATH:
            await self.app(scope, body, send)
            return
        seconds = self.settings.upload_timeout if upload else self.settings.request_timeout
        principal, reply = current_principal(), _Reply(send)
        try:
            if int(Headers(scope=scope).get("content-length", "0")) > body.limit:
                raise too_large(body.limit)
            with self.admission.admitted(principal.tenant_id, limited=principal.key_id != "keyless"):
                work = self._work(scope, body, reply, seconds, whole=not upload)
                error = await self._run(work, body, reply, seconds)
        except ApiError as refused:
            error = refused
        if error is not None:
            counted(error)
            if not reply.started:
                await error_response(error)(scope, receive, send)

    async def _work(self, scope: Scope, body: RequestBody, reply: _Reply, seconds: float, *, whole: bool) -> None:
        with in_request(deadline=asyncio.get_running_loop().time() + seconds):
            if await body.start(whole=whole):
                async with self.admission.turn():
                    await self.app(scope, body, reply)

    async def _run(
        self, work: Coroutine[Any, Any, None], body: RequestBody, reply: _Reply, seconds: float
    ) -> BaseException | None:
        """Return how the work failed, or was ended. Raised here, it would keep itself alive, and with it the body."""
        ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def end(reason: str) -> None:
            if not ended.done():
                ended.set_result(reason)

        task = asyncio.create_task(work)
        # What work raises that was cut off has no reader.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        watch = asyncio.create_task(body.watch(lambda: end("disconnect")))
        self.admission.ends.add(end)
        try:
            first: set[asyncio.Future[Any]] = {task, ended}
            await asyncio.wait(first, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if task.done() or reply.complete:
                await asyncio.wait({task})
                error = None if task.cancelled() else task.exception()
                if not isinstance(error, ClientDisconnect):  # an upload notices it before `ended` does
                    return error
                end("disconnect")
            reason = ended.result() if ended.done() else "timeout"
            telemetry.CANCELLED.labels(reason).inc()
            task.cancel(reason)
            await asyncio.wait({task}, timeout=_CANCEL_SECONDS)
            return None if reason == "disconnect" or reply.complete else ApiError(reason)
        finally:
            reply.closed = True
            self.admission.ends.discard(end)
            watch.cancel()
            task.cancel()  # where the server itself cancels this request, its work must not outlive it
            with contextlib.suppress(asyncio.CancelledError):
                await watch
