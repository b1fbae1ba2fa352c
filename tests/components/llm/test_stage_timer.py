import asyncio

from haystack import Pipeline, component
from haystack.tracing.tracer import NullSpan, Tracer, tracer

from shiguan.llm.run_watch import RunWatch, StageTimer, watched_stages


@component
class Echo:
    @component.output_types(text=str)
    def run(self, text: str):
        return {"text": text}


def pipeline():
    pipeline = Pipeline()
    pipeline.add_component("first", Echo())
    pipeline.add_component("second", Echo())
    pipeline.connect("first.text", "second.text")
    return pipeline


def test_every_component_of_a_run_is_timed():
    with watched_stages(RunWatch()) as watch:
        pipeline().run({"first": {"text": "x"}})
    assert set(watch.times) == {"first", "second"}
    assert all(value >= 0 for value in watch.times.values())


def test_a_run_outside_the_block_is_not_recorded():
    with watched_stages(RunWatch()) as watch:
        pass
    pipeline().run({"first": {"text": "x"}})
    assert watch.times == {}


async def test_overlapping_runs_do_not_mix():
    async def run(name):
        with watched_stages(RunWatch()) as watch:
            one = Pipeline()
            one.add_component(name, Echo())
            await asyncio.to_thread(one.run, {name: {"text": "x"}})
            return set(watch.times)

    assert await asyncio.gather(run("a"), run("b")) == [{"a"}, {"b"}]


def test_spans_reach_the_tracer_that_was_there_before():
    class Recording(Tracer):
        def __init__(self):
            self.seen = []

        def trace(self, operation_name, tags=None, parent_span=None):
            self.seen.append(operation_name)
            return NullTracerSpan()

        def current_span(self):
            return None

    class NullTracerSpan:
        def __enter__(self):
            return NullSpan()

        def __exit__(self, *error):
            return False

    recording = Recording()
    before = tracer.actual_tracer
    tracer.actual_tracer = StageTimer(recording)
    try:
        with watched_stages(RunWatch()) as watch:
            pipeline().run({"first": {"text": "x"}})
    finally:
        tracer.actual_tracer = before
    assert recording.seen.count("haystack.component.run") == 2
    assert set(watch.times) == {"first", "second"}
