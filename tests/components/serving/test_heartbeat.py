"""A stream in which nothing comes says that it is still there."""

import asyncio

from shiguan.serving import rag_routes
from shiguan.serving.rag_routes import EventStreamResponse


async def test_a_silent_stream_beats_until_its_event_comes(monkeypatch):
    monkeypatch.setattr(rag_routes, "_BEAT_SECONDS", 0.0)
    go, closed = asyncio.Event(), []

    async def events():
        try:
            yield b"data: 1\n\n"
            await go.wait()
            yield b"data: 2\n\n"
        finally:
            closed.append(True)

    parts = EventStreamResponse(events()).body_iterator
    came = [await anext(parts) for _ in range(4)]
    assert b"data: 2\n\n" not in came
    assert came[-1] == b": still at work\n\n"
    go.set()
    rest = [part async for part in parts]
    assert [part for part in rest + came if not part.startswith(b":")] == [b"data: 2\n\n", b"data: 1\n\n"]
    assert closed == [True]


async def test_a_stream_that_is_left_is_closed_at_once():
    closed = []

    async def events():
        try:
            yield b"data: 1\n\n"
            await asyncio.Event().wait()
        finally:
            closed.append(True)

    parts = EventStreamResponse(events()).body_iterator
    await anext(parts)
    await parts.aclose()
    assert closed == [True]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_what_a_producer_raises_is_raised():
    async def events():
        yield b"data: 1\n\n"
        raise ValueError("a bug")

    parts = EventStreamResponse(events()).body_iterator
    assert await anext(parts) == b"data: 1\n\n"
    try:
        await anext(parts)
    except ValueError as error:
        assert str(error) == "a bug"
    else:
        raise AssertionError("nothing was raised")
