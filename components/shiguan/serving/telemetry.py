"""Metrics for Prometheus and log lines, without the texts of users; what is known of the current request."""

import logging
import traceback
from functools import partial
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

from shiguan.serving.current_request import current_request
from shiguan.text.terminal import printable

REGISTRY = CollectorRegistry()
"""The server's own registry: metrics of libraries are not exported by accident."""

# The time when a series was made doubles their number, and is not used.
disable_created_metrics()  # type: ignore[no-untyped-call]

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

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


def record_answer(answer: dict[str, Any], *, first_token_seconds: float | None = None) -> None:
    """Count a finished answer, streamed or not: its stages' times, tokens, calls, warnings and verdicts."""
    mode = answer["mode"]  # the name of a file that the server loaded
    metadata = answer.get("metadata", {})
    # An answer that was withheld looks like one that was not found; `grounding` says which.
    status = "refused" if metadata.get("grounding") == "refused" else answer.get("status")
    ANSWERS.labels(mode, status).inc()
    method = metadata.get("method") or "none"  # a word of the engine
    if status in ("not_found", "refused"):
        METHOD_REFUSALS.labels(mode, method).inc()
    if metadata.get("confidence") is not None:
        METHOD_CONFIDENCE.labels(mode, method).observe(metadata["confidence"])
    METHOD_SECONDS.labels(mode, method).observe(metadata.get("timings_ms", {}).get("total", 0.0) / 1000)
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
        VERDICTS.labels(mode, verdict).inc()


class _LogLines(logging.Formatter):
    """Printable lines with the request's id; of an exception only type and place: its message may quote a question."""

    def format(self, record: logging.LogRecord) -> str:
        level, name, message = record.levelname, record.name, record.getMessage()
        if record.exc_info and (error := record.exc_info[1]) is not None:
            frames = traceback.extract_tb(error.__traceback__)
            place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "an unknown place"
            # Below its first line the event loop quotes the exception of a task.
            message = f"{message.partition(chr(10))[0]}: {type(error).__name__} at {place}"
        line, request_id = printable(f"{level}:{name}:{message}"), current_request().id
        return line if request_id is None or request_id in line else f"{line} [request {request_id}]"


def write_logs() -> None:
    """Return the handler that `shiguan` set up the lines of a server; other handlers stay."""
    for handler in logging.getLogger().handlers:
        if type(handler) is logging.StreamHandler:
            handler.setFormatter(_LogLines())
