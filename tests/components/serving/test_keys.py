"""API keys: what is kept of them, and what a running server makes of the file."""

import json
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from shiguan.cli import main
from shiguan.errors import ConfigurationError, RefusedError
from shiguan.resources import text_hash
from shiguan.serving import keys as keys_module
from shiguan.serving.authentication import KeyRing, check_keys_file
from shiguan.serving.current_request import Principal
from shiguan.serving.error_replies import ApiError
from shiguan.serving.keys import KeyFile, audit
from shiguan.serving.settings import ServingSettings


@pytest.fixture
def file(tmp_path):
    return KeyFile(tmp_path / "keys.json")


def ring(file):
    return KeyRing(ServingSettings(keys_file=file.path))


def test_the_file_holds_no_key_and_only_its_owner_reads_it(file):
    key, record = file.add("acme", "write", "laptop")
    text = file.path.read_text()
    assert key not in text
    assert key.removeprefix("sg_") not in text
    assert text_hash(key) in text
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert len(key) == 3 + 43  # 256 bits in base64 without padding
    assert record.id == text_hash(key)[:12]


def test_a_key_opens_its_own_tenant_and_nothing_else_opens_it(file):
    key, record = file.add("acme", "read")
    other, _ = file.add("beta", "write")
    keys = ring(file)
    assert keys.principal(key) == Principal("acme", "read", record.id)
    assert keys.principal(other).tenant_id == "beta"
    assert [keys.principal(one) for one in (key[:-1], "", record.hash)] == [None] * 3
    assert not keys.keyless


def test_a_running_server_sees_keys_added_and_revoked(file):
    first, _ = file.add("acme", "read")
    keys = ring(file)
    second, record = file.add("acme", "write")
    assert keys.principal(second) is not None
    file.revoke(record.id)
    assert keys.principal(second) is None
    assert keys.principal(first) is not None


def test_revoking_the_last_key_does_not_open_the_server(file):
    key, record = file.add("acme", "read")
    keys = ring(file)
    file.revoke(record.id)
    assert not ring(file).keyless
    for _ in range(2):
        assert (keys.principal(key), keys.keyless) == (None, False)
        file.path.unlink(missing_ok=True)  # nor does losing the file


def test_a_first_key_closes_a_server_that_had_none(file):
    keys = ring(file)
    assert keys.keyless
    key, _ = file.add("acme", "read")
    assert not keys.keyless
    assert keys.principal(key).tenant_id == "acme"


RECORD = {"id": "0" * 12, "hash": "0" * 64, "tenant": "t", "role": "read"}
WRONG = [
    {"hash": "zz"}, {"hash": 5}, {"role": "root"}, {"tenant": ""}, {"id": ["a"]}, {"id": "b"}, {"revoked": 1}, {"more": 1},
]  # fmt: skip


@pytest.mark.parametrize("content", [
    *(json.dumps({"keys": [{**RECORD, **wrong}]}) for wrong in WRONG),
    "[]", '{"keys": [{"id": "a"}]}', '{"keys": 3}', '{"keys": ' + "[" * 100_000, '{"keys": ["\\ud800"]}', "\x00",
])  # fmt: skip
def test_a_file_that_is_none_of_ours_is_refused(file, content):
    file.path.write_text(json.dumps({"keys": [RECORD]}))
    assert [record.tenant for record in file.read()] == ["t"]
    file.path.write_text(content)
    with pytest.raises(ConfigurationError):
        file.read()


@pytest.mark.parametrize("content", ["{", '{"keys": [{"id": ["a"]}]}', '{"keys": ' + "[" * 100_000])
def test_no_old_key_is_accepted_after_the_file_is_spoiled_in_any_way(file, content, caplog):
    key, _ = file.add("acme", "read")
    keys = ring(file)
    whole = file.path.read_text()
    file.path.write_text(content)
    for _ in range(3):
        with pytest.raises(ApiError, match="cannot be read") as raised:
            keys.principal(key)
        assert (raised.value.status_code, keys.keyless) == (503, False)
        with pytest.raises(ApiError):
            keys.check()
    assert caplog.text.count("No key is accepted until the file is repaired") == 1
    with pytest.raises(ConfigurationError, match="cannot be read"):
        ring(file)
    file.path.write_text(whole)
    assert keys.principal(key) is not None


def test_keys_made_at_once_are_all_kept(file):
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda n: file.add(f"t{n}", "read"), range(12)))
    assert {record.tenant for record in file.read()} == {f"t{n}" for n in range(12)}
    assert not list(file.path.parent.glob(".*"))


@pytest.mark.parametrize("tenant", ["", "  ", "a,b", "a:b", "*", "x" * 101, "a\nb", "a\x00b"])
def test_a_tenant_that_no_name_can_be_is_refused(file, tenant):
    with pytest.raises(RefusedError, match="tenant"):
        file.add(tenant, "read")
    assert file.read() == []


def test_a_key_is_made_listed_with_its_end_and_revoked_from_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SHIGUAN_DATA_DIR", str(tmp_path / "other"))

    def keys(*arguments):
        return main(["keys", *arguments, "--data-dir", str(tmp_path)])

    assert keys("add", "--role", "read") == 2
    assert "--tenant" in capsys.readouterr().err
    assert keys("add", "--tenant", "书院", "--role", "write", "--name", "desk", "--days", "7", "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert made["key"].startswith("sg_")
    assert keys("list") == 0
    listed = capsys.readouterr().out
    assert all(word in listed for word in (made["id"], "书院", f"expires {made['expires']}"))
    assert made["key"] not in listed
    assert text_hash(made["key"]) not in listed
    assert keys("list", "--json") == 0
    [record] = json.loads(capsys.readouterr().out)["keys"]
    assert record["expires"] == made["expires"] > made["created"]
    assert keys("revoke", made["id"]) == 0
    assert "Revoked" in capsys.readouterr().out
    assert keys("revoke", made["id"]) == 2
    assert "no valid key" in capsys.readouterr().err
    trail = (tmp_path / "audit.jsonl").read_text()
    lines = [json.loads(line) for line in trail.splitlines()]
    assert [(line["action"], line["key"], line["tenant"]) for line in lines] == [
        ("key add", made["id"], "书院"),
        ("key revoke", made["id"], "书院"),
    ]
    assert made["key"] not in trail


def test_a_key_ends_with_its_last_day(file, monkeypatch):
    key, record = file.add("acme", "read", days=30)
    keys = ring(file)
    assert keys.principal(key) is not None
    monkeypatch.setattr("shiguan.serving.keys.utc_time", lambda: record.expires)
    assert keys.principal(key) is None
    assert not keys.keyless


def test_the_trail_says_who_asked_what_and_is_turned_over(tmp_path, monkeypatch):
    monkeypatch.setattr(keys_module, "_AUDIT_BYTES", 300)
    monkeypatch.setattr(keys_module, "_AUDIT_FILES", 3)
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


def test_a_file_of_keys_that_does_not_exist_does_not_open_the_server(tmp_path):
    with pytest.raises(ConfigurationError, match="which does not exist"):
        check_keys_file(ServingSettings(data_dir=tmp_path, keys_file=tmp_path / "none.json"))
    check_keys_file(ServingSettings(data_dir=tmp_path))
