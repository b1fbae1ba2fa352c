"""What the server counts for Prometheus. No label ever holds a tenant, a name or any other word of a user."""

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

REGISTRY = CollectorRegistry()
"""The server's own registry: nothing that a library registers is given out by accident."""

# When a series was made doubles their number and is asked for by nobody.
disable_created_metrics()  # type: ignore[no-untyped-call]

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_OTHER = "other"


def _counter(name: str, text: str, *labels: str) -> Counter:
    return Counter(f"shiguan_{name}", text, labels, registry=REGISTRY)


def _histogram(name: str, text: str, *labels: str) -> Histogram:
    return Histogram(f"shiguan_{name}", text, labels, buckets=_SECONDS, registry=REGISTRY)


def _gauge(name: str, text: str) -> Gauge:
    return Gauge(f"shiguan_{name}", text, registry=REGISTRY)


REQUESTS = _counter("requests", "Requests by route and status.", "route", "method", "status")
REQUEST_SECONDS = _histogram("request_seconds", "Time of a request.", "route")
IN_FLIGHT = _gauge("in_flight_requests", "Requests in the server, waiting ones included.")
WAITING = _gauge("waiting_requests", "Requests that wait for their turn.")
REJECTED = _counter("rejected_requests", "Requests turned away, by reason.", "reason")
CANCELLED = _counter("cancelled_requests", "Requests ended early, by reason.", "reason")
ANSWERS = _counter("answers", "Answers by mode and status.", "mode", "status")
ANSWER_SECONDS = _histogram("answer_seconds", "Time of an answer, by mode.", "mode")
STAGE_SECONDS = _histogram("stage_seconds", "Time of a stage of a mode.", "mode", "stage")
FIRST_TOKEN_SECONDS = _histogram(
    "first_token_seconds", "Time to the first token of an answer that is streamed.", "mode"
)
TOKENS = _counter("tokens", "Tokens that the LLM read and wrote.", "mode", "kind")
PROMPT_CHARACTERS = _counter(
    "prompt_characters", "Characters of prompts, and of these the ones with which the prompt before began.",
    "mode", "kind",
)  # fmt: skip
LLM_CALLS = _counter("llm_calls", "Calls of the LLM.", "mode")
SWITCHES = _counter(
    "model_switches", "Calls that went to another model, by the one passed over and why.", "model", "reason"
)
CACHED = _counter("cache_hits", "Calls, vectors and whole answers taken from the cache.", "mode", "kind")
FALLBACKS = _counter("fallbacks", "Answers that came with a warning.", "mode")
VERDICTS = _counter("verdicts", "Sentences of answers by verdict.", "mode", "verdict")
FAILURES = _counter("failures", "Errors that callers were told of, by type.", "type")
JOBS = _counter("ingest_jobs", "Uploads by how their ingest ended.", "state")
JOBS_WAITING = _gauge("ingest_jobs_waiting", "Uploads that wait to be ingested.")

_VERDICTS = frozenset({"supported", "partial", "unsupported", "contradicted"})
_STATUSES = frozenset({"answered", "quoted", "recalled", "not_found", "refused", "partial"})


def record_answer(answer: dict[str, Any], *, first_token_seconds: float | None = None) -> None:
    """Count a finished answer, streamed or not: its stages' times, tokens, calls, warnings and verdicts."""
    mode = answer["mode"]  # the name of a file that the server loaded
    metadata = answer.get("metadata", {})
    # An answer that was withheld reads like one that was not found: what was done with it says which.
    withheld = metadata.get("grounding") == "refused"
    ANSWERS.labels(mode, "refused" if withheld else _one_of(answer.get("status"), _STATUSES)).inc()
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
    for kind, characters in (metadata.get("prefix") or {}).items():
        if kind in ("characters", "reused"):
            PROMPT_CHARACTERS.labels(mode, kind).inc(characters)
    LLM_CALLS.labels(mode).inc(metadata.get("llm_calls") or 0)
    for kind, hits in metadata.get("cache", {}).items():
        CACHED.labels(mode, kind).inc(hits)
    for switch in metadata.get("switches", []):
        SWITCHES.labels(switch["from"], switch["reason"]).inc()  # names of a pipeline file, and words of the engine
    if metadata.get("warnings"):
        FALLBACKS.labels(mode).inc()
    for claim in metadata.get("claims", []):
        VERDICTS.labels(mode, _one_of(claim.get("verdict"), _VERDICTS)).inc()


def _one_of(value: Any, known: frozenset[str]) -> str:
    return value if value in known else _OTHER
