"""Shares of a minute, the end and the last use of keys, and the trail of what was asked."""

import json
import stat

import pytest

from shiguan.cli import main
from shiguan.serving import key_use
from shiguan.serving.authentication import KeyRing, Principal, principal_of_request
from shiguan.serving.engine import _count
from shiguan.serving.error_replies import ApiError
from shiguan.serving.key_use import KeyUse, audit
from shiguan.serving.keys import KeyFile
from shiguan.serving.settings import ServingSettings


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(key_use.time, "monotonic", lambda: now[0])
    return now


def use(tmp_path, **given):
    return KeyUse(ServingSettings(data_dir=tmp_path, **given))


def retry_after(keys, key="a"):
    with pytest.raises(ApiError) as raised:
        keys.take(key)
    assert raised.value.status_code == 429
    return int(raised.value.headers["Retry-After"])


def test_a_key_has_its_requests_of_a_minute_and_they_come_back_evenly(tmp_path, clock):
    keys = use(tmp_path, requests_per_minute=6)
    for _ in range(6):
        keys.take("a")
    assert retry_after(keys) == 10
    keys.take("b")  # another key has its own
    clock[0] += 9.5
    assert retry_after(keys) == 1
    clock[0] += 0.5
    keys.take("a")
    assert retry_after(keys) == 10
    clock[0] += 3600
    for _ in range(6):  # never more than a minute's share
        keys.take("a")
    assert retry_after(keys) == 10


def test_questions_of_a_batch_count_one_by_one(tmp_path, clock):
    keys = use(tmp_path, requests_per_minute=60)
    keys.take("a")
    keys.spend("a", requests=69)
    assert retry_after(keys) == 11


def test_tokens_may_be_overdrawn_once_and_are_waited_for(tmp_path, clock):
    keys = use(tmp_path, tokens_per_minute=600)
    keys.take("a")
    principal = Principal("acme", "read", "a", use=keys)
    token = principal_of_request.set(principal)
    _count({"mode": "simple", "metadata": {"usage": {"prompt_tokens": 800, "completion_tokens": 100}}})
    principal_of_request.reset(token)
    assert retry_after(keys) == 30
    clock[0] += 30
    keys.take("a")


def test_without_limits_nothing_is_refused(tmp_path):
    keys = use(tmp_path)
    for _ in range(1000):
        keys.take("a")
        keys.spend("a", tokens=10**9)


async def test_the_server_answers_429_with_when_to_come_again(gated):
    made = gated(requests_per_minute=2)
    key, _ = made.keys.add("acme", "read")
    headers = {"X-API-Key": key, "Content-Type": "application/json"}
    calls = [await made.call("/ask", headers=headers, body=b'{"query": "a"}').done() for _ in range(3)]
    assert [call.status for call in calls] == [200, 200, 429]
    assert calls[2].error["type"] == "too_many_requests"
    assert calls[2].headers["retry-after"] == "30"


def test_a_key_ends_with_its_last_day(tmp_path, monkeypatch):
    file = KeyFile(tmp_path / "keys.json")
    key, record = file.add("acme", "read", days=30)
    keys = KeyRing(ServingSettings(data_dir=tmp_path))
    assert keys.principal(key) is not None
    monkeypatch.setattr("shiguan.serving.keys.utc_time", lambda: record.expires)
    assert keys.principal(key) is None
    assert not keys.keyless


def test_keys_are_listed_with_their_end_and_their_last_use(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("SHIGUAN_DATA_DIR", str(tmp_path))
    assert main(["keys", "add", "--tenant", "acme", "--role", "read", "--days", "7", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    keys = KeyRing(ServingSettings(data_dir=tmp_path))
    keys.use.take(made["id"])
    keys.use.save()
    assert main(["keys", "list", "--json"]) == 0
    [listed] = json.loads(capsys.readouterr().out)["keys"]
    assert listed["expires"] == made["expires"] > made["created"]
    assert listed["last_used"] >= made["created"]
    assert main(["keys", "list"]) == 0
    assert f"expires {made['expires']}, last used {listed['last_used']}" in capsys.readouterr().out
    assert main(["keys", "add", "--tenant", "a", "--role", "read", "--days", "7", "--print-hash"]) == 2


def test_a_later_use_that_another_process_wrote_stays(tmp_path):
    keys = use(tmp_path)
    keys.path.write_text('{"a": "2999-01-01T00:00:00Z", "b": "2001-01-01T00:00:00Z"}')
    keys.take("a")
    keys.save()
    assert json.loads(keys.path.read_text()) == {"a": "2999-01-01T00:00:00Z", "b": "2001-01-01T00:00:00Z"}
    keys.path.write_text("[")
    keys.take("a")
    keys.save()
    assert list(json.loads(keys.path.read_text())) == ["a"]


def test_the_trail_says_who_asked_what_and_is_turned_over(tmp_path, monkeypatch):
    monkeypatch.setattr(key_use, "_AUDIT_BYTES", 300)
    monkeypatch.setattr(key_use, "_AUDIT_FILES", 3)
    for number in range(20):
        audit(tmp_path, "upload", tenant="acme", source=f"卷{number}\n.txt")
    files = [tmp_path / name for name in ("audit.2.jsonl", "audit.1.jsonl", "audit.jsonl")]
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert [line["source"] for line in lines] == [f"卷{number}\n.txt" for number in range(20 - len(lines), 20)]
    assert set(lines[-1]) == {"time", "action", "tenant", "source"}
    assert all(file.stat().st_size <= 300 and stat.S_IMODE(file.stat().st_mode) == 0o600 for file in files)
    assert sorted(path.name for path in tmp_path.glob("audit*.jsonl")) == sorted(file.name for file in files)


def test_a_trail_that_cannot_be_written_is_said_and_keeps_nobody_from_working(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    audit(tmp_path / "file", "delete", tenant="acme")
    assert "The audit trail lacks a line (delete)" in caplog.text


def test_keys_that_are_made_and_revoked_stand_in_the_trail_without_their_secret(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("SHIGUAN_DATA_DIR", str(tmp_path))
    main(["keys", "add", "--tenant", "acme", "--role", "write", "--json"])
    made = json.loads(capsys.readouterr().out)
    main(["keys", "revoke", made["id"]])
    text = (tmp_path / "audit.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert [(line["action"], line["key"], line["tenant"]) for line in lines] == [
        ("key add", made["id"], "acme"),
        ("key revoke", made["id"], "acme"),
    ]
    assert made["key"] not in text
