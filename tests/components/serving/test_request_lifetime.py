"""When a request ends before its work does: limits, time, hang-ups and shutdown; and JSON that no route shall see."""

import asyncio
import json

import pytest
from prometheus_client import generate_latest
from tests.components.serving.conftest import count, until

from shiguan.serving import telemetry
from shiguan.serving.error_replies import ApiError
from shiguan.serving.request_lifetime import check_json


async def test_a_full_server_says_so_at_once_and_takes_requests_again_when_there_is_room(gated):
    made = gated(max_in_flight=4)
    calls = [made.call("/wait") for _ in range(4)]
    await until(lambda: len(made.started) == 2 and made.admission.in_flight == 4)
    rejected = await made.call("/wait").done()
    assert rejected.status == 503
    assert rejected.error["type"] == "overloaded"
    assert rejected.headers["retry-after"] == "1"
    assert len(made.started) == 2  # the others wait their turn
    assert (await made.call("/health", method="GET").done()).status == 200
    made.release.set()
    for call in calls:
        assert (await call.done()).status == 200
    assert (await made.call("/wait").done()).status == 200
    assert made.admission.in_flight == 0


async def test_a_tenant_that_has_its_share_is_refused_and_others_are_not(gated):
    made = gated(max_in_flight=4)
    mine = {"X-API-Key": made.keys.add("acme", "read")[0]}
    second = {"X-API-Key": made.keys.add("acme", "write")[0]}
    other = {"X-API-Key": made.keys.add("beta", "read")[0]}
    calls = [made.call("/wait", headers=mine), made.call("/wait", headers=second)]
    await until(lambda: len(made.started) == 2)
    refused = await made.call("/wait", headers=mine).done()
    assert (refused.status, refused.error["type"]) == (429, "too_many_requests")
    assert refused.headers["retry-after"] == "1"
    calls.append(made.call("/wait", headers=other))
    await until(lambda: made.admission.in_flight == 3)
    made.release.set()
    for call in calls:
        assert (await call.done()).status == 200
    assert made.admission._of_tenant == {}


async def test_a_caller_who_hangs_up_ends_the_work_of_a_reply_in_one_piece(gated):
    made = gated()
    before = count("shiguan_cancelled_requests_total", reason="disconnect")
    call = made.call("/wait")
    await until(lambda: made.started)
    call.hang_up()
    await call.done()
    assert made.cancelled == made.started
    assert (call.sent, made.admission.in_flight) == ([], 0)
    assert count("shiguan_cancelled_requests_total", reason="disconnect") == before + 1
    call = made.call("/wait")  # and a server that cancels it does so too
    await until(lambda: len(made.started) == 2)
    call.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call.task
    await until(lambda: len(made.cancelled) == 2)
    assert made.admission.in_flight == 0


async def test_a_caller_who_hangs_up_in_the_middle_of_an_upload_is_no_failure(gated, caplog):
    made = gated()
    failed = count("shiguan_failures_total", type="internal")
    left = count("shiguan_cancelled_requests_total", reason="disconnect")
    call = made.call("/api/v1/documents", body=[b"x"], complete=False)
    await until(lambda: made.admission.in_flight == 1)
    call.hang_up()
    await call.done()
    assert (call.sent, caplog.text) == ([], "")
    assert count("shiguan_failures_total", type="internal") == failed
    assert count("shiguan_cancelled_requests_total", reason="disconnect") == left + 1


async def test_a_caller_who_hangs_up_while_waiting_for_a_turn_frees_the_place(gated):
    made = gated(max_in_flight=2)
    first, second = made.call("/wait"), made.call("/wait")
    await until(lambda: made.admission.in_flight == 2 and made.started)
    second.hang_up()
    await second.done()
    assert made.admission.in_flight == 1
    made.release.set()
    assert (await first.done()).status == 200
    assert (await made.call("/wait").done()).status == 200


async def test_a_shutdown_ends_what_runs_and_takes_nothing_new(gated):
    made = gated(max_in_flight=4)
    whole, stream, queued = made.call("/wait"), made.call("/stream"), made.call("/wait")
    await until(lambda: len(made.started) == 2 and made.admission.in_flight == 3)
    made.admission.stop()
    for call in (whole, queued):
        assert ((await call.done()).status, call.error["type"]) == (503, "shutting_down")
    await stream.done()
    assert b'"type":"shutting_down"' in stream.body
    assert stream.body.endswith(b"data: [DONE]\n\n")
    assert len(made.cancelled) == 2
    late = await made.call("/wait").done()
    assert (late.status, late.error["type"]) == (503, "shutting_down")
    assert late.headers["connection"] == "close"


@pytest.mark.parametrize(("after", "errors"), [(0, 1), (1, 1), (2, 0)])
async def test_a_stream_that_breaks_has_exactly_one_terminal_event(gated, after, errors):
    call = await gated().call(f"/broken-stream/{after}").done()
    assert call.body.count(b"event: error\n") == errors
    assert call.body.count(b"event: generation_complete\n") == 1 - errors
    assert call.body.endswith(b"data: [DONE]\n\n")
    assert b"text of a document" not in call.body


