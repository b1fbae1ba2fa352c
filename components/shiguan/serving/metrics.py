"""What the server counts for Prometheus. No label ever holds a tenant, a name or any other word of a user."""

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest

REGISTRY = CollectorRegistry()
"""The server's own registry: nothing that a library registers is given out by accident."""

# When a series was made doubles their number and is asked for by nobody.
disable_created_metrics()  # type: ignore[no-untyped-call]

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_OTHER = "other"

REQUESTS = Counter(
    "shiguan_requests", "Requests by route and status.", ["route", "method", "status"], registry=REGISTRY
)
REQUEST_SECONDS = Histogram(
    "shiguan_request_seconds", "Time of a request.", ["route"], buckets=_SECONDS, registry=REGISTRY
)
IN_FLIGHT = Gauge("shiguan_in_flight_requests", "Requests in the server, waiting ones included.", registry=REGISTRY)
WAITING = Gauge("shiguan_waiting_requests", "Requests that wait for their turn.", registry=REGISTRY)
REJECTED = Counter("shiguan_rejected_requests", "Requests turned away, by reason.", ["reason"], registry=REGISTRY)
CANCELLED = Counter("shiguan_cancelled_requests", "Requests ended early, by reason.", ["reason"], registry=REGISTRY)
ANSWERS = Counter("shiguan_answers", "Answers by mode and status.", ["mode", "status"], registry=REGISTRY)
ANSWER_SECONDS = Histogram(
    "shiguan_answer_seconds", "Time of an answer, by mode.", ["mode"], buckets=_SECONDS, registry=REGISTRY
)
STAGE_SECONDS = Histogram(
    "shiguan_stage_seconds", "Time of a stage of a mode.", ["mode", "stage"], buckets=_SECONDS, registry=REGISTRY
)
FIRST_TOKEN_SECONDS = Histogram(
    "shiguan_first_token_seconds",
    "Time to the first token of an answer that is streamed.",
    ["mode"],
    buckets=_SECONDS,
    registry=REGISTRY,
)
TOKENS = Counter("shiguan_tokens", "Tokens that the LLM read and wrote.", ["mode", "kind"], registry=REGISTRY)
PROMPT_CHARACTERS = Counter(
    "shiguan_prompt_characters", "Characters of prompts, and of these the ones with which the prompt before began.",
    ["mode", "kind"], registry=REGISTRY,
)  # fmt: skip
LLM_CALLS = Counter("shiguan_llm_calls", "Calls of the LLM.", ["mode"], registry=REGISTRY)
SWITCHES = Counter(
    "shiguan_model_switches", "Calls that went to another model, by the one passed over and why.", ["model", "reason"],
    registry=REGISTRY,
)  # fmt: skip
CACHED = Counter(
    "shiguan_cache_hits", "Calls, vectors and whole answers taken from the cache.", ["mode", "kind"], registry=REGISTRY
)
FALLBACKS = Counter("shiguan_fallbacks", "Answers that came with a warning.", ["mode"], registry=REGISTRY)
VERDICTS = Counter("shiguan_verdicts", "Sentences of answers by verdict.", ["mode", "verdict"], registry=REGISTRY)
FAILURES = Counter("shiguan_failures", "Errors that callers were told of, by type.", ["type"], registry=REGISTRY)
JOBS = Counter("shiguan_ingest_jobs", "Uploads by how their ingest ended.", ["state"], registry=REGISTRY)
JOBS_WAITING = Gauge("shiguan_ingest_jobs_waiting", "Uploads that wait to be ingested.", registry=REGISTRY)

_VERDICTS = frozenset({"supported", "partial", "unsupported", "contradicted"})
_STATUSES = frozenset({"answered", "quoted", "recalled", "not_found", "refused", "partial"})


def record_answer(answer: dict[str, Any], *, first_token_seconds: float | None = None) -> None:
    """
    Count a finished answer: its stages' times, tokens, calls, warnings and verdicts.

    Called once by whatever produced the answer, streamed or not.
    """
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


def record_failure(kind: str) -> None:
    FAILURES.labels(kind).inc()


def exposition() -> bytes:
    return generate_latest(REGISTRY)


def _one_of(value: Any, known: frozenset[str]) -> str:
    return value if value in known else _OTHER
