"""Tells what went wrong with a language model's endpoint: whether to try again, and what to say about it."""

import os
import re
import time
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

_RETRIED_STATUS = {408, 409, 425, 429}
_SECRET = re.compile(r"(?i)\b(?:sk|pk|key|api|bearer)[-_ ][\w*.-]{6,}|(?<=://)[^/\s@]+:[^/\s@]+@")
_LONGEST = 200
# Seconds; who wants to be left alone for longer is not asked again.
_LONGEST_WAIT = 60.0


def is_worth_retrying(error: BaseException) -> bool:
    """
    Tell whether the same call may succeed a little later.

    Not what the endpoint refused on its merits (a wrong key, an unknown model, a too long prompt) or does not want to
    hear of for long, and not mistakes in the call.
    """
    import openai  # noqa: PLC0415  # slow, and only an endpoint that failed needs it

    if asked_to_wait(error) > _LONGEST_WAIT:
        return False
    if isinstance(error, openai.APIStatusError):
        return error.status_code in _RETRIED_STATUS or error.status_code >= 500
    return isinstance(error, Exception) and not isinstance(error, TypeError | NotImplementedError)


def asked_to_wait(error: BaseException | None) -> float:
    """Give the seconds after which an endpoint wants to be asked again; 0 if it does not say."""
    import openai  # noqa: PLC0415

    if not isinstance(error, openai.APIStatusError):
        return 0.0
    value = error.response.headers.get("retry-after", "")
    try:
        return max(0.0, float(value) if value[:1].isdigit() else parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return 0.0


def describe_failure(error: Exception, model: str, *, streamed: bool) -> tuple[str, str]:
    """Put a failure into words for the person who asked: the cause and the next step, clauses without keys."""
    import openai  # noqa: PLC0415

    place = _endpoint()
    if isinstance(error, openai.APIStatusError):
        cause = f"{place} answered {error.status_code} for model `{model}` ({_detail(error)})"
        return cause, _step_for_status(error.status_code)
    if streamed:
        return f"{place} broke off in the middle of the answer ({type(error).__name__})", "Ask again"
    if isinstance(error, openai.APITimeoutError):
        return f"{place} did not answer in time", "Ask again later, or raise the generator's `timeout`"
    if isinstance(error, openai.APIConnectionError):
        return f"{place} could not be reached", "Check OPENAI_BASE_URL and that the server is running"
    return (
        f"{place} sent a reply that could not be read ({type(error).__name__}: {_detail(error)})",
        "Check that OPENAI_BASE_URL points to an OpenAI-compatible chat API",
    )


def _step_for_status(status: int) -> str:
    if status in (401, 403):
        return "Check OPENAI_API_KEY"
    if status == 404:
        return "Check OPENAI_BASE_URL and the name of the model (OPENAI_MODEL)"
    if status == 429:
        return "Wait for the rate limit to pass, or check the account's quota"
    if status >= 500 or status in _RETRIED_STATUS:
        return "Ask again later"
    return "Check the model's limits and the generator's `generation_kwargs`"


def _endpoint() -> str:
    base = os.environ.get("OPENAI_BASE_URL")
    if not base:
        return "the OpenAI API"
    try:
        parts = urlsplit(base)
        host = parts.hostname or "the endpoint"
        return f"{host}:{parts.port}" if parts.port else host
    except ValueError:
        return "the endpoint"


def _detail(error: Exception) -> str:
    text = " ".join(str(getattr(error, "message", "") or error).split())
    key = os.environ.get("OPENAI_API_KEY")
    if key:
        text = text.replace(key, "…")
    return _SECRET.sub("…", text)[:_LONGEST] or type(error).__name__
