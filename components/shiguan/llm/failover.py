"""
Calls the models that may answer a prompt, one after the other, until one has: with circuits, budget and counting.

Says of a call that failed whether to try again, whether another model may do better, and puts it in words.
"""

import re
import time
from collections.abc import Sequence
from dataclasses import replace
from email.utils import parsedate_to_datetime
from threading import Lock
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from haystack import logging
from haystack.dataclasses import AsyncStreamingCallbackT, ChatMessage, StreamingChunk

from shiguan.errors import AnswerError, BudgetError
from shiguan.llm.calls import current_meter, estimate_tokens
from shiguan.llm.model_settings import NamedModel
from shiguan.llm.run_watch import counting_replies, current_tally

if TYPE_CHECKING:
    from shiguan.llm.endpoint import OpenAIEndpoint

logger = logging.getLogger(__name__)

FAILURES = 3
REST = 30.0
"""Seconds that a model with an open circuit is left alone, before one call tries it again."""

clock = time.monotonic


class Circuit:
    """
    Closed while a model works; open once it has failed three times in a row.

    30 seconds later one call tries it again, alone: it closes the circuit, or opens it for as long again.
    """

    def __init__(self) -> None:
        self.calls = 0
        self.begun = 0
        self._failures = 0
        self._opened: float | None = None
        self._trying = False
        self._lock = Lock()

    @property
    def is_open(self) -> bool:
        """Whether a call should go elsewhere, as things stand."""
        return self._opened is not None and (self._trying or clock() - self._opened < REST)

    @property
    def opened(self) -> float:
        """When it was opened; 0 for a closed one."""
        return self._opened or 0.0

    def enter(self, *, whatever: bool = False) -> bool:
        """Let a call in unless the circuit is open; `whatever` lets it in all the same. Whoever is in must `leave`."""
        with self._lock:
            if self.is_open and not whatever:
                return False
            self._trying = self._opened is not None
            self.calls += 1
            self.begun += 1
            return True

    def leave(self) -> None:
        with self._lock:
            self.calls -= 1
            self._trying = False

    def worked(self) -> None:
        """Note a request that was answered; a refusal on its merits is an answer."""
        with self._lock:
            self._failures, self._opened = 0, None

    def failed(self) -> None:
        with self._lock:
            self._failures += 1
            if self._trying or self._failures >= FAILURES:
                self._opened = clock()


_circuits: dict[tuple[str | None, str, str | None], Circuit] = {}
_lock = Lock()


def circuit_of(model: NamedModel) -> Circuit:
    """Give the circuit of a model: one, however many generators and files name it."""
    with _lock:
        return _circuits.setdefault((model.address, model.model_name, model.key_variable), Circuit())


_RESTING = "resting"


