"""Who gets through the gate, and what everybody else is told."""

import json
import logging

import pytest
from tests.components.serving.conftest import count

from shiguan.serving.error_replies import KINDS, ApiError

ASK = json.dumps({"query": "who"}).encode()
JSON = {"Content-Type": "application/json"}
APP = "https://app.example.org"


@pytest.fixture
async def keyed(gated):
    """An application with a key of each role, and their headers."""
    made = gated()
    keys = {role: made.keys.add("acme", role)[0] for role in ("read", "write", "metrics")}
    keys["beta"] = made.keys.add("beta", "read")[0]
    headers = {role: {"Authorization": f"Bearer {key}", **JSON} for role, key in keys.items()}
    return made, keys, headers


@pytest.mark.parametrize(("who", "path", "method", "status"), [
    ("read", "/ask", "POST", 200), ("write", "/ask", "POST", 200), ("metrics", "/ask", "POST", 403),
    (None, "/ask", "POST", 401), ("read", "/write", "POST", 403), ("write", "/write", "POST", 200),
    (None, "/write", "POST", 401), ("metrics", "/metrics", "GET", 200), ("read", "/metrics", "GET", 403),
    ("write", "/metrics", "GET", 403), (None, "/metrics", "GET", 401), (None, "/health", "GET", 200),
    ("read", "/nothing", "GET", 404), (None, "/nothing", "GET", 401), ("metrics", "/nothing", "GET", 403),
    ("read", "/ask", "GET", 405), (None, "/openapi.json", "GET", 401), (None, "/ask/ui/app.js", "GET", 401),
])  # fmt: skip
async def test_each_role_does_what_it_may_and_nothing_else(keyed, who, path, method, status):
    made, _, headers = keyed
    call = await made.call(path, method=method, body=ASK, headers=headers.get(who, JSON)).done()
    assert call.status == status
    if status >= 400:
        assert set(call.error) == {"type", "code", "param", "stage", "message", "next_step", "request_id"}
        assert call.error["request_id"] == call.headers["x-request-id"]
    assert (call.headers.get("www-authenticate") == "Bearer") == (status == 401)


async def test_the_tenant_is_the_keys_also_for_code_without_the_request(keyed):
    made, keys, _ = keyed
    call = await made.call("/ask", body=ASK, headers={"X-API-Key": keys["beta"], **JSON}).done()
    assert call.json == {"tenant": "beta", "inside": "beta", "role": "read"}


@pytest.mark.parametrize(("tenant", "status"), [("acme", 200), (None, 200), ("beta", 403), ("", 403), ("ACME", 403)])
async def test_a_body_that_names_another_tenant_is_refused(keyed, tenant, status):
    made, _, headers = keyed
    body = json.dumps({"query": "who", "tenant_id": tenant}).encode()
    call = await made.call("/ask", body=body, headers=headers["read"]).done()
    assert call.status == status
    if status == 403:
        assert call.error["type"] == "tenant_mismatch"


@pytest.mark.parametrize("headers", [
    {"Authorization": "Bearer"}, {"Authorization": "Bearer "}, {"Authorization": "Basic abc"},
    {"Authorization": "Bearer " + "x" * 10_000}, {"Authorization": "Bearer schlüssel"}, {"X-API-Key": ""},
    {"X-API-Key": "sg_" + "A" * 43},
])  # fmt: skip
async def test_what_is_no_key_opens_nothing(keyed, headers):
    made, _, _ = keyed
    call = await made.call("/ask", body=ASK, headers={**headers, **JSON}).done()
    assert call.status == 401


@pytest.mark.parametrize(("given", "status"), [
    ({}, 200), ({"host": "localhost:1416"}, 200),
    ({"host": "[::1]:1416", "client": "::1", "server": "::1"}, 200),
    ({"client": "::ffff:127.0.0.1"}, 200),
    ({"headers": {"Origin": "http://localhost:3000"}}, 200),
    ({"host": "evil.example"}, 403), ({"host": "127.0.0.1.evil.example"}, 403),
    ({"host": "localhost.evil.example"}, 403), ({"host": ""}, 403), ({"host": "[::1"}, 403),
    ({"client": "10.0.0.7"}, 403), ({"client": None}, 403), ({"server": "192.168.0.2"}, 403),
    ({"server": "0.0.0.0"}, 403),
    ({"headers": {"X-Forwarded-For": "127.0.0.1"}}, 403),
    ({"headers": {"X-Real-IP": "127.0.0.1"}}, 403),
    ({"headers": {"Forwarded": "for=127.0.0.1"}}, 403),
    ({"headers": {"Origin": "https://evil.example"}}, 403),
    ({"headers": {"Origin": "null"}}, 403),
])  # fmt: skip
async def test_without_keys_only_this_machine_is_answered(gated, given, status):
    made = gated()
    given = {**given, "headers": {**given.get("headers", {}), **JSON}}
    call = await made.call("/ask", body=ASK, **given).done()
    assert call.status == status
    if status == 403:
        assert call.error["type"] == "not_local"
        assert "shiguan keys add" in call.error["next_step"]
    else:
        assert call.json["tenant"] == "default"


