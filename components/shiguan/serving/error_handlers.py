"""Lets an application answer every error of its routes in the one shape."""

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException as StarletteHTTPException

from shiguan.errors import ShiguanError
from shiguan.serving.error_replies import ApiError, as_api_error, error_response, log_failure
from shiguan.serving.invalid_fields import invalid_fields


def install_error_replies(app: FastAPI) -> None:
    """Let an application answer every error of its routes in the one shape."""

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