class Failover:
    """
    The calls of one prompt: the next one is made only where the one before it failed before its first token.

    What is wrong with the prompt itself, and what began to answer, goes to no other model. A model whose circuit is
    open is passed over; where all are, the one that has rested longest is asked, so that no question fails for a rest.
    """

    def __init__(
        self,
        groups: Sequence[Sequence["OpenAIEndpoint"]],
        prompt_tokens: int,
        passed: Sequence[tuple[str, str]] = (),
        **about: Any,
    ) -> None:
        # Of equals, the one with the fewest open calls; of these, the one that has had the fewest.
        self._waiting = [
            endpoint
            for group in groups
            for endpoint in sorted(group, key=lambda one: (one.circuit.calls, one.circuit.begun))
        ]
        self.prompt_tokens = prompt_tokens
        self.about = about
        self.stood_in = False
        self._passed = list(passed)
        self._failure: AnswerError | None = None

    async def replies(self, *prompt: Any) -> list[ChatMessage]:
        """Ask one model after the other with what `OpenAIEndpoint.reply` takes; if none replies, raise why."""
        resting = []
        while self._waiting:
            endpoint = self._waiting.pop(0)
            if not endpoint.circuit.enter():
                resting.append(endpoint)
                self._passed.append((endpoint.named.name, _RESTING))
            elif (replies := await self._asked(endpoint, *prompt)) is not None:
                return replies
        if self._failure is None:
            endpoint = min(resting, key=lambda one: one.circuit.opened)
            self._passed.remove((endpoint.named.name, _RESTING))
            endpoint.circuit.enter(whatever=True)
            if (replies := await self._asked(endpoint, *prompt)) is not None:
                return replies
        raise cast("AnswerError", self._failure)

    @property
    def has_another(self) -> bool:
        return any(not endpoint.circuit.is_open for endpoint in self._waiting)

    async def _asked(self, endpoint: "OpenAIEndpoint", *prompt: Any) -> list[ChatMessage] | None:
        """Ask a model whose circuit was entered; None where it failed in a way in which another may not."""
        named, tally, call = endpoint.named, current_tally(), ModelCall(endpoint, self)
        for name, reason in self._passed:
            logger.warning("{stands_in} stands in for {model} ({why})", stands_in=named.name, model=name, why=reason)
            if tally is not None:
                tally.switches.append({"from": name, "to": named.name, "reason": reason})
        self.stood_in |= bool(self._passed)
        self._passed = []
        with counting_replies() as counter:
            try:
                replies = await endpoint.reply(*prompt, call=call)
                wrote = sum(estimate_tokens(reply.text or "") for reply in replies)
                estimate = {"prompt_tokens": self.prompt_tokens, "completion_tokens": wrote}
                counter.count(replies, named.cost, estimate, **call.about)
            except BaseException as error:
                reason = getattr(error, "reason", "") or ("refused" if isinstance(error, AnswerError) else "stopped")
                if call.attempts:
                    counter.note({**call.about, "model": named.model_name, "failed": reason}, {}, 0.0)
                if isinstance(error, BudgetError) and self._failure is not None:
                    raise self._failure from None
                if not isinstance(error, AnswerError) or not error.reason:
                    raise
                self._failure = error
                self._passed.append((named.name, reason))
                return None
            finally:
                endpoint.circuit.leave()
        return replies


class ModelCall:
    """One call of one model: its attempts, each held against the budget, and the parts of its answer as they come."""

    def __init__(self, endpoint: "OpenAIEndpoint", turn: Failover) -> None:
        self.attempts = 0
        self.started = False
        self.receiver_failure: Exception | None = None
        self._endpoint = endpoint
        self._turn = turn
        self._half = ""

    @property
    def about(self) -> dict[str, Any]:
        return {**self._turn.about, "name": self._endpoint.named.name, "attempts": self.attempts}

    def begin_attempt(self) -> None:
        """Hold one request against the budget before it is sent; a `BudgetError` if there is none left."""
        if (meter := current_meter()) is not None:
            meter.begin()
        elif (tally := current_tally()) is not None:
            tally.requests += 1
        self.attempts += 1

    async def pass_on(self, chunk: StreamingChunk, receive: AsyncStreamingCallbackT) -> None:
        """Hand on a part of the answer: the halves of a character that came in two parts make one, others a mark."""
        self.started = True
        text = self._half + chunk.content
        self._half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        text = text.removesuffix(self._half) if self._half else text
        try:
            await receive(
                chunk if text == chunk.content and text.isascii() else replace(chunk, content=mended_text(text))
            )
        except Exception as error:
            self.receiver_failure = error
            raise

    def may_retry(self) -> bool:
        if self.started:
            return False
        meter = current_meter()
        if meter is not None and not meter.allows_helper(behind_answer=True):
            return False
        return not (self._endpoint.circuit.is_open and self._turn.has_another)


