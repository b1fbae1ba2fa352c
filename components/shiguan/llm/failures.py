"""Failures of calls of language models: whether to retry, whether another model may succeed, and the words for it."""

import re
import time
from email.utils import parsedate_to_datetime

import httpx
import openai

from shiguan.bounded_http import unwanted
from shiguan.errors import EndpointError
from shiguan.llm.model_settings import NamedModel

_RETRIED_STATUS = {408, 409, 425, 429}
_SECRET = re.compile(r"(?i)\b(?:sk|pk|key|api|bearer)[-_ ][\w*.-]{6,}|(?<=://)[^/\s@]+:[^/\s@]+@")
_LONGEST = 200
# Why another model may answer where one refused.
_REASONS = {"access": "refused_key", "payment": "no_credit"}
# Seconds; an endpoint that asks for a longer pause is not retried.
_LONGEST_WAIT = 60.0


def is_worth_retrying(error: BaseException) -> bool:
    """Return whether the same call may succeed soon: not after a refusal, a long pause, a timeout or a mistake."""
    if isinstance(error, openai.APITimeoutError) and not isinstance(error.__cause__, httpx.ConnectTimeout):
        return False
    if unwanted(error):
        return False
    return isinstance(error, Exception) and asked_to_wait(error) <= _LONGEST_WAIT and bool(reason_of(error))


def asked_to_wait(error: BaseException | None) -> float:
    """Return the seconds after which an endpoint wants to be asked again; 0 if it does not say."""
    if not isinstance(error, openai.APIStatusError):
        return 0.0
    value = error.response.headers.get("retry-after", "")
    try:
        return max(0.0, float(value) if value[:1].isdigit() else parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return 0.0


def reason_of(error: Exception) -> str:
    """Name a failure that another model may not have; empty if the prompt is at fault."""
    if status := _status(error):
        if status == 429:
            return "rate_limit"
        return "server_error" if status >= 500 or status in _RETRIED_STATUS else ""
    if isinstance(error, openai.APIConnectionError):
        return "timeout" if isinstance(error, openai.APITimeoutError) else "unreachable"
    if type(error) is openai.APIError:
        return "server_error"  # told within a stream that began well
    return "" if isinstance(error, TypeError | NotImplementedError) else "unreadable"


def _status(error: Exception) -> int:
    """Return the HTTP status of a failure, also of one that a reply reports which began well; 0 if it has none."""
    if isinstance(error, openai.APIStatusError):
        return error.status_code
    code = str(error.code) if type(error) is openai.APIError else ""
    return int(code) if re.fullmatch("[45][0-9]{2}", code) else 0


def endpoint_error(error: Exception, model: NamedModel, *, stage: str, attempts: int, streamed: bool) -> EndpointError:
    """Describe a failure to the operator, and without address and reply to the user."""
    place = _endpoint(model.address)
    cause, step = _cause(error, model, streamed=streamed)
    tries = f" after {attempts} attempts" if attempts > 1 else ""
    return EndpointError(
        f"The stage `{stage}` failed{tries}: {place} {cause}. {step}.",
        stage=stage,
        reason="" if streamed else reason_of(error) or _REASONS.get(refusal_of(error), ""),
        cause=f"the language model {cause.partition(' (')[0]}",
        next_step=step,
        refusal=refusal_of(error),
        summary=f"{place} {cause.partition(' (')[0]}. {step}.",  # the part in brackets may quote the question
    )


def _cause(error: Exception, model: NamedModel, *, streamed: bool) -> tuple[str, str]:
    """Return what the endpoint did and the next step, clauses without keys."""
    if streamed and not isinstance(error, openai.APIStatusError) and unwanted(error) is None:
        return f"broke off in the middle of the answer ({type(error).__name__})", "Ask again"
    if status := _status(error):
        cause = f"answered {status} for model `{model.model_name}` ({_detail(error, model.key)})"
        if refusal_of(error) == "content":
            return cause, "Ask in other words, or another model"
        return cause, _step_for_status(status, model)
    if (reply := unwanted(error)) is not None:
        return str(reply), f"Check {_address_of(model)} and what answers there"
    if isinstance(error, openai.APITimeoutError):
        more = f"the `timeout` of `{model.name}`" if model.timeout else "OPENAI_TIMEOUT"
        return (
            "did not answer in time",
            f"Ask again later, or give a slow model more seconds between two tokens with {more}",
        )
    if isinstance(error, openai.APIConnectionError):
        return "could not be reached", f"Check {_address_of(model)} and that the server is running"
    if type(error) is openai.APIError:
        return f"reported an error ({_detail(error, model.key)})", "Ask again later"
    return (
        f"sent a reply that could not be read ({type(error).__name__}: {_detail(error, model.key)})",
        f"Check that {_address_of(model)} points to an OpenAI-compatible chat API",
    )


def refusal_of(error: Exception) -> str:
    """Name what an endpoint refused: `access`, `payment`, `content`, `request`; empty for other failures."""
    status = _status(error)
    if not isinstance(error, openai.APIError) or not status or reason_of(error):
        return ""
    if status in (401, 403):
        return "access"
    if status == 402:
        return "payment"
    return "content" if "content_filter" in f"{error.code} {error.body}" else "request"


def _address_of(model: NamedModel) -> str:
    return f"the `base_url` of `{model.name}`" if model.base_url else "OPENAI_BASE_URL"


def _step_for_status(status: int, model: NamedModel) -> str:
    if status in (401, 403):
        return f"Check {model.key_variable or 'OPENAI_API_KEY'}"
    if status == 402:
        return "Check the balance of the account"
    if status == 404:
        named = f"its `model` in `{model.name}`" if model.model else "the name of the model (OPENAI_MODEL)"
        return f"Check {_address_of(model)} and {named}"
    if status == 429:
        return "Wait for the rate limit to pass, or check the account's quota"
    if status >= 500 or status in _RETRIED_STATUS:
        return "Ask again later"
    return "Check the model's limits and the generator's `generation_kwargs`"


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
