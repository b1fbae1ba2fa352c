"""How long each stage of one run took, told by Haystack's own tracing."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from haystack.tracing.tracer import NullSpan, Span, Tracer, enable_tracing, tracer

from shiguan.llm.run_watch import RunWatch, current_watch, watched
from shiguan.llm.tally import ReplyCounter, counting_replies

_PROMPTS = frozenset({"messages", "prompt"})


class _OutputSpan(Span):
    """The inner tracer's span; shows the replies of a generator to the counter."""

    def __init__(self, inner: Span, came_out: ReplyCounter) -> None:
        self._inner = inner
        self._came_out = came_out

    def set_tag(self, key: str, value: Any) -> None:
        self._inner.set_tag(key, value)

    def set_content_tag(self, key: str, value: Any) -> None:
        if key == "haystack.component.output":
            self._came_out.count(value.get("replies") or ())
        self._inner.set_content_tag(key, value)

    def raw_span(self) -> Any:
        return self._inner.raw_span()

    def get_correlation_data_for_logs(self) -> dict[str, Any]:
        return self._inner.get_correlation_data_for_logs()


class StageTimer(Tracer):
    """
    Tells the watch of each run when a component begins and ends.

    Hands every span on to the tracer that was there before (OpenTelemetry, Datadog, or none), so that timing an answer
    takes nothing away from whoever watches the service. Runs that overlap in one process do not mix: each has its own
    context.
    """

    def __init__(self, inner: Tracer) -> None:
        self.inner = inner

    @contextmanager
    def trace(
        self, operation_name: str, tags: dict[str, Any] | None = None, parent_span: Span | None = None
    ) -> Iterator[Span]:
        """Time a component's run and trace it with the inner tracer."""
        watch = current_watch()
        name = (tags or {}).get("haystack.component.name") if operation_name == "haystack.component.run" else None
        if watch is None or not name:
            with self.inner.trace(operation_name, tags=tags, parent_span=parent_span) as span:
                yield span
            return
        with (
            watch.stage(name),
            counting_replies() as came_out,
            self.inner.trace(operation_name, tags=tags, parent_span=parent_span) as span,
        ):
            # What takes replies and passes them on has no prompt.
            writes = _PROMPTS & set((tags or {}).get("haystack.component.input_spec", ()))
            yield _OutputSpan(span, came_out) if writes else span

    def current_span(self) -> Span | None:
        """Give the inner tracer's current span."""
        return self.inner.current_span() or NullSpan()


@contextmanager
def watched_stages(watch: RunWatch) -> Iterator[RunWatch]:
    """Let a watch see every component that runs inside the block."""
    if not isinstance(tracer.actual_tracer, StageTimer):
        enable_tracing(StageTimer(tracer.actual_tracer))
    with watched(watch):
        yield watch