def mended_text(text: str) -> str:
    """Replace halves of characters, which can be neither kept nor sent on."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


_RETRIED_STATUS = {408, 409, 425, 429}
_SECRET = re.compile(r"(?i)\b(?:sk|pk|key|api|bearer)[-_ ][\w*.-]{6,}|(?<=://)[^/\s@]+:[^/\s@]+@")
_LONGEST = 200
# Seconds; who wants to be left alone for longer is not asked again.
_LONGEST_WAIT = 60.0


def is_worth_retrying(error: BaseException) -> bool:
    """
    Tell whether the same call may succeed a little later.

    Not what the endpoint refused on its merits (a wrong key, an unknown model, a too long prompt) or does not want to
    hear of for long, not mistakes in the call, not a reply that is too long, and not a call that timed out: a slow
    server is still busy with it.
    """
    import httpx  # noqa: PLC0415
    import openai  # noqa: PLC0415

    from shiguan.bounded_http import unwanted  # noqa: PLC0415

    if isinstance(error, openai.APITimeoutError) and not isinstance(error.__cause__, httpx.ConnectTimeout):
        return False
    if unwanted(error):
        return False
    return isinstance(error, Exception) and asked_to_wait(error) <= _LONGEST_WAIT and bool(reason_of(error))


def asked_to_wait(error: BaseException | None) -> float:
    """Give the seconds after which an endpoint wants to be asked again; 0 if it does not say."""
    import openai  # noqa: PLC0415  # slow, and only an endpoint that failed needs it

    if not isinstance(error, openai.APIStatusError):
        return 0.0
    value = error.response.headers.get("retry-after", "")
    try:
        return max(0.0, float(value) if value[:1].isdigit() else parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return 0.0


def reason_of(error: Exception) -> str:
    """Say in a word how a model failed in a way in which another may not; empty for what is wrong with the prompt."""
    import openai  # noqa: PLC0415

    if isinstance(error, openai.APIStatusError):
        if error.status_code == 429:
            return "rate_limit"
        return "server_error" if error.status_code >= 500 or error.status_code in _RETRIED_STATUS else ""
    if isinstance(error, openai.APIConnectionError):
        return "timeout" if isinstance(error, openai.APITimeoutError) else "unreachable"
    return "" if isinstance(error, TypeError | NotImplementedError | BudgetError) else "unreadable"


def describe_failure(error: Exception, model: NamedModel, *, streamed: bool, place: str = "") -> tuple[str, str]:
    """Put a failure into words for the person who asked: the cause and the next step, clauses without keys."""
    import openai  # noqa: PLC0415

    from shiguan.bounded_http import unwanted  # noqa: PLC0415

    place = place or _endpoint(model.address)
    if isinstance(error, openai.APIStatusError):
        cause = f"{place} answered {error.status_code} for model `{model.model_name}` ({_detail(error, model.key)})"
        if refusal_of(error) == "content":
            return cause, "Ask in other words, or another model"
        return cause, _step_for_status(error.status_code, model)
    if (reply := unwanted(error)) is not None:
        return f"{place} {reply}", f"Check {_address_of(model)} and what answers there"
    if streamed:
        return f"{place} broke off in the middle of the answer ({type(error).__name__})", "Ask again"
    if isinstance(error, openai.APITimeoutError):
        more = f"the `timeout` of `{model.name}`" if model.timeout else "OPENAI_TIMEOUT"
        step = f"Ask again later, or give a slow model more seconds between two tokens with {more}"
        return f"{place} did not answer in time", step
    if isinstance(error, openai.APIConnectionError):
        return f"{place} could not be reached", f"Check {_address_of(model)} and that the server is running"
    return (
        f"{place} sent a reply that could not be read ({type(error).__name__}: {_detail(error, model.key)})",
        f"Check that {_address_of(model)} points to an OpenAI-compatible chat API",
    )


def refusal_of(error: Exception) -> str:
    """Say in a word what an endpoint refused on its merits: `access`, `content`, `request`; empty for nothing."""
    import openai  # noqa: PLC0415

    if not isinstance(error, openai.APIStatusError) or reason_of(error):
        return ""
    if error.status_code in (401, 403):
        return "access"
    return "content" if "content_filter" in f"{error.code} {error.body}" else "request"


def _address_of(model: NamedModel) -> str:
    return f"the `base_url` of `{model.name}`" if model.base_url else "OPENAI_BASE_URL"


def _step_for_status(status: int, model: NamedModel) -> str:
    if status in (401, 403):
        return f"Check {model.key_variable or 'OPENAI_API_KEY'}"
    if status == 404:
        named = f"its `model` in `{model.name}`" if model.model else "the name of the model (OPENAI_MODEL)"
        return f"Check {_address_of(model)} and {named}"
    if status == 429:
        return "Wait for the rate limit to pass, or check the account's quota"
    if status >= 500 or status in _RETRIED_STATUS:
        return "Ask again later"
    return "Check the model's limits and the generator's `generation_kwargs`"


def _endpoint(base: str | None) -> str:
    if not base:
        return "the OpenAI API"
    try:
        parts = urlsplit(base)
        host = parts.hostname or "the endpoint"
        return f"{host}:{parts.port}" if parts.port else host
    except ValueError:
        return "the endpoint"


def _detail(error: Exception, key: str) -> str:
    text = " ".join(str(getattr(error, "message", "") or error).split()).replace(key, "…")
    return _SECRET.sub("…", text)[:_LONGEST] or type(error).__name__
