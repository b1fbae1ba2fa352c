"""Several processes at one data folder: one of them has it open and answers for the others."""

import contextlib
import json
import os
import signal
import threading
from pathlib import Path

import pytest
from haystack.dataclasses import Document
from haystack.document_stores.types import DuplicatePolicy
from tests.doubles.small_library import copy_library
from tests.doubles.small_store import ALL, make
from tests.doubles.started import ROOT, Started

from shiguan.engine.library import Library
from shiguan.errors import StoreFormatError, StoreLockedError
from shiguan.stores.embedded import sharing
from shiguan.stores.embedded.shards import Shard, close_all_shards

STEPS = ROOT / "tests" / "doubles" / "ingest_in_steps.py"

HOLD = """
import sys
from tests.doubles.small_store import make
print(make(sys.argv[1]).count_documents(), flush=True)
sys.stdin.read()
"""
WRITE = """
import sys
from tests.doubles.small_store import ALL, make
from haystack.dataclasses import Document
store = make(sys.argv[1])
for n in range(10**6):
    store.write_documents([Document(id=f"{n}-{i}", content="text") for i in range(20)], ALL)
    print(n, flush=True)
"""


def holding(folder):
    return Started("-c", HOLD, folder)


def shiguan(*arguments, folder, fails=False):
    command = Started("-m", "shiguan.cli", *arguments, "--data-dir", folder, "--json")
    said, errors = command.process.communicate(timeout=120)
    assert bool(command.process.returncode) is fails, said + errors
    return json.loads(said)


def filled(folder):
    store = make(folder, embedding_model="m")
    meta = {"tenant_id": "t", "file_id": "f", "language": "en", "section": ["一", "b"], "a": {"b": [1, None, True]}}
    store.write_documents(
        [
            Document(id="one", content="a text of the wall", meta=meta, embedding=[1.0, 0.0, 0.0, 0.0]),
            Document(id="two", content="a text of the tax, 税", meta=meta | {"language": "zh"}),
            Document(id="three", meta={"tenant_id": "u", "file_id": "g", "language": "en", "n": 2**53 + 1}),
        ],
        ALL,
    )
    return store


@contextlib.contextmanager
def held(folder):
    """The folder of `filled` documents, which another process has open."""
    filled(folder)
    close_all_shards()
    with holding(folder) as holder:
        assert holder.line() == "3"
        yield holder


CALLS = {
    "list_ids_without_vector": [None],
    "embedder": [],
    "other_vectors": ["another"],
    "vector_warnings": [None],
    "count_without_vector": [None],
    "count_by_file": [],
    "count_languages": [None],
    "list_files": [{"field": "meta.tenant_id", "operator": "==", "value": "v"}],
    "filter_documents": [{"field": "id", "operator": "in", "value": ["one", "three"]}],
    "existing_ids": [["one", "none"]],
    "list_meta": [None, ["section", "a"]],
    "count_documents_by_filter": [{"field": "meta.n", "operator": "==", "value": None}],
    "bm25_retrieval": ["the wall"],
    "known_terms": [("wall", "absent"), "en"],
    "texts_with": [["wall", "税"], {"field": "meta.tenant_id", "operator": "==", "value": "t"}],
    "embedding_retrieval": [[0.9, 0.1, 0.0, 0.0]],
    "_page_of_ids": [None, None],
    # These change it.
    "write_vectors": [[Document(id="two", embedding=[0.0, 1.0, 0.0, 0.0])]],
    "write_documents": [[Document(id="four", content="more")], DuplicatePolicy.SKIP],
    "delete_documents": [["four"]],
    "delete_by_filter": [{"field": "meta.tenant_id", "operator": "==", "value": "u"}],
    "drop_vectors": [],
}


def test_every_call_gives_in_another_process_what_it_gives_in_the_one_that_has_the_folder_open(tmp_path):
    assert set(CALLS) == set(sharing._methods)
    words = {"write_vectors": {"model": "m"}}

    def called(folder):
        store = make(folder, embedding_model="m")
        results = [(name, getattr(store, name)(*given, **words.get(name, {}))) for name, given in CALLS.items()]
        return store, [*results, ("after", store.filter_documents())]

    for name in ("here", "there"):
        filled(tmp_path / name)
        close_all_shards()
    here, expected = called(tmp_path / "here")
    with holding(tmp_path / "there") as holder:
        assert holder.line() == "3"
        there, found = called(tmp_path / "there")
        assert isinstance(here._opened, Shard)
        assert isinstance(there._opened, sharing.EngineClient)
        for (name, one), (_, other) in zip(expected, found, strict=True):
            if name == "write_vectors":
                assert one == other == 1
            assert repr(other).replace("there", "here") == repr(one), name
            assert type(other) is type(one), name


