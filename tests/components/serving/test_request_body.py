"""JSON that no route shall see, and JSON that is only unusual."""

import json

import pytest

from shiguan.serving.error_replies import ApiError
from shiguan.serving.request_lifetime import check_json


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b'{"query": ' + b"[" * 600 + b"]" * 600 + b"}", "more than 64 levels"),
        (b'{"query": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "more than 64 levels"),
        (b'{"a": [' + b"1," * 180_000 + b"1]}", "at least 180,002 values, the limit is 20,000"),
        (b'{"a": [' + b"{}," * 30_000 + b"{}]}", "at least 30,002 values"),
        (b'{"query": "\\ud800"}', "lone surrogate"),
        (b'{"\\udc00": 1}', "lone surrogate"),
        (b'{"query": "\xed\xa0\x80"}', "lone surrogate"),
        ('{"query": "\\ud800"}'.encode("utf-16"), "lone surrogate"),
        (b'{"top_k": ' + b"9" * 400 + b"}", "1,329 bits, the limit is 63"),
        (b'{"top_k": -9223372036854775808}', "64 bits"),
        (b'{"temperature": 1e999}', "the number inf"),
        (b'{"temperature": NaN}', "the number nan"),
        (b'{"query": "Who?", "top_k": 1, "top_k": 9}', "the name `top_k` twice"),
        (b'{"history": [{"role": "user", "role": "assistant", "content": "Who?"}]}', "the name `role` twice"),
        (b'{"\\ud800": 1, "\\ud800": 2}', "the name `.` twice"),
    ],
)
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
