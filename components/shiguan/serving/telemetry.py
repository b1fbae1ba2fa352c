"""Metrics for Prometheus, log lines and traces, without the texts of users."""

import json
import logging
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sized
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from haystack.tracing.tracer import NullTracer, Span, Tracer, enable_tracing, tracer
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

from shiguan.errors import ConfigurationError
from shiguan.text.terminal import printable

if TYPE_CHECKING:
    from shiguan.serving.authentication import Principal

REGISTRY = CollectorRegistry()
"""The server's own registry: metrics of libraries are not exported by accident."""

# The time when a series was made doubles their number, and is not used.
disable_created_metrics()  # type: ignore[no-untyped-call]

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_OTHER = "other"

_counter = partial(Counter, namespace="shiguan", registry=REGISTRY)
_histogram = partial(Histogram, namespace="shiguan", buckets=_SECONDS, registry=REGISTRY)
_gauge = partial(Gauge, namespace="shiguan", registry=REGISTRY)

REQUESTS = _counter("requests", "Requests by route and status.", ["route", "method", "status"])
REQUEST_SECONDS = _histogram("request_seconds", "Time of a request.", ["route"])
IN_FLIGHT = _gauge("in_flight_requests", "Requests in the server, waiting ones included.")
WAITING = _gauge("waiting_requests", "Requests that wait for their turn.")
REJECTED = _counter("rejected_requests", "Requests turned away, by reason.", ["reason"])
CANCELLED = _counter("cancelled_requests", "Requests ended early, by reason.", ["reason"])
ANSWERS = _counter("answers", "Answers by mode and status.", ["mode", "status"])
ANSWER_SECONDS = _histogram("answer_seconds", "Time of an answer, by mode.", ["mode"])
METHOD_SECONDS = _histogram(
    "method_seconds", "Time of an answer, by how its question was reworded.", ["mode", "method"]
)
METHOD_CONFIDENCE = _histogram(
    "method_confidence", "Calibrated probability of an answer.", ["mode", "method"], buckets=(0.25, 0.5, 0.75, 1)
)
METHOD_REFUSALS = _counter("method_refusals", "Answers that were not found or refused.", ["mode", "method"])
STAGE_SECONDS = _histogram("stage_seconds", "Time of a stage of a mode.", ["mode", "stage"])
FIRST_TOKEN_SECONDS = _histogram(
    "first_token_seconds", "Time to the first token of an answer that is streamed.", ["mode"]
)
TOKENS = _counter("tokens", "Tokens that the LLM read and wrote.", ["mode", "kind"])
LLM_CALLS = _counter("llm_calls", "Calls of the LLM.", ["mode"])
COST = _counter("llm_cost", "What calls of the LLM cost, by the prices of the models that have one.", ["mode"])
SWITCHES = _counter(
    "model_switches", "Calls that went to another model, by the one passed over and why.", ["model", "reason"]
)
FALLBACKS = _counter("fallbacks", "Answers that came with a warning.", ["mode"])
VERDICTS = _counter("verdicts", "Sentences of answers by verdict.", ["mode", "verdict"])
FAILURES = _counter("failures", "Errors that callers got, by type.", ["type"])
JOBS = _counter("ingest_jobs", "Uploads by how their ingest ended.", ["state"])
JOBS_WAITING = _gauge("ingest_jobs_waiting", "Uploads that wait to be ingested.")

_VERDICTS = frozenset({"supported", "partial", "unsupported", "contradicted"})
_STATUSES = frozenset({"answered", "quoted", "closest", "recalled", "unsearched", "not_found", "refused", "partial"})


