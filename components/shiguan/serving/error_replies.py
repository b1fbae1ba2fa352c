"""Error replies: their one shape, and the types of errors."""

import errno
import traceback
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from haystack import logging
from pydantic import ValidationError
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.routing import Match

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
from shiguan.resources import read_table
from shiguan.serving import telemetry
from shiguan.serving.current_request import current_request

logger = logging.getLogger(__name__)

# About the time that a restart of a server behind the stores takes.
_RETRY_SECONDS = "5"


class ErrorKind(NamedTuple):
    """One type of error."""

    status: int
    message: str
    next_step: str


KINDS = {name: ErrorKind(**row) for name, row in read_table(Path(__file__).with_name("error_kinds.yaml")).items()}
# If several have one status, the first.
_BY_STATUS = {kind.status: name for name, kind in reversed(KINDS.items())}


class ApiError(HTTPException):
    """An error as the server replies it; an `HTTPException`, so that Hayhooks' own run routes do not change it."""

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
        # A message may quote half a character, which no reply can hold.
        self.message = (message or known.message).encode("utf-8", "replace").decode()
        self.next_step = next_step or known.next_step
        self.stage = stage
        self.fields = fields
        self.is_counted = False  # a run route of Hayhooks and the handler of errors both count it
        super().__init__(status_code=known.status, detail=self.message, headers=dict(headers) if headers else None)

    def body(self) -> dict[str, Any]:
        """Build the reply; OpenAI's clients read `type`, `code` and `param`, others `detail`."""
        error: dict[str, Any] = {
            "type": self.kind,
            "code": self.kind,
            "param": self.fields[0]["field"].partition(".")[0] if self.fields else None,
            "stage": self.stage,
            "message": self.message,
            "next_step": self.next_step,
            "request_id": current_request().id,
        }
        if self.fields is not None:
            error["fields"] = self.fields
        return {"error": error, "detail": f"{self.message} {self.next_step}"}


_NOT_AGAIN = "Asking again changes nothing: the operator finds the cause in the server's log"
_REFUSED = {
    "content": "Ask in other words.",
    "access": f"{_NOT_AGAIN}, and the name of the key to correct.",
    "request": f"{_NOT_AGAIN}. A shorter question or a smaller `top_k` may help.",
}


def as_api_error(error: BaseException) -> ApiError:  # a table of cases
    """Translate an exception into what a caller may read; the message of an endpoint is for the operator alone."""
    stage = error.stage or None if isinstance(error, AnswerError) else None
    match error:
        case ApiError():
            return error
        case StarletteHTTPException(status_code=status):
            return ApiError(_BY_STATUS.get(status, "bad_request" if status < 500 else "internal"))
        case RefusedError():
            return ApiError("refused", message=str(error))
        case SourceError():
            return ApiError("refused", message=f"{error.source}: {error.cause}.", next_step=f"{error.next_step}.")
        case EndpointError(refusal=str() as refusal) if refusal:
            cause = f"{error.cause[:1].upper()}{error.cause[1:]}."
            return ApiError("upstream_refused", message=cause, stage=stage, next_step=_REFUSED[refusal])
        case TimeoutError():
            return ApiError("timeout", stage=stage)
        case StoreFullError() | OSError(errno=errno.ENOSPC | errno.EDQUOT | errno.EFBIG):
            return ApiError("storage_full")
        case StoreError():
            return ApiError("store_unavailable")
        case EndpointError():
            unusable = f"The language model of the stage `{stage}` gave no usable answer."
            return ApiError("upstream_unavailable", message=unusable if stage else None, stage=stage)
        case AnswerError():
            failed = f"The stage `{stage}` failed; nothing was answered."
            return ApiError("answer_failed", message=failed if stage else None, stage=stage)
        case ConfigurationError():
            return ApiError("internal", message="The server is not set up correctly.")
        case _:
            return ApiError("internal")


def counted(error: BaseException) -> ApiError:
    """Translate an error for the caller, count it once, and log it if it should not happen."""
    reply = as_api_error(error)
    if not reply.is_counted:
        reply.is_counted = True
        telemetry.FAILURES.labels(reply.kind).inc()
    if reply.status_code >= 500 and not isinstance(error, ApiError):
        log_failure(error)
    return reply


