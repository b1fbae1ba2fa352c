"""The one shape in which the server tells that something did not work, and the list of all types of it."""

import errno
import re
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from haystack import logging
from pydantic import ValidationError
from starlette.exceptions import HTTPException as StarletteHTTPException

from shiguan.errors import (
    AnswerError,
    ConfigurationError,
    EndpointError,
    RefusedError,
    ShiguanError,
    SourceError,
    StoreError,
    StoreFullError,
)
from shiguan.serving import metrics

logger = logging.getLogger(__name__)

MOST_HEAD_BYTES = 16 * 1024
"""The most bytes of a request's address and headers together; the address has half of it."""

_STAGE = re.compile(r"^The stage `([^`]{1,80})`")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """One type of error."""

    status: int
    message: str
    next_step: str


KINDS: dict[str, ErrorKind] = {
    "bad_request": ErrorKind(400, "The request cannot be read.", "Send JSON as docs/serving.md shows."),
    "refused": ErrorKind(400, "The request is outside the limits.", "Change it as the message says."),
    "unauthenticated": ErrorKind(
        401, "The request has no valid API key.", "Send `Authorization: Bearer KEY`; `shiguan keys add` makes a key."
    ),
    "forbidden": ErrorKind(403, "The key may not do this.", "Use a key with the role that it needs."),
    "tenant_mismatch": ErrorKind(
        403, "The body names another tenant than the key's.", "Leave the tenant out: it comes from the key."
    ),
    "not_local": ErrorKind(
        403,
        "No API keys are configured, so only programs on this machine may ask.",
        "Add a key with `shiguan keys add --tenant NAME --role write`, or ask from this machine as http://127.0.0.1.",
    ),
    "not_found": ErrorKind(404, "There is nothing at this address.", "Check the path; /openapi.json lists them."),
    "method_not_allowed": ErrorKind(
        405, "The address does not take this method.", "Check the method; /openapi.json lists them."
    ),
    "head_too_large": ErrorKind(
        431, "The address and headers are too large.", "Send at most 8 KiB of address and 16 KiB with all headers."
    ),
    "payload_too_large": ErrorKind(413, "The body is too large.", "Send less at once."),
    "invalid_request": ErrorKind(422, "Fields of the request are missing or wrong.", "Correct the fields named."),
    "too_many_requests": ErrorKind(
        429, "This tenant has too many requests at once.", "Wait for some to finish, then try again."
    ),
    "internal": ErrorKind(
        500, "Something went wrong inside the server.", "Try again; if it stays, look for the request id in its log."
    ),
    "answer_failed": ErrorKind(500, "A stage of the pipeline failed; nothing was answered.", "Try again."),
    "not_ready": ErrorKind(503, "The server is not ready.", "Try again when /ready answers 200."),
    "overloaded": ErrorKind(503, "The server has as many requests as it takes.", "Try again after `Retry-After`."),
    "shutting_down": ErrorKind(503, "The server is shutting down.", "Try again in some seconds."),
    "store_unavailable": ErrorKind(
        503, "The document store cannot do this now.", "Try again; /ready tells whether the stores are up."
    ),
    "storage_full": ErrorKind(
        503, "The server cannot write: its disk is full or at its quota.", "Free space on the data folder, try again."
    ),
    "upstream_unavailable": ErrorKind(503, "The language model gave no usable answer.", "Try again in some seconds."),
    "timeout": ErrorKind(504, "The request took too long.", "Ask less at once, or try again."),
}
"""Every `error.type` that the server gives. The names are part of the interface and do not change."""

# Of several with one status the first.
_BY_STATUS = {kind.status: name for name, kind in reversed(KINDS.items())}


