"""Gives each request an id and a time, and is the last to hear of an error."""

import re
import time
import uuid

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shiguan.serving import metrics
from shiguan.serving.error_replies import error_response, log_failure

_GIVEN = re.compile(r"[A-Za-z0-9._-]{8,64}")
_METHODS = frozenset({"GET", "POST", "DELETE", "OPTIONS", "HEAD"})


class RequestIdentity:
    """
    ASGI middleware: `request.state.request_id`, the `X-Request-ID` of the reply, the count and the time.

    An id that the caller sends is kept if it is a plain one, so that it can be followed through a proxy. What fails
    behind it without an answer is answered with 500, and written to the log without the words of the request.
    """

    def __init__(self, app: ASGIApp) -> None:
        """Stand before an application."""
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if _GIVEN.fullmatch(given) else uuid.uuid4().hex
        scope["state"] = {**scope.get("state", {}), "request_id": request_id}
        started = time.perf_counter()
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-ID"] = request_id
            await send(message)

        try:
            await self.app(scope, receive, send_with_id)
        except Exception as error:
            log_failure(error, request_id)
            if status:
                raise
            await error_response(error, request_id)(scope, receive, send_with_id)
        finally:
            route = getattr(scope.get("route"), "path", None) or "unmatched"
            method = scope["method"] if scope["method"] in _METHODS else "other"
            metrics.REQUESTS.labels(route, method, str(status or 499)).inc()
            metrics.REQUEST_SECONDS.labels(route).observe(time.perf_counter() - started)