def record_answer(answer: dict[str, Any], *, first_token_seconds: float | None = None) -> None:
    """Count a finished answer, streamed or not: its stages' times, tokens, calls, warnings and verdicts."""
    mode = answer["mode"]  # the name of a file that the server loaded
    metadata = answer.get("metadata", {})
    # An answer that was withheld looks like one that was not found; `grounding` says which.
    status = "refused" if metadata.get("grounding") == "refused" else answer.get("status")
    ANSWERS.labels(mode, status if status in _STATUSES else _OTHER).inc()
    _record_method(mode, status, metadata)
    for stage, milliseconds in metadata.get("timings_ms", {}).items():
        if stage == "total":
            ANSWER_SECONDS.labels(mode).observe(milliseconds / 1000)
        else:
            STAGE_SECONDS.labels(mode, stage).observe(milliseconds / 1000)
    if first_token_seconds is not None:
        FIRST_TOKEN_SECONDS.labels(mode).observe(first_token_seconds)
    usage = metadata.get("usage") or {}
    for kind in ("prompt_tokens", "completion_tokens", "cached_tokens"):
        if isinstance(usage.get(kind), int):
            TOKENS.labels(mode, kind.removesuffix("_tokens")).inc(usage[kind])
    LLM_CALLS.labels(mode).inc(metadata.get("llm_calls") or 0)
    COST.labels(mode).inc(sum(call.get("cost") or 0 for call in metadata.get("calls", [])))
    for switch in metadata.get("switches", []):
        SWITCHES.labels(switch["from"], switch["reason"]).inc()  # names of a pipeline file, and words of the engine
    if metadata.get("warnings"):
        FALLBACKS.labels(mode).inc()
    for verdict in (claim.get("verdict") for claim in metadata.get("claims", [])):
        VERDICTS.labels(mode, verdict if verdict in _VERDICTS else _OTHER).inc()


def _record_method(mode: str, status: str | None, metadata: Mapping[str, Any]) -> None:
    method = metadata.get("method") or "none"  # a word of the engine
    if status in ("not_found", "refused"):
        METHOD_REFUSALS.labels(mode, method).inc()
    if metadata.get("confidence") is not None:
        METHOD_CONFIDENCE.labels(mode, method).observe(metadata["confidence"])
    METHOD_SECONDS.labels(mode, method).observe(metadata.get("timings_ms", {}).get("total", 0.0) / 1000)


_NAMES = frozenset(
    "haystack.component.name haystack.component.type shiguan.request_id http.request.method http.route "
    "error.type".split()
)
"""Tags whose values are texts of this project; of all others only numbers pass."""


class _SizedSpan(Span):
    """A span of the inner tracer; of a component's inputs and outputs only sizes are recorded."""

    def __init__(self, inner: Span) -> None:
        self._inner = inner

    def set_tag(self, key: str, value: Any) -> None:
        if key in _NAMES or isinstance(value, int | float):
            self._inner.set_tag(key, value)

    def set_content_tag(self, key: str, value: Any) -> None:
        # Haystack's own would write the texts where HAYSTACK_CONTENT_TRACING_ENABLED is set.
        for name, content in value.items() if isinstance(value, Mapping) else ():
            if isinstance(content, Sized):
                self._inner.set_tag(f"{key}.{name}.size", len(content))


class _FailedError(Exception):
    """Reports a failure to the inner tracer without the message of the error."""


class TextlessTracer(Tracer):
    """
    Keeps questions, passages, answers and messages of errors out of what another tracer records.

    Haystack gives a run's input to its tracer even if tracing of contents is off, and tracers record the messages of
    exceptions. Only numbers, lengths and a few names of the engine pass.
    """

    def __init__(self, inner: Tracer) -> None:
        self.inner = inner

    @contextmanager
    def trace(
        self, operation_name: str, tags: dict[str, Any] | None = None, parent_span: Span | None = None
    ) -> Iterator[Span]:
        failure: BaseException | None = None
        with suppress(_FailedError), self.inner.trace(operation_name, parent_span=parent_span) as span:
            sized = _SizedSpan(span)
            sized.set_tags(tags or {})
            try:
                yield sized
            except BaseException as error:
                failure, kind = error, type(error.__cause__ or error).__name__  # Haystack wraps what a component raises
                sized.set_tag("error.type", kind)
                raise _FailedError(kind) from None
        if failure is not None:
            raise failure

    def current_span(self) -> Span | None:
        span = self.inner.current_span()
        return None if span is None else _SizedSpan(span)


