"""Traces of what the server does, for OpenTelemetry: names, sizes and times, and never a text."""

import os
import warnings
from collections.abc import Iterator, Mapping, Sized
from contextlib import contextmanager, suppress
from typing import Any

from haystack.tracing.tracer import NullTracer, Span, Tracer, enable_tracing, tracer

from shiguan.errors import ConfigurationError
from shiguan.llm.run_watch import StageTimer

_NAMES = frozenset(
    "haystack.component.name haystack.component.type shiguan.request_id http.request.method http.route "
    "error.type".split()
)
"""Tags whose words are ours; of all others only numbers pass."""


class _SizedSpan(Span):
    """A span of the inner tracer; what goes into a component and comes out is measured and not shown."""

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
    """Tells the inner tracer that something failed, without the words of the error."""


class TextlessTracer(Tracer):
    """
    Keeps questions, passages, answers and messages of errors out of whatever another tracer records.

    Haystack hands a run's input to its tracer also where tracing of contents is off, and tracers write down the
    messages of exceptions. Here numbers pass, a few names that the engine gives, and lengths.
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
    """Record traces for the collector that `OTEL_…` names; where they are off, another's tracer hears no texts."""
    before = tracer.actual_tracer
    inner, provider = before.inner if isinstance(before, StageTimer) else before, None
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
