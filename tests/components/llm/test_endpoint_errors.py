import httpx
import openai
import pytest

from shiguan.llm import endpoint_errors
from shiguan.llm.endpoint_errors import asked_to_wait, is_worth_retrying


def failure(status=429, **headers):
    request = httpx.Request("POST", "http://127.0.0.1/v1/chat/completions")
    return openai.APIStatusError("no", response=httpx.Response(status, headers=headers, request=request), body=None)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("3", 3.0),
        ("0.5", 0.5),
        ("0", 0.0),
        ("Thu, 01 Jan 1970 00:02:10 GMT", 30.0),
        ("Thu, 01 Jan 1970 00:00:10 GMT", 0.0),
        ("soon", 0.0),
        ("-4", 0.0),
        ("", 0.0),
    ],
)
def test_retry_after_is_seconds_or_a_date(monkeypatch, value, seconds):
    monkeypatch.setattr(endpoint_errors.time, "time", lambda: 100.0)
    assert asked_to_wait(failure(**{"Retry-After": value})) == seconds


def test_who_does_not_say_is_not_waited_for():
    assert asked_to_wait(failure()) == asked_to_wait(ConnectionError()) == asked_to_wait(None) == 0.0


@pytest.mark.parametrize(
    ("error", "worth"),
    [
        (failure(429), True),
        (failure(503), True),
        (failure(408), True),
        (failure(400), False),
        (failure(401), False),
        (failure(404), False),
        (failure(429, **{"Retry-After": "60"}), True),
        (failure(429, **{"Retry-After": "61"}), False),
        (ConnectionError("reset"), True),
        (ValueError("no JSON"), True),
        (TypeError("a wrong argument"), False),
        (KeyboardInterrupt(), False),
    ],
)
def test_only_what_may_pass_is_worth_another_attempt(error, worth):
    assert is_worth_retrying(error) is worth