def error_response(error: BaseException) -> JSONResponse:
    reply = as_api_error(error)
    headers = dict(reply.headers or {})
    if reply.kind == "unauthenticated":
        headers.setdefault("WWW-Authenticate", "Bearer")
    if reply.kind == "store_unavailable":
        headers.setdefault("Retry-After", _RETRY_SECONDS)
    return JSONResponse(reply.body(), status_code=reply.status_code, headers=headers)


def log_failure(error: BaseException) -> None:
    """Log type and place of a failure; its message, which may quote a question, only at the level debug."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    logger.error(
        "Request {request_id} failed: {kind}{summary} at {place}",
        request_id=current_request().id,
        kind=type(error).__name__,
        summary=f" ({error.summary})" if isinstance(error, EndpointError) and error.summary else "",
        place=" < ".join(f"{frame.filename.rsplit('/', 2)[-1]}:{frame.lineno}" for frame in reversed(frames)),
    )
    logger.debug("Request {request_id}: {error}", request_id=current_request().id, error=str(error))


_MOST_FIELDS = 20


def refuse_unknown(place: str, given: Iterable[str], known: Collection[str]) -> None:
    """Refuse names in the body or the query that a route does not take."""
    if unknown := [name for name in given if name not in known]:
        raise RequestValidationError([{"type": "extra_forbidden", "loc": (place, name)} for name in unknown])


async def check_query(request: Request) -> None:
    """Refuse a parameter that a route does not take, or takes once and is given twice: one would limit nothing."""
    known = {field.alias: field.field_info.annotation for field in request.scope["route"].dependant.query_params}
    refuse_unknown("query", request.query_params, known)
    single = [name for name, kind in known.items() if kind != list[str] | None]
    if twice := [name for name in single if len(request.query_params.getlist(name)) > 1]:
        problem = {"type": "given_twice", "msg": "it is given more than once, and one value is expected"}
        raise RequestValidationError([{**problem, "loc": ("query", name)} for name in twice])


def invalid_fields(error: ValidationError | RequestValidationError) -> ApiError:
    problems = list(error.errors())
    if any(problem["type"] == "json_invalid" for problem in problems):
        return ApiError("bad_request", message="The body is not valid JSON.")
    # FastAPI puts the place of the field first: body, path or query.
    outer = 1 if isinstance(error, RequestValidationError) else 0
    fields = [
        {"field": ".".join(map(str, problem["loc"][outer:])) or "body", "problem": _expected(problem)}
        for problem in problems[:_MOST_FIELDS]
    ]
    named = ", ".join(dict.fromkeys(f"`{entry['field']}` ({entry['problem']})" for entry in fields))
    message = f"Fields are missing or wrong: {named}."
    if len(problems) == 1 and problems[0]["type"] == "value_error" and fields[0]["field"] == "query":
        message = fields[0]["problem"]  # a sentence about the question, which a person typed
    return ApiError("invalid_request", message=message, fields=fields)


def _expected(problem: Mapping[str, Any]) -> str:
    """Say what was expected of a field; `input` would repeat the caller's text."""
    if problem["type"] == "extra_forbidden":
        return "there is no such field; /openapi.json lists them"
    if problem["type"] in ("model_attributes_type", "model_type"):
        of_body = "; a body is one with `Content-Type: application/json`" if len(problem["loc"]) < 2 else ""
        return f"expected a JSON object{of_body}"
    return str(problem["ctx"]["error"] if problem["type"] == "value_error" else problem["msg"])


def install_error_replies(app: FastAPI) -> None:
    async def answer(request: Request, error: Exception) -> JSONResponse:
        reply = counted(invalid_fields(error) if isinstance(error, RequestValidationError) else error)
        if reply.kind == "method_not_allowed":  # the error names the methods of one route alone
            routes = [route for route in app.routes if route.matches(request.scope)[0] is Match.PARTIAL]
            allowed = {method for route in routes for method in getattr(route, "methods", None) or ()}
            reply.headers = {"Allow": ", ".join(sorted(allowed))}
        return error_response(reply)

    for kind in (StarletteHTTPException, ShiguanError, RequestValidationError):
        app.add_exception_handler(kind, answer)