WRONG_CALLS = [
    lambda store: store.filter_documents({"field": "x"}),
    lambda store: store.filter_documents({"field": "x", "operator": "==", "value": {1, 2}}),
    lambda store: store.bm25_retrieval("text", top_k=0),
    lambda store: store.embedding_retrieval([1.0]),
    lambda store: store.write_documents([Document(id="one")]),
    lambda store: store.write_documents([Document(id="x", meta={"a": float("nan")})]),
    lambda store: store.write_documents([Document(id="x", meta={"a": {1, 2}})]),
    lambda store: store.write_documents([Document(id="x", meta={"a": "\ud800"})]),
    lambda store: store.write_documents("text"),
]


def test_errors_are_the_same_in_another_process(tmp_path):
    def errors(store):
        for call in WRONG_CALLS:
            with pytest.raises(Exception, match=r".") as caught:
                call(store)
            yield type(caught.value), str(caught.value)

    here = list(errors(filled(tmp_path)))
    close_all_shards()
    with holding(tmp_path) as holder:
        holder.line()
        there = make(tmp_path)
        assert list(errors(there)) == here
        assert isinstance(there._opened, sharing.EngineClient)


def test_another_process_with_other_settings_is_refused(tmp_path):
    with held(tmp_path), pytest.raises(StoreFormatError, match="embedding_dim 4, but 8"):
        make(tmp_path, embedding_dim=8).count_documents()


def test_writes_that_returned_outlive_the_killed_process_that_carried_them_out(tmp_path):
    with held(tmp_path) as holder, Started("-c", WRITE, tmp_path) as writer:
        for _ in range(5):
            writer.line()
        holder.kill()
        # It goes on, and opens the folder itself.
        last = max(int(writer.line()) for _ in range(5))
        writer.kill()
        ids = set(make(tmp_path).list_ids())
    assert {f"{n}-{i}" for n in range(last + 1) for i in range(20)} <= ids


def test_a_killed_reader_and_a_killed_writer_hold_nobody_up(tmp_path):
    store = filled(tmp_path)
    with Started("-c", WRITE, tmp_path) as writer, holding(tmp_path) as reader:
        writer.line()
        reader.line()
        reader.kill()
        last = int(writer.line())
        writer.kill()
        assert {f"{last}-{i}" for i in range(20)} <= set(store.list_ids())
    assert isinstance(store._opened, Shard)
    store.close()
    assert not (tmp_path / "children" / sharing.OWNER_FILE).exists()
    assert make(tmp_path).existing_ids(["one", f"{last}-19"]) == {"one", f"{last}-19"}


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="needs SIGSTOP")
def test_a_process_that_is_stopped_while_it_has_the_folder_open_is_named(tmp_path, monkeypatch):
    with held(tmp_path) as holder:
        store = make(tmp_path)
        assert store.count_documents() == 3
        holder.process.send_signal(signal.SIGSTOP)
        os.waitpid(holder.process.pid, os.WUNTRACED)
        monkeypatch.setattr(sharing, "_CALL_SECONDS", 0.1)
        with pytest.raises(StoreLockedError, match=rf"{holder.process.pid} \(`-c\b.*`, since .*fg"):
            store.count_documents()
        holder.process.send_signal(signal.SIGCONT)
        monkeypatch.undo()
        assert store.count_documents() == 3


def test_a_process_that_cannot_be_reached_is_named(tmp_path, monkeypatch):
    with held(tmp_path) as holder:
        monkeypatch.setattr("shiguan.stores.embedded.shards.OPENING_SECONDS", 0.1)
        path = tmp_path / "children" / sharing.OWNER_FILE
        path.write_text(json.dumps(json.loads(path.read_text()) | {"address": str(tmp_path / "nothing")}))
        with pytest.raises(StoreLockedError, match=rf"{holder.process.pid} .*cannot be reached.*elasticsearch_qdrant"):
            make(tmp_path).count_documents()


def test_a_copied_folder_is_another_library(tmp_path):
    store = filled(tmp_path / "one")
    copy_library(tmp_path / "one", tmp_path / "two")
    make(tmp_path / "two").delete_documents(["one"])
    close_all_shards()
    assert store.existing_ids(["one"]) == {"one"}


def test_who_does_not_know_the_key_is_not_answered(tmp_path):
    store = filled(tmp_path)
    path = tmp_path / "children" / sharing.OWNER_FILE
    owner = json.loads(path.read_text())
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600
        assert Path(owner["address"]).parent.stat().st_mode & 0o777 == 0o700
    for greeting in (b"0" * 32, b"", b"0" * 100_000):
        # Of a long one the server reads the beginning and hangs up.
        with sharing._connect(owner["address"]) as stranger, contextlib.suppress(ConnectionError):
            stranger.sendall(greeting + b"\n" + json.dumps(["count_documents_by_filter", {}, {"filters": {}}]).encode())
            assert stranger.recv(1000) == b""
    assert store.count_documents() == 3


