"""A trace of the page while sixty sentences stream: what it draws, and that a sentence costs no more than the first."""

import pytest

from bench.speed import page as measured

pytestmark = pytest.mark.browser


def event(name, dur=0, **more):
    return {"name": name, "ph": "X", "pid": 1, "tid": 1, "dur": dur, "args": {}, **more}


def test_frames_are_counted_by_what_the_main_thread_did():
    events = [
        {"name": "thread_name", "ph": "M", "pid": 1, "tid": 1, "args": {"name": "CrRendererMain"}},
        {"name": "thread_name", "ph": "M", "pid": 1, "tid": 2, "args": {"name": "Compositor"}},
        event("RunTask", 16_000), event("RunTask", 17_000), event("RunTask", 90_000, tid=2), event("Commit"),
        event("Layout", args={"beginData": {"dirtyObjects": 7}}),
    ]  # fmt: skip
    assert measured.frames(events) == {"frames": 1, "long": 1, "longest_ms": 17.0, "placed": [7]}


def test_a_sentence_costs_the_sixtieth_what_it_costs_the_first(chromium, site):
    found = measured.stream(chromium, site, pause=0.004)
    assert found["frames"] > 10
    assert 0 <= found["long"] <= found["frames"]
    # What is placed anew does not grow with the answer; only the whole turn at the end is laid out as one.
    begun, going = found["placed"][5:15], found["placed"][-20:-5]
    assert max(going) <= 4 * max(begun)