@contextmanager
def traces(on: bool, exporter: Any = None) -> Iterator[None]:
    """Record traces for the collector that `OTEL_…` names; if they are off, keep texts from any other tracer."""
    before = tracer.actual_tracer
    inner, provider = before, None
    if on:
        inner, provider = _open_telemetry(exporter)
    if not isinstance(inner, NullTracer | TextlessTracer):
        enable_tracing(TextlessTracer(inner))
    try:
        yield
    finally:
        enable_tracing(before)
        if provider is not None:
            provider.shutdown()


def _open_telemetry(exporter: Any) -> tuple[Tracer, Any]:
    try:
        from haystack.tracing.opentelemetry import OpenTelemetryTracer  # noqa: PLC0415  # an extra, and heavy
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"SHIGUAN_TRACES is on and `{error.name}` is not installed. Install it with "
            '`pip install "shiguan[traces]"`, or unset the variable.'
        ) from error
    name = os.environ.get("OTEL_SERVICE_NAME") or "shiguan"
    provider = TracerProvider(resource=Resource.create({"service.name": name}))
    provider.add_span_processor(BatchSpanProcessor(exporter or OTLPSpanExporter()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # Haystack 3 moves it to a package of its own
        return OpenTelemetryTracer(provider.get_tracer("shiguan")), provider


@dataclass(frozen=True)
class CurrentRequest:
    """What is known of the request that is being served: its id, its caller, and when it is given up (loop time)."""

    id: str | None = None
    principal: "Principal | None" = None
    deadline: float | None = None


_NO_REQUEST = CurrentRequest()
_request: ContextVar[CurrentRequest] = ContextVar("shiguan_request", default=_NO_REQUEST)


def current_request() -> CurrentRequest:
    """Return what is known here of the current request, for code without a request object."""
    return _request.get()


@contextmanager
def in_request(**known: Any) -> Iterator[None]:
    """Add to what is known of the current request, for the code inside the block."""
    token = _request.set(replace(_request.get(), **known))
    try:
        yield
    finally:
        _request.reset(token)


class _TextLines(logging.Formatter):
    """Lines for people, without control characters for their terminal."""

    def format(self, record: logging.LogRecord) -> str:
        line, request_id = printable(super().format(record)), current_request().id
        return line if request_id is None or request_id in line else f"{line} [request {request_id}]"


class JsonLines(logging.Formatter):
    """One JSON object a record; an exception as its type and place, without its message, which may quote a question."""

    def format(self, record: logging.LogRecord) -> str:
        message, error = record.getMessage(), record.exc_info[1] if record.exc_info else None
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            # Below its first line the event loop quotes the exception of a task.
            "message": message if error is None else message.partition("\n")[0],
            "request_id": current_request().id,
        }
        if error is not None:
            frames = traceback.extract_tb(error.__traceback__)
            place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else None
            line["error"] = {"type": type(error).__name__, "place": place}
        return json.dumps(line)


def log_handler(form: str) -> logging.Handler:
    """Make a handler for standard error; JSON leaves out debugging, which may quote texts."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(logging.INFO if form == "json" else logging.NOTSET)
    handler.setFormatter(JsonLines() if form == "json" else _TextLines(logging.BASIC_FORMAT))
    return handler


def write_logs(form: str) -> None:
    """Let all parts log in one form, in place of the handler that `shiguan` set up; other handlers stay."""
    root = logging.getLogger()
    others = [handler for handler in root.handlers if type(handler) is not logging.StreamHandler]
    if form == "json" or len(others) < len(root.handlers):
        root.handlers[:] = [*others, log_handler(form)]
