"""Says which fields of a body are wrong, where the server checks one itself."""

from pydantic import ValidationError

from shiguan.serving.error_replies import ApiError

_MOST_FIELDS = 20


def invalid_fields(error: ValidationError) -> ApiError:
    """
    Put a failed validation into words, as the server does it for bodies that its framework checks.

    :param error: What pydantic found.
    :returns: 422 with the names of the fields; what was sent is not repeated.
    """
    fields = [
        {"field": ".".join(str(part) for part in problem["loc"]) or "body", "problem": problem["msg"]}
        for problem in error.errors(include_input=False, include_url=False, include_context=False)[:_MOST_FIELDS]
    ]
    named = ", ".join(dict.fromkeys(f"`{entry['field']}`" for entry in fields))
    return ApiError("invalid_request", message=f"Fields are missing or wrong: {named}.", fields=fields)