def test_a_file_that_another_process_writes_is_waited_for_and_the_process_named(tmp_path, monkeypatch):
    monkeypatch.setattr(sharing, "_TURN_SECONDS", 0)
    monkeypatch.setattr(sharing, "_ANNOUNCING_SECONDS", 0.01)
    path = tmp_path / "a.txt"
    path.write_text("The wall was pulled down in 904.", encoding="utf-8")
    library, told = Library(data_dir=tmp_path / "data"), []
    with Started(STEPS, "ingest", path, "--data-dir", tmp_path / "data") as first:
        assert first.line() == "slice"
        path.write_text("Another text.", encoding="utf-8")
        with pytest.raises(StoreLockedError, match=rf"`a.txt` is being written by .* {first.process.pid} \(`ingest_in"):
            list(library.ingest([path], tenant_id="default", progress=lambda *said: told.append(said[0])))
        with pytest.raises(StoreLockedError, match="Nothing was changed"):
            library.delete("a.txt", tenant_id="default")
        assert library.count(tenant_id="default") == 1
        first.kill()
    [done] = library.ingest([path], tenant_id="default")
    assert (done.new, done.removed) == (1, 2)
    assert all(name.startswith("waiting for another Shiguan process") for name in told if name != "words")


def test_a_process_that_ends_says_nothing_and_leaves_nothing_behind(tmp_path):
    with holding(tmp_path) as holder:
        assert holder.line() == "0"
        place = Path(json.loads((tmp_path / "children" / sharing.OWNER_FILE).read_text())["address"]).parent
        assert place.is_dir()
        _, errors = holder.process.communicate(timeout=60)
        assert (holder.process.returncode, errors) == (0, "")
    assert not place.exists()
    assert not (tmp_path / "children" / sharing.OWNER_FILE).exists()


def test_a_call_to_a_process_that_exits_is_dropped_and_its_folder_is_closed(tmp_path, monkeypatch):
    """From Python 3.12 on, none of the threads that it would need can be started."""
    store = filled(tmp_path)
    owner = json.loads((tmp_path / "children" / sharing.OWNER_FILE).read_text())

    def refused(thread):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refused)
    with sharing._connect(owner["address"]) as caller:
        assert caller.recv(1) == b""
    close_all_shards()
    monkeypatch.undo()
    assert not Path(owner["address"]).parent.exists()
    assert store.count_documents() == 3


@pytest.mark.slow
def test_a_library_is_asked_while_another_process_ingests_and_after_that_is_killed(tmp_path):
    data, texts = tmp_path / "data", tmp_path / "texts"
    texts.mkdir()
    (texts / "wall.txt").write_text("The wall of the capital was pulled down in 904.", encoding="utf-8")
    long = "\n\n".join(
        f"In the year {900 + n} the officer {n} counted {n * 7} horses in the stable." for n in range(400)
    )
    (texts / "horses.txt").write_text(long, encoding="utf-8")
    (texts / "salt.txt").write_text("The salt monopoly was set up by Diwu Qi in 758.", encoding="utf-8")
    whole = shiguan("ingest", texts / "wall.txt", folder=data)
    assert whole["missing"] == 0

    def asked():
        answer = shiguan("ask", "When was the wall of the capital pulled down?", folder=data)
        assert "904" in json.dumps(answer, ensure_ascii=False)
        [first, *_] = shiguan("search", "wall of the capital", folder=data)["results"]
        assert "pulled down in 904" in json.dumps(first)
        return {each["source"]: each["complete"] for each in shiguan("sources", folder=data)["sources"]}

    with Started(STEPS, "ingest", texts / "horses.txt", "--data-dir", data, "--json") as ingest:
        for _ in range(2):
            assert ingest.line() == "slice"
            assert asked() == {"wall.txt": True, "horses.txt": False}
            ingest.process.stdin.write("\n")
            ingest.process.stdin.flush()
        # Another file goes in beside it.
        assert shiguan("ingest", texts / "salt.txt", folder=data)["missing"] == 0
        assert asked() == {"wall.txt": True, "horses.txt": False, "salt.txt": True}
        ingest.kill()
    assert asked() == {"wall.txt": True, "horses.txt": False, "salt.txt": True}
    with Started(STEPS, "ingest", texts / "horses.txt", "--data-dir", data, "--json") as again:
        said, errors = again.process.communicate(input="\n" * 10_000, timeout=120)
        assert again.process.returncode == 0, errors
    assert json.loads(said.splitlines()[-1])["missing"] == 0
    assert asked() == {"wall.txt": True, "horses.txt": True, "salt.txt": True}
