"""Traces of what the server does, for OpenTelemetry: names, sizes and times, and never a text."""

import os
import warnings
from collections.abc import Iterator, Mapping, Sized
from contextlib import contextmanager
from typing import Any

from haystack.tracing.tracer import NullTracer, Span, Tracer, enable_tracing, tracer

from shiguan.errors import ConfigurationError
from shiguan.llm.run_watch import StageTimer

_NAMES = frozenset(
    {
        "haystack.component.name",
        "haystack.component.type",
        "shiguan.request_id",
        "http.request.method",
        "http.route",
        "error.type",
    }
)
"""Tags whose words are ours; of all others only numbers pass."""


class _SizedSpan(Span):
    """The inner tracer's span; what goes in and out of a component is measured and not shown."""

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

    def raw_span(self) -> Any:
        return self._inner.raw_span()

    def get_correlation_data_for_logs(self) -> dict[str, Any]:
        return self._inner.get_correlation_data_for_logs()


class TextlessTracer(Tracer):
    """
    Keeps questions, passages, answers and messages of errors out of whatever another tracer records.

    Haystack hands a run's input to its tracer also where tracing of contents is off, and OpenTelemetry writes down the
    messages of exceptions. Here numbers pass, a few names that the engine gives, and lengths.
    """

    def __init__(self, inner: Tracer) -> None:
        self.inner = inner

    @contextmanager
    def trace(
        self, operation_name: str, tags: dict[str, Any] | None = None, parent_span: Span | None = None
    ) -> Iterator[Span]:
        """Trace with the inner tracer, which is told of a failure by its type alone."""
        failure: BaseException | None = None
        with self.inner.trace(operation_name, parent_span=parent_span) as span:
            sized = _SizedSpan(span)
            sized.set_tags(tags or {})
            try:
                yield sized
            except BaseException as error:
                failure = error
                _mark_failed(sized, error)
        if failure is not None:
            raise failure

    def current_span(self) -> Span | None:
        """Give the inner tracer's current span, as reticent as those that `trace` gives."""
        span = self.inner.current_span()
        return None if span is None else _SizedSpan(span)


@contextmanager
def traces(on: bool, exporter: Any = None) -> Iterator[None]:
    """
    Record traces while the server runs, and hand over what is left at its end.

    :param on: Whether to send them to `exporter`, by default to the collector that the variables `OTEL_…` name. Without
        it a tracer that somebody else put into the process stays, and hears no texts.
    :param exporter: An exporter of OpenTelemetry.
    :raises ConfigurationError: If the packages are missing.
    """
    before = tracer.actual_tracer
    inner = before.inner if isinstance(before, StageTimer) else before
    provider: Any = _provider(exporter) if on else None
    if provider is not None:
        inner = _open_telemetry(provider)
    if not isinstance(inner, NullTracer | TextlessTracer):
        enable_tracing(TextlessTracer(inner))
    try:
        yield
    finally:
        enable_tracing(before)
        if provider is not None:
            provider.shutdown()


def _mark_failed(span: Span, error: BaseException) -> None:
    span.set_tag("error.type", type(error.__cause__ or error).__name__)  # Haystack wraps what a component raises
    if hasattr(span.raw_span(), "set_status"):
        from opentelemetry.trace import StatusCode  # noqa: PLC0415  # whose span it is

        span.raw_span().set_status(StatusCode.ERROR)


def _provider(exporter: Any) -> Any:
    try:
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415  # an extra, and heavy
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

        if exporter is None:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415

            exporter = OTLPSpanExporter()
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"SHIGUAN_TRACES is on and `{error.name}` is not installed. Install it with "
            '`pip install "shiguan[traces]"`, or unset the variable.'
        ) from error
    named = os.environ.get("OTEL_SERVICE_NAME") or "shiguan"
    provider = TracerProvider(resource=Resource.create({"service.name": named}))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def _open_telemetry(provider: Any) -> Tracer:
    from haystack.tracing.opentelemetry import OpenTelemetryTracer  # noqa: PLC0415

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # Haystack 3 moves it to a package of its own
        return OpenTelemetryTracer(provider.get_tracer("shiguan"))
