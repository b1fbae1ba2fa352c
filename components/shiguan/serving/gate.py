"""The middleware in front of the routes: each request's id, time, key and turn."""

import json
import re
import time
import uuid

import h11
from fastapi import FastAPI
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from shiguan.serving import telemetry
from shiguan.serving.authentication import Authentication, KeyRing
from shiguan.serving.current_request import in_request
from shiguan.serving.error_replies import ApiError, error_response, install_error_replies, log_failure
from shiguan.serving.request_lifetime import Admission, RequestLifetime
from shiguan.serving.settings import ServingSettings

MOST_HEAD_BYTES = 16 * 1024
"""The most bytes of a request's address and headers together; the address has half of it."""

_GIVEN = re.compile(r"[A-Za-z0-9._-]{8,64}")
_METHODS = ("GET", "POST", "PATCH", "DELETE")


class RequestIdentity:
    """ASGI middleware: gives a request its id, a plain one of the caller's own, counts it, and answers a failure."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if _GIVEN.fullmatch(given) else uuid.uuid4().hex
        started = time.perf_counter()
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-ID"] = request_id
            await send(message)

        method = scope["method"] if scope["method"] in (*_METHODS, "OPTIONS", "HEAD") else "other"
        with in_request(id=request_id):
            try:
                _check_head(scope)
                await self.app(scope, receive, send_with_id)
            except Exception as error:
                if not isinstance(error, ApiError):
                    log_failure(error)
                if status:
                    # uvicorn would log the error with its message; a reply without an end closes the connection.
                    return
                await error_response(error)(scope, receive, send_with_id)
            finally:
                telemetry.REQUESTS.labels(_route(scope), method, str(status or 499)).inc()
                telemetry.REQUEST_SECONDS.labels(_route(scope)).observe(time.perf_counter() - started)


def _route(scope: Scope) -> str:
    return getattr(scope.get("route"), "path", None) or "unmatched"


def _check_head(scope: Scope) -> None:
    address = len(scope["path"]) + len(scope.get("query_string", b""))
    size = address + sum(len(name) + len(value) for name, value in scope["headers"])
    if address > MOST_HEAD_BYTES // 2 or size > MOST_HEAD_BYTES:
        raise ApiError("head_too_large", message=f"The address has {address:,} bytes, with all headers it is {size:,}.")


def install_gate(app: FastAPI, settings: ServingSettings, *, keys: KeyRing, admission: Admission) -> None:
    """Add the middleware, from outside in: request id, allowed origins, key, turn and time."""
    # The last one is the outermost.
    app.add_middleware(RequestLifetime, settings=settings, admission=admission)
    app.add_middleware(Authentication, keys=keys, origins=settings.cors_origins)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.cors_origins),
            allow_methods=_METHODS,
            allow_headers=["Authorization", "Content-Type", "X-API-Key", "X-Request-ID", "X-Conversation-Id"],
            expose_headers=["X-Request-ID", "Retry-After", "Location"],
        )
    app.add_middleware(RequestIdentity)
    install_error_replies(app)


class Connection(H11Protocol):
    """Ends its request when the server shuts down, and refuses every too large head: h11 measures unfinished ones."""

    def shutdown(self) -> None:
        self.app_state["stop"]()
        super().shutdown()

    def data_received(self, data: bytes) -> None:
        heads = self.conn.their_state is h11.IDLE
        if heads and len(data) > MOST_HEAD_BYTES and data.find(b"\r\n\r\n", 0, MOST_HEAD_BYTES) < 0:
            body = json.dumps(ApiError("head_too_large").body()).encode()
            head = "HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Type: application/json"
            self.transport.write(f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            self.transport.close()
            return
        super().data_received(data)
