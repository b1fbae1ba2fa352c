"""How long each stage of one run took, told by Haystack's own tracing."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from haystack.tracing.tracer import NullSpan, Span, Tracer, enable_tracing, tracer

_current: ContextVar[dict[str, float] | None] = ContextVar("shiguan_stage_times", default=None)


class StageTimer(Tracer):
    """
    Adds up the wall time of every component of one run.

    Hands every span on to the tracer that was there before (OpenTelemetry, Datadog, or none), so that timing an answer
    takes nothing away from whoever watches the service. Runs that overlap in one process do not mix: each has its own
    context.
    """

    def __init__(self, inner: Tracer) -> None:
        """
        Stand before another tracer.

        :param inner: The tracer that gets every span.
        """
        self.inner = inner

    @contextmanager
    def trace(
        self, operation_name: str, tags: dict[str, Any] | None = None, parent_span: Span | None = None
    ) -> Iterator[Span]:
        """
        Time a component's run and trace it with the inner tracer.

        :param operation_name: What runs, in Haystack's words.
        :param tags: What is known about it.
        :param parent_span: The span it belongs to.
        :yields: The inner tracer's span.
        """
        times = _current.get()
        name = (tags or {}).get("haystack.component.name") if operation_name == "haystack.component.run" else None
        started = time.perf_counter()
        try:
            with self.inner.trace(operation_name, tags=tags, parent_span=parent_span) as span:
                yield span
        finally:
            if times is not None and name:
                times[name] = times.get(name, 0.0) + (time.perf_counter() - started) * 1000

    def current_span(self) -> Span | None:
        """
        Give the inner tracer's current span.

        :returns: The span, or an empty one.
        """
        return self.inner.current_span() or NullSpan()


@contextmanager
def stage_times() -> Iterator[dict[str, float]]:
    """
    Collect the times of the components that run inside the block.

    :yields: Component name to milliseconds, filled while the block runs; a component that runs twice is added up.
    """
    if not isinstance(tracer.actual_tracer, StageTimer):
        enable_tracing(StageTimer(tracer.actual_tracer))
    times: dict[str, float] = {}
    token = _current.set(times)
    try:
        yield times
    finally:
        _current.reset(token)
