"""However a stream of events is cut into parts and wherever it is cut off, it ends as it should."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from shiguan.serving.error_replies import ApiError
from shiguan.serving.request_lifetime import ResponseWatch
from shiguan.serving.telemetry import in_request

EVENTS = [
    b'id: 1\nevent: token\ndata: {"text":"event: error and data: [DONE]"}\n\n',
    b'id: 2\nevent: token\ndata: {"text":"b"}\n\n',
    b"id: 3\nevent: generation_complete\ndata: {}\n\n",
    b"data: [DONE]\n\n",
]
SCOPE = {"type": "http", "method": "POST", "path": "/"}


async def sent_of(parts, kind=b"text/event-stream; charset=utf-8"):
    sent = []

    async def send(message):
        sent.append(message)

    watch = ResponseWatch(send)
    await watch({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
    for part in parts:
        await watch({"type": "http.response.body", "body": part, "more_body": True})
    await watch.end(ApiError("timeout"), SCOPE)
    await watch({"type": "http.response.body", "body": b"too late", "more_body": True})
    await watch.end(ApiError("timeout"), SCOPE)
    return sent


@given(whole=st.integers(0, len(EVENTS)), at=st.lists(st.integers(1, 200), max_size=8))
async def test_a_stream_cut_after_any_event_has_one_terminal_event_and_one_done(whole, at):
    stream = b"".join(EVENTS[:whole])
    edges = sorted({0, len(stream), *(edge for edge in at if edge < len(stream))})
    parts = [stream[start:end] for start, end in pairwise(edges)]
    sent = await sent_of(parts)
    body = b"".join(message.get("body", b"") for message in sent)
    assert body.startswith(stream)
    lines = body.split(b"\n")
    terminal = lines.count(b"event: error") + lines.count(b"event: generation_complete")
    assert terminal == 1
    assert lines.count(b"data: [DONE]") == 1
    assert body.endswith(b"\n\n")
    assert b"too late" not in body
    assert sent[-1]["more_body"] is False


async def test_a_reply_that_is_no_stream_is_not_added_to():
    sent = await sent_of([b'{"half":'], kind=b"application/json")
    assert b"".join(message.get("body", b"") for message in sent) == b'{"half":'


async def test_a_reply_that_had_not_begun_becomes_the_error():
    sent = []

    async def send(message):
        sent.append(message)

    watch = ResponseWatch(send)
    with in_request(id="id-1"):
        await watch.end(ApiError("timeout"), SCOPE)
    assert sent[0]["status"] == 504
    assert b'"request_id":"id-1"' in sent[1]["body"]