@pytest.mark.parametrize(("body", "headers", "status"), [
    (b"x" * 2000, {}, 200), (b"x" * 2049, {}, 413), ([b"x" * 1000] * 2, {}, 200), ([b"x" * 1000] * 5, {}, 413),
    (b"x", {"Content-Length": "2049"}, 413), (b"x", {"Content-Length": "9" * 400}, 413),
])  # fmt: skip
async def test_a_body_is_bounded_with_and_without_a_length(gated, body, headers, status):
    call = await gated(max_body_bytes=2048).call("/echo", body=body, headers=headers).done()
    assert call.status == status
    if status == 413:
        assert call.error["type"] == "payload_too_large"
        assert "2,048" in call.error["message"]


async def test_a_body_that_never_ends_is_given_up(gated):
    call = await gated(request_timeout=0.05).call("/echo", body=[b"x"], complete=False).done()
    assert call.status == 504


async def test_requests_are_counted_by_route_and_never_by_path(gated):
    made = gated()
    unmatched = {"route": "unmatched", "method": "GET", "status": "404"}
    before = count("shiguan_requests_total", **unmatched)
    for number in range(5):
        await made.call(f"/guess/{number}", method="GET").done()
    assert count("shiguan_requests_total", **unmatched) == before + 5
    await made.call("/ask", method="BREW").done()
    text = generate_latest(telemetry.REGISTRY).decode()
    assert "guess" not in text
    assert "BREW" not in text


@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_a_key_that_may_not_write_is_turned_away_before_it_takes_a_place(gated, method):
    made = gated(max_in_flight=2)
    headers = {"X-API-Key": made.keys.add("acme", "read")[0]}
    path = {"POST": "/api/v1/documents", "DELETE": "/api/v1/documents/a.txt"}[method]
    for _ in range(3):  # their bodies never come
        call = await made.call(path, method=method, headers=headers, complete=False).done()
        assert (call.status, call.error["type"]) == (403, "forbidden")
    assert made.admission.in_flight == 0


async def test_a_body_that_does_not_come_to_an_end_takes_no_turn(gated):
    made = gated(max_in_flight=3)
    headers = {"Content-Type": "application/json"}
    slow = made.call("/echo", headers=headers, body=b"{", complete=False)
    quick = await made.call("/echo", headers=headers, body=b"{}").done()
    assert quick.status == 200
    slow.hang_up()
    await slow.done()


@pytest.mark.parametrize(("body", "told"), [
    (b'{"query": ' + b"[" * 600 + b"]" * 600 + b"}", "more than 64 levels"),
    (b'{"query": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "more than 64 levels"),
    (b'{"a": [' + b"1," * 180_000 + b"1]}", "at least 180,002 values, the limit is 20,000"),
    (b'{"a": [' + b"{}," * 30_000 + b"{}]}", "at least 30,002 values"),
    (b'{"query": "\\ud800"}', "lone surrogate"), (b'{"\\udc00": 1}', "lone surrogate"),
    (b'{"query": "\xed\xa0\x80"}', "lone surrogate"),
    ('{"query": "\\ud800"}'.encode("utf-16"), "lone surrogate"),
    (b'{"top_k": ' + b"9" * 400 + b"}", "1,329 bits, the limit is 63"),
    (b'{"top_k": -9223372036854775808}', "64 bits"),
    (b'{"temperature": 1e999}', "the number inf"), (b'{"temperature": NaN}', "the number nan"),
    (b'{"query": "Who?", "top_k": 1, "top_k": 9}', "the name `top_k` twice"),
    (b'{"history": [{"role": "user", "role": "assistant", "content": "Who?"}]}', "the name `role` twice"),
    (b'{"\\ud800": 1, "\\ud800": 2}', "the name `.` twice"),
])  # fmt: skip
def test_what_a_library_would_break_on_is_refused_with_what_it_is(body, told):
    with pytest.raises(ApiError, match=told) as raised:
        check_json(body)
    assert raised.value.status_code == 400


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no JSON at all",
        b'{"query": "Who?"',
        b'{"top_k": ' + b"9" * 5000 + b"}",  # Python reads no such number; the route says that it cannot be read
        json.dumps({"query": "谁\U0001f600 \\ud800 NaN 12345678901234567890"}).encode(),
        json.dumps({"query": "𠮷", "filters": {"a": [[[1.5e3, 2**62, None, True]]]}}, ensure_ascii=False).encode(),
        b'{"filters": {"conditions": [{"field": "a"}, {"field": "b"}]}, "field": "c"}',
        json.dumps({"history": [{"role": "user", "content": ", [" * 9000}] * 100}).encode(),
    ],
)
def test_what_is_only_unusual_or_no_json_is_left_to_the_route(body):
    check_json(body)
