"""A stream of events says that it is still there, ends as it should wherever it is cut off, and is closed at once."""

import asyncio
import json
import sys

import pytest

from shiguan.serving import event_stream
from shiguan.serving.event_stream import EventStreamResponse, ServerEvent

EVENTS = [
    ServerEvent({"text": "event: error and data: [DONE]"}, "token", 1),
    ServerEvent({"text": "b"}, "token", 2),
    ServerEvent({}, "generation_complete", 3),
]


class Listener:
    """Hears a stream; `go` lets its producer give the last event."""

    def __init__(self, events):
        self.body, self.whole, self.closed, self.go = b"", False, False, asyncio.Event()
        self.task = asyncio.create_task(EventStreamResponse(self.produced(events))(None, None, self.send))

    async def produced(self, events):
        try:
            for event in events:
                yield event
            await self.go.wait()
            yield ServerEvent({}, "last")
        finally:
            self.closed = True

    async def send(self, message):
        self.body += message.get("body", b"")
        self.whole |= message.get("more_body") is False

    async def until(self, words):
        async with asyncio.timeout(5):
            while words not in self.body:  # noqa: ASYNC110
                await asyncio.sleep(0)


def test_the_data_of_an_event_is_one_line_for_every_reader_of_lines():
    data = {"text": "".join(filter(lambda c: len(f"a{c}b".splitlines()) > 1, map(chr, range(sys.maxunicode + 1))))}
    lines = ServerEvent(data, "token", 1).encoded().decode().splitlines()
    assert lines[:2] == ["id: 1", "event: token"]
    assert [json.loads(line.removeprefix("data: ")) for line in lines[2:-1]] == [data]


async def test_a_silent_stream_beats_until_its_event_comes(monkeypatch):
    monkeypatch.setattr(event_stream, "_BEAT_SECONDS", 0.0)
    heard = Listener(EVENTS[:1])
    await heard.until(b": still at work\n\n: still at work\n\n")
    heard.go.set()
    await heard.task
    parts = [part for part in heard.body.split(b"\n\n") if not part.startswith(b":")]
    assert parts == [EVENTS[0].encoded().strip(), b"event: last\ndata: {}", b"data: [DONE]", b""]
    assert (heard.whole, heard.closed) == (True, True)


@pytest.mark.parametrize("whole", range(len(EVENTS) + 1))
@pytest.mark.parametrize("reason", ["timeout", "shutting_down"])
async def test_a_stream_cut_after_any_event_has_one_terminal_event_and_one_done(whole, reason):
    heard = Listener(EVENTS[:whole])
    stream = b"".join(event.encoded() for event in EVENTS[:whole])
    await heard.until(stream)
    await asyncio.sleep(0)
    heard.task.cancel(reason)
    await heard.task
    assert heard.body.startswith(stream)
    lines = heard.body.split(b"\n")
    assert lines.count(b"event: error") + lines.count(b"event: generation_complete") == 1
    assert lines.count(b"data: [DONE]") == 1
    assert heard.body.endswith(b"\n\n")
    assert (f'"type":"{reason}"'.encode() in heard.body) == (whole < len(EVENTS))
    assert (heard.whole, heard.closed) == (True, True)


async def test_a_stream_that_is_left_is_closed_at_once_and_says_nothing_more():
    heard = Listener(EVENTS[:1])
    await heard.until(b"data")
    heard.task.cancel("disconnect")
    with pytest.raises(asyncio.CancelledError):
        await heard.task
    assert (heard.body, heard.whole, heard.closed) == (EVENTS[0].encoded(), False, True)
    assert asyncio.all_tasks() == {asyncio.current_task()}