async def test_without_keys_an_origin_of_the_settings_is_answered(gated):
    made = gated(cors_origins=(APP,))
    call = await made.call("/ask", body=ASK, headers={"Origin": APP, **JSON}).done()
    assert (call.status, call.headers["access-control-allow-origin"]) == (200, APP)


@pytest.mark.parametrize("method", ["GET", "POST", "PATCH", "DELETE"])
async def test_cors_is_closed_by_default_and_open_to_the_named_only(gated, method):
    preflight = {"Origin": APP, "Access-Control-Request-Method": method}
    preflight["Access-Control-Request-Headers"] = "authorization, content-type, x-api-key, x-conversation-id"
    closed = await gated().call("/ask", method="OPTIONS", headers=preflight).done()
    assert "access-control-allow-origin" not in closed.headers
    made = gated(cors_origins=(APP,))
    made.keys.add("acme", "read")
    opened = await made.call("/ask", method="OPTIONS", headers=preflight).done()
    assert (opened.status, opened.headers["access-control-allow-origin"]) == (200, APP)
    other = await made.call("/ask", method="OPTIONS", headers={**preflight, "Origin": "https://evil.example"}).done()
    assert "access-control-allow-origin" not in other.headers


@pytest.mark.parametrize(("kind", "status", "type_", "stage"), [
    ("refused", 400, "refused", None), ("answer", 500, "answer_failed", "generator"),
    ("locked", 503, "store_unavailable", None), ("full", 503, "storage_full", None), ("bug", 500, "internal", None),
])  # fmt: skip
async def test_what_fails_is_told_without_what_is_inside(gated, kind, status, type_, stage, caplog):
    caplog.set_level(logging.INFO)
    before = count("shiguan_failures_total", type=type_)
    call = await gated().call(f"/fail/{kind}").done()
    assert (call.status, call.error["type"], call.error["stage"]) == (status, type_, stage)
    assert count("shiguan_failures_total", type=type_) == before + 1
    assert call.headers.get("retry-after") == ("5" if type_ == "store_unavailable" else None)
    for secret in ("text of a document", "/srv/secret", "Traceback", "KeyError"):
        assert secret not in call.body.decode()
        assert secret not in caplog.text.replace("KeyError at", "")
    if type_ in ("internal", "answer_failed"):
        assert call.error["request_id"] in caplog.text


@pytest.mark.parametrize(("body", "status", "fields"), [
    (b"{", 400, None), (b"", 422, ["body"]), (b"[]", 422, ["body"]), (b'{"query": ""}', 422, ["query"]),
    (b'{"query": "secret words that are too long"}', 422, ["query"]),
    (b'{"query": 5, "tenant_id": []}', 422, ["query", "tenant_id"]),
    (b'{"query": "\xff"}', 400, None),
])  # fmt: skip
async def test_wrong_fields_are_named_and_not_repeated(gated, body, status, fields):
    call = await gated().call("/ask", body=body, headers=JSON).done()
    assert call.status == status
    assert "secret" not in call.body.decode()
    if fields:
        assert call.error["type"] == "invalid_request"
        assert [entry["field"] for entry in call.error["fields"]] == fields
        assert all(entry["problem"] for entry in call.error["fields"])


@pytest.mark.parametrize("kind", ["", "text/plain", "application/x-www-form-urlencoded"])
async def test_json_that_is_not_sent_as_json_is_told_how_to_send_it(gated, kind):
    call = await gated().call("/ask", body=ASK, headers={"Content-Type": kind}).done()
    assert (call.status, "`Content-Type: application/json`" in call.error["message"]) == (422, True)


async def test_a_request_id_of_the_caller_is_kept_if_it_is_a_plain_one(gated):
    made = gated()
    kept = await made.call("/fail/bug", headers={"X-Request-ID": "trace-0123456789"}).done()
    assert kept.error["request_id"] == kept.headers["x-request-id"] == "trace-0123456789"
    for hostile in ("short", "x" * 65, "a b c d e f g h", "id\tid\tid\tid", "<script>alert(1)"):
        replaced = await made.call("/fail/bug", headers={"X-Request-ID": hostile}).done()
        assert replaced.headers["x-request-id"] != hostile
        assert len(replaced.headers["x-request-id"]) == 32


def test_every_type_of_error_says_what_to_do():
    for name, kind in KINDS.items():
        assert name.islower()
        assert 400 <= kind.status < 600
        assert kind.message.endswith(".")
        assert kind.next_step.endswith(".")


def test_half_a_character_in_a_message_can_be_sent():
    json.dumps(ApiError("refused", message="It is \ud800.").body(), ensure_ascii=False).encode()
