"""Says which fields of a body are wrong."""

from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from shiguan.serving.error_replies import ApiError

_MOST_FIELDS = 20


def invalid_fields(error: ValidationError | RequestValidationError) -> ApiError:
    """Put a failed validation into words."""
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
