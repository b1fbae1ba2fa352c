"""Failures of calls of language models: whether to retry, whether another model may succeed, and the words for it."""

import re
import time
from email.utils import parsedate_to_datetime

import httpx
import openai

from shiguan.bounded_http import UnwantedReplyError
from shiguan.errors import EndpointError, error_behind
from shiguan.llm.model_settings import NamedModel

_SECRET = re.compile(r"(?i)\b(?:sk|pk|key|api|bearer)[-_ ][\w*.-]{6,}|(?<=://)[^/\s@]+:[^/\s@]+@")
_LONGEST = 200
# Seconds; an endpoint that asks for a longer pause is not retried.
_LONGEST_WAIT = 60.0
_OF_STATUS = {
    401: "refused_key", 402: "no_credit", 403: "refused_key", 429: "rate_limit",
    **dict.fromkeys((408, 409, 425), "server_error"),
}  # fmt: skip
_MAY_PASS = ("rate_limit", "server_error", "timeout", "unreachable", "unreadable")
_NOT_THE_MODELS = ("content", "request", "mistake")
# What a caller is told was refused, which is no use to ask again.
_REFUSALS = {"refused_key": "access", "no_credit": "payment", "content": "content", "request": "request"}


def failure_of(error: Exception) -> str:
    """Name a failure; `content` and `request` are the fault of the prompt, and `mistake` of who called."""
    if isinstance(error, openai.APIError) and (status := _status(error)):
        refused = "content" if "content_filter" in f"{error.code} {error.body}" else "request"
        return _OF_STATUS.get(status) or ("server_error" if status >= 500 else refused)
    if isinstance(error, openai.APIConnectionError):
        return "timeout" if isinstance(error, openai.APITimeoutError) else "unreachable"
    if type(error) is openai.APIError:
        return "server_error"  # told within a stream that began well
    return "mistake" if isinstance(error, TypeError | NotImplementedError) else "unreadable"


def is_worth_retrying(error: Exception) -> bool:
    """Return whether the same call may succeed soon: not after a refusal, a long pause, a timeout or a mistake."""
    timed_out = isinstance(error, openai.APITimeoutError) and not isinstance(error.__cause__, httpx.ConnectTimeout)
    if timed_out or error_behind(error, UnwantedReplyError):
        return False
    return asked_to_wait(error) <= _LONGEST_WAIT and failure_of(error) in _MAY_PASS


def asked_to_wait(error: Exception) -> float:
    """Return the seconds after which an endpoint wants to be asked again; 0 if it does not say."""
    if not isinstance(error, openai.APIStatusError):
        return 0.0
    value = error.response.headers.get("retry-after", "")
    try:
        return max(0.0, float(value) if value[:1].isdigit() else parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return 0.0


def _status(error: Exception) -> int:
    """Return the HTTP status of a failure, also of one that a reply reports which began well; 0 if it has none."""
    if isinstance(error, openai.APIStatusError):
        return error.status_code
    code = str(error.code) if type(error) is openai.APIError else ""
    return int(code) if re.fullmatch("[45][0-9]{2}", code) else 0


def endpoint_error(error: Exception, model: NamedModel, *, stage: str, attempts: int, streamed: bool) -> EndpointError:
    """Describe a failure to the operator, and without address and reply to the user."""
    place, kind = _endpoint(model.address), failure_of(error)
    cause, step = _cause(error, kind, model, streamed=streamed)
    tries = f" after {attempts} attempts" if attempts > 1 else ""
    return EndpointError(
        f"The stage `{stage}` failed{tries}: {place} {cause}. {step}.",
        stage=stage,
        reason="" if streamed or kind in _NOT_THE_MODELS else kind,
        cause=f"the language model {cause.partition(' (')[0]}",
        next_step=step,
        refusal=_REFUSALS.get(kind, ""),
        summary=f"{place} {cause.partition(' (')[0]}. {step}.",  # the part in brackets may quote the question
    )


def _cause(error: Exception, kind: str, model: NamedModel, *, streamed: bool) -> tuple[str, str]:
    """Return what the endpoint did and the next step, clauses without keys."""
    if streamed and not isinstance(error, openai.APIStatusError) and error_behind(error, UnwantedReplyError) is None:
        return f"broke off in the middle of the answer ({type(error).__name__})", "Ask again"
    if status := _status(error):
        cause = f"answered {status} for model `{model.model_name}` ({_detail(error, model.key)})"
        return cause, _step(kind, status, model)
    if (reply := error_behind(error, UnwantedReplyError)) is not None:
        return str(reply), f"Check {_address_of(model)} and what answers there"
    if kind == "timeout":
        more = f"the `timeout` of `{model.name}`" if model.timeout else "OPENAI_TIMEOUT"
        return (
            "did not answer in time",
            f"Ask again later, or give a slow model more seconds between two tokens with {more}",
        )
    if kind == "unreachable":
        return "could not be reached", f"Check {_address_of(model)} and that the server is running"
    if kind == "server_error":
        return f"reported an error ({_detail(error, model.key)})", "Ask again later"
    return (
        f"sent a reply that could not be read ({type(error).__name__}: {_detail(error, model.key)})",
        f"Check that {_address_of(model)} points to an OpenAI-compatible chat API",
    )


def _address_of(model: NamedModel) -> str:
    return f"the `base_url` of `{model.name}`" if model.base_url else "OPENAI_BASE_URL"


def _step(kind: str, status: int, model: NamedModel) -> str:
    if status == 404 and kind == "request":
        named = f"its `model` in `{model.name}`" if model.model else "the name of the model (OPENAI_MODEL)"
        return f"Check {_address_of(model)} and {named}"
    return {
        "refused_key": f"Check {model.key_variable or 'OPENAI_API_KEY'}",
        "no_credit": "Check the balance of the account",
        "rate_limit": "Wait for the rate limit to pass, or check the account's quota",
        "server_error": "Ask again later",
        "content": "Ask in other words, or another model",
        "request": "Check the model's limits and the generator's `generation_kwargs`",
    }[kind]


def _endpoint(base: str | None) -> str:
    """Name an endpoint by its host and port: the rest of an address may hold a password."""
    if not base:
        return "the OpenAI API"
    try:
        return httpx.URL(base).netloc.decode() or "the endpoint"
    except httpx.InvalidURL:
        return "the endpoint"


def _detail(error: Exception, key: str) -> str:
    text = " ".join(str(getattr(error, "message", "") or error).split()).replace(key, "…")
    return _SECRET.sub("…", text)[:_LONGEST] or type(error).__name__