class ApiError(HTTPException):
    """An error that the server answers with; an `HTTPException`, so that Hayhooks' own run routes let it through."""

    def __init__(
        self,
        kind: str,
        *,
        message: str | None = None,
        next_step: str | None = None,
        stage: str | None = None,
        fields: list[dict[str, str]] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        known = KINDS[kind]
        self.kind = kind
        self.message = message or known.message
        self.next_step = next_step or known.next_step
        self.stage = stage
        self.fields = fields
        super().__init__(status_code=known.status, detail=self.message, headers=dict(headers) if headers else None)

    def body(self, request_id: str | None) -> dict[str, Any]:
        """Give the JSON of the reply, which is also the data of a stream's `error` event."""
        error: dict[str, Any] = {
            "type": self.kind,
            "stage": self.stage,
            "message": self.message,
            "next_step": self.next_step,
            "request_id": request_id,
        }
        if self.fields is not None:
            error["fields"] = self.fields
        return {"error": error}


# What is raised, what is told, and how where its stage is known. The message of an endpoint's error names the endpoint
# and what it said, which is for whoever runs the server.
_TOLD: tuple[tuple[type[Exception], str, str], ...] = (
    (TimeoutError, "timeout", ""),
    (StoreFullError, "storage_full", ""),
    (StoreError, "store_unavailable", ""),
    (EndpointError, "upstream_unavailable", "The stage `{}` got no usable answer from its language model."),
    (AnswerError, "answer_failed", "The stage `{}` failed; nothing was answered."),
)


def as_api_error(error: BaseException) -> ApiError:
    """Translate what was raised into what a caller may be told: a message written for callers, else kind and stage."""
    named = _STAGE.search(str(error))
    stage = getattr(error, "stage", None) or (named[1] if named else None)
    if isinstance(error, ApiError):
        return error
    if isinstance(error, StarletteHTTPException):
        return ApiError(_BY_STATUS.get(error.status_code, "bad_request" if error.status_code < 500 else "internal"))
    if isinstance(error, RefusedError):
        return ApiError("refused", message=str(error), stage=stage)
    if isinstance(error, SourceError):
        return ApiError("refused", message=f"{error.source}: {error.cause}.", next_step=f"{error.next_step}.")
    for kind, told, message in _TOLD:
        if isinstance(error, kind):
            return ApiError(told, message=message.format(stage) if message and stage else None, stage=stage)
    if isinstance(error, ConfigurationError):
        return ApiError("internal", message="The server is not set up correctly.", stage=stage)
    if isinstance(error, OSError) and error.errno in _FULL:
        return ApiError("storage_full")
    return ApiError("internal")


def counted(error: BaseException, request_id: str | None) -> ApiError:
    """Translate an error for a caller who is about to be told of it, count it, and log what should not happen."""
    told = as_api_error(error)
    metrics.FAILURES.labels(told.kind).inc()
    if told.status_code >= 500 and not isinstance(error, ApiError):
        log_failure(error, request_id)
    return told


def error_response(error: BaseException, request_id: str | None) -> JSONResponse:
    told = as_api_error(error)
    headers = dict(told.headers or {})
    if told.kind == "unauthenticated":
        headers.setdefault("WWW-Authenticate", "Bearer")
    # Programs that know nothing of this server, such as Hayhooks' own command line, show `detail`.
    body = {**told.body(request_id), "detail": f"{told.message} {told.next_step}"}
    return JSONResponse(body, status_code=told.status_code, headers=headers)


def log_failure(error: BaseException, request_id: str | None) -> None:
    """Log where something failed and as what; its message, which may quote a question, is for debugging only."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    logger.error(
        "Request {request_id} failed: {kind}{summary} at {place}",
        request_id=request_id,
        kind=type(error).__name__,
        summary=f" ({error.summary})" if isinstance(error, EndpointError) and error.summary else "",
        place=" < ".join(f"{frame.filename.rsplit('/', 2)[-1]}:{frame.lineno}" for frame in reversed(frames)),
    )
    logger.debug("Request {request_id}: {error}", request_id=request_id, error=str(error))


_MOST_FIELDS = 20


def invalid_fields(error: ValidationError | RequestValidationError) -> ApiError:
    problems = list(error.errors())
    if any(problem["type"] == "json_invalid" for problem in problems):
        return ApiError("bad_request", message="The body is not valid JSON.")
    # The framework says first where the field stands: in the body, the path or the query.
    outer = 1 if isinstance(error, RequestValidationError) else 0
    # `msg` says what was expected; `input` would give the caller's text back and stays out.
    fields = [
        {
            "field": ".".join(str(part) for part in problem["loc"][outer:]) or "body",
            "problem": problem["msg"],
        }
        for problem in problems[:_MOST_FIELDS]
    ]
    named = ", ".join(dict.fromkeys(f"`{entry['field']}`" for entry in fields))
    return ApiError("invalid_request", message=f"Fields are missing or wrong: {named}.", fields=fields)


def install_error_replies(app: FastAPI) -> None:
    async def reply(request: Request, error: Exception) -> JSONResponse:
        told = as_api_error(error)
        request_id = getattr(request.state, "request_id", None)
        if told.status_code >= 500 and not isinstance(error, ApiError):
            log_failure(error, request_id)
        return error_response(told, request_id)

    async def invalid(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)  # noqa: S101
        return error_response(invalid_fields(error), getattr(request.state, "request_id", None))

    app.add_exception_handler(StarletteHTTPException, reply)
    app.add_exception_handler(ShiguanError, reply)
    app.add_exception_handler(RequestValidationError, invalid)
