import json
import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from haystack.dataclasses import Document
from haystack.document_stores.types import DuplicatePolicy
from tests.components.stores.test_several_processes import holding
from tests.doubles.small_library import copy_library
from tests.doubles.small_store import ALL, make
from tests.doubles.started import Started

from shiguan.errors import StoreError, StoreFormatError
from shiguan.stores.embedded import quantizing, shards
from shiguan.stores.embedded.qdrant_edge_document_store import QdrantEdgeDocumentStore
from shiguan.stores.embedded.shards import close_all_shards


def vectors(count, seed=0, dimensions=4):
    return np.random.default_rng(seed).standard_normal((count, dimensions)).round(3)


def unit(numbers):
    """What the store keeps of an embedding."""
    return (np.asarray(numbers) / np.linalg.norm(numbers)).astype(np.float32).tolist()


def documents(count, seed=0, prefix="d"):
    rows = map(unit, vectors(count, seed))
    return [
        Document(id=f"{prefix}{i}", content=f"text {i}", embedding=row, meta={"tenant_id": f"t{i % 3}"})
        for i, row in enumerate(rows)
    ]


def test_the_folder_comes_from_the_path_or_the_environment(tmp_path, monkeypatch):
    assert make(tmp_path, name="x").folder == tmp_path / "x"
    monkeypatch.setenv("SHIGUAN_DATA_DIR", str(tmp_path / "env"))
    store = QdrantEdgeDocumentStore()
    assert store.folder == tmp_path / "env" / "children"
    monkeypatch.delenv("SHIGUAN_DATA_DIR")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    assert store.folder.name == "children"
    assert "shiguan" in store.folder.parts


def test_documents_outlive_the_store_object(tmp_path):
    written, folder = documents(700), tmp_path / "数据 folder"
    store = make(folder)
    assert not folder.exists()  # nothing is opened before the first use
    store.write_documents(written)
    store.close()
    assert make(folder).filter_documents() == written
    # A closed store opens its folder again when it is used.
    assert store.count_documents() == 700


def test_a_store_without_vectors_keeps_none_and_cannot_search(tmp_path):
    store = make(tmp_path, name="parents", embedding_dim=None)
    document = Document(id="1", content="text", embedding=[0.1, 0.2])
    store.write_documents([document, Document(id="2", content="other")])
    assert store.filter_documents() == [Document(id="1", content="text"), Document(id="2", content="other")]
    with pytest.raises(StoreError, match=r"searched by words.*embedding_dim"):
        store.bm25_retrieval("text")
    with pytest.raises(StoreError, match="embedding_dim"):
        store.embedding_retrieval([0.1, 0.2])


@pytest.mark.parametrize("policy", [DuplicatePolicy.FAIL, DuplicatePolicy.NONE])
def test_a_refused_write_writes_nothing(tmp_path, policy):
    store = make(tmp_path)
    store.write_documents([Document(id="1", content="old")])
    with pytest.raises(Exception, match="`1`"):
        store.write_documents([Document(id="2"), Document(id="1", content="new")], policy)
    with pytest.raises(Exception, match="`3`"):
        store.write_documents([Document(id="3"), Document(id="3")], policy)
    assert [(d.id, d.content) for d in store.filter_documents()] == [("1", "old")]


def test_duplicates_within_one_write(tmp_path):
    store = make(tmp_path)
    twice = [Document(id="1", content="first"), Document(id="1", content="last")]
    assert store.write_documents(twice, DuplicatePolicy.SKIP) == 1
    assert store.filter_documents()[0].content == "first"
    assert store.write_documents(twice, ALL) == 2
    assert [d.content for d in store.filter_documents()] == ["last"]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (Document(id="1", embedding=[1.0, 2.0]), r"`1`.*\(2,\).*4 numbers"),
        (Document(id="1", embedding=[1.0, 2.0, 3.0, float("nan")]), "not finite"),
        (Document(id="1", meta={"a": {"b": {1, 2}}}), "meta of document `1` is not JSON: Object of type set"),
        (Document(id="1", meta={"a": [float("inf")]}), "meta of document `1` is not JSON: Out of range float"),
        (Document(id="1", meta={"a": "\ud800"}), "meta of document `1` is not JSON: .*surrogates not allowed"),
    ],
)
def test_documents_that_do_not_fit_are_refused_by_name(tmp_path, document, message):
    store = make(tmp_path)
    with pytest.raises(ValueError, match=message):
        store.write_documents([document])
    assert store.count_documents() == 0


def test_two_objects_of_one_folder_share_their_data(tmp_path):
    one, two = make(tmp_path), make(tmp_path / "." / "sub" / "..")
    one.write_documents(documents(3))
    assert two.count_documents() == 3
    one.close()
    assert two.count_documents() == 3


@pytest.mark.parametrize(
    ("other", "word"), [({"embedding_dim": 8}, "embedding_dim 4, but 8"), ({"bm25_fields": ["title"]}, "bm25_fields")]
)
@pytest.mark.parametrize("reopened", [True, False])
def test_other_settings_than_the_folders_are_refused(tmp_path, other, word, reopened):
    store = make(tmp_path, embedding_model="a")
    store.write_documents(documents(1))
    if reopened:
        store.close()
    with pytest.raises(StoreFormatError, match=f"{word}.*Ingest again into another folder"):
        make(tmp_path, **{"embedding_model": "a", **other}).count_documents()
    assert store.count_documents() == 1


def changed(change):
    def damage(data):
        record = json.loads(data)
        change(record)
        return json.dumps(record).encode()

    return damage


def half(data):
    return data[: len(data) // 2]


@pytest.mark.parametrize(
    ("pattern", "damage", "message"),
    [
        ("shiguan.json", changed(lambda record: record.update(format_version=99)), r"format.*Ingest again"),
        ("shiguan.json", changed(lambda record: record.pop("format_version")), r"format.*Ingest again"),
        ("shiguan.json", changed(lambda record: record.pop("format")), r"format.*Ingest again"),
        ("shiguan.json", changed(lambda record: record["format"].pop("bm25_fields")), r"format.*Ingest again"),
        ("shiguan.json", changed(lambda record: record["format"].update(more=1)), r"format.*Ingest again"),
        ("shiguan.json", changed(lambda record: record["format"].update(bm25_k1=2.0)), r"bm25_k1.*Ingest again"),
        ("shiguan.json", lambda data: b"{", r"shiguan\.json` is damaged"),
        ("shiguan.json", None, r"no `shiguan\.json`"),
        # The engine would end the process, find half of the documents, or panic and print it.
        ("shard-1/segments/*/*id_tracker.mappings", lambda data: b"\xff" * len(data), "damaged"),
        ("shard-1/segments/*/*id_tracker.mappings", half, "damaged"),
        ("shard-1/segments/*/*id_tracker.versions", half, "damaged"),
        ("shard-1/segments/*/*id_tracker.versions", lambda data: bytes(len(data)), "damaged"),
        ("shard-1/segments/*/vector_storage-bm25/deleted/status.dat", half, "damaged"),
        ("shard-1/segments/*/vector_storage-dense/vectors/status.dat", lambda data: b"", "damaged"),
        ("shard-1/segments/*/payload_index/*tenant*/is_null/status.dat", half, "damaged"),
    ],
)
def test_damaged_data_end_in_an_error_and_not_the_process(tmp_path, capfd, pattern, damage, message):
    make(tmp_path).write_documents(documents(8))
    close_all_shards()
    [path] = (tmp_path / "children").glob(pattern)
    content = path.read_bytes()
    path.unlink()
    if damage:
        path.write_bytes(damage(content))
    with pytest.raises(StoreFormatError if path.suffix == ".json" else StoreError, match=message):
        make(tmp_path).count_documents()
    assert "panicked" not in capfd.readouterr().err
    path.write_bytes(content)
    assert make(tmp_path).count_documents() == 8


def test_a_creation_killed_at_any_step_is_repaired(tmp_path):
    make(tmp_path / "whole").write_documents(documents(1))
    close_all_shards()
    whole = tmp_path / "whole" / "children"
    # Before anything was in the folder; with half a shard; with a whole one; with the format file, not yet renamed.
    steps = [[], ["half"], ["creating"], ["creating", "shiguan.json"]]
    for number, step in enumerate(steps):
        folder = tmp_path / str(number) / "children"
        folder.mkdir(parents=True)
        if "half" in step:
            (folder / "creating" / "wal").mkdir(parents=True)
        if "creating" in step:
            copy_library(whole / "shard-1", folder / "creating")
        if "shiguan.json" in step:
            shutil.copy(whole / "shiguan.json", folder)
        store = make(folder.parent)
        store.write_documents(documents(2), ALL)
        assert store.count_documents() == 2
        assert sorted(path.name for path in folder.iterdir()) == ["lock", "owner.json", "shard-1", "shiguan.json"]


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot be used.*SHIGUAN_DATA_DIR"):
        make(tmp_path / "file").count_documents()


def test_a_library_that_was_only_read_opens_again_after_a_close_and_after_a_kill(tmp_path, monkeypatch):
    """Opening it brings the engine's files up to date by what was deleted since the graph: nothing is damaged."""
    monkeypatch.setattr(shards, "EXACT_BELOW", 10)
    store = make(tmp_path)
    store.write_documents(documents(30), ALL)
    for some in (range(9), range(9, 18)):
        store.delete_documents([f"d{n}" for n in some])
        store.close()
    with holding(tmp_path) as reader:
        assert reader.line() == "12"
    for _ in range(3):
        assert store.count_documents() == 12
        store.close()


def test_a_folder_that_was_deleted_meanwhile_does_not_keep_others_from_closing(tmp_path):
    kept, gone = make(tmp_path, name="kept"), make(tmp_path, name="gone")
    for store in (kept, gone):
        store.write_documents(documents(1))
    shutil.rmtree(gone.folder)
    close_all_shards()
    assert "checksums" in json.loads((kept.folder / "shiguan.json").read_text())


def test_threads_read_and_write_side_by_side(tmp_path):
    store = make(tmp_path)
    store.write_documents(documents(50, prefix="base"))
    stop = threading.Event()

    def read():
        while not stop.is_set():
            assert len(store.embedding_retrieval([1.0, 0.0, 0.0, 0.0], top_k=10)) == 10
            assert store.bm25_retrieval("text", top_k=5)
            assert store.existing_ids(["base1", "base2", "none"]) == {"base1", "base2"}

    def write(number):
        for round_ in range(5):
            store.write_documents(documents(20, prefix=f"w{number}-"), ALL)
            if round_ % 2:
                store.delete_documents([f"w{number}-{i}" for i in range(10)])

    with ThreadPoolExecutor(7) as pool:
        readers = [pool.submit(read) for _ in range(3)]
        wait([pool.submit(write, number) for number in range(4)])
        stop.set()
    for reader in readers:
        reader.result()
    assert store.count_documents() == 50 + 4 * 20


def test_one_of_many_threads_writing_the_same_id_wins(tmp_path):
    store = make(tmp_path)

    def write(number):
        return store.write_documents([Document(id="one", content=str(number))], DuplicatePolicy.SKIP)

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(write, range(16))) == 1
    assert store.count_documents() == 1


def exact_ranking(rows, query, count):
    scores = rows / np.linalg.norm(rows, axis=1, keepdims=True) @ query
    return [f"d{i}" for i in np.argsort(-scores, kind="stable")[:count]]


def shard_names(folder):
    return sorted(path.name for path in (folder / "children").iterdir() if path.is_dir())


class HeldProcess:
    """A process whose end is only seen when the test lets it through."""

    def __init__(self, process, ended, gate):
        self.process, self.ended, self.gate = process, ended, gate

    def __getattr__(self, name):
        return getattr(self.process, name)

    def communicate(self):
        said = self.process.communicate()
        self.ended.set()
        assert self.gate.wait(60)
        return said


def test_searches_go_on_while_vectors_are_quantized_and_writes_wait(tmp_path, monkeypatch):
    ended, gate = threading.Event(), threading.Event()
    start = quantizing.start
    monkeypatch.setattr(quantizing, "start", lambda *given: HeldProcess(start(*given), ended, gate))
    monkeypatch.setattr(shards, "EXACT_BELOW", 300)
    store = make(tmp_path)
    with ThreadPoolExecutor(2) as pool:
        writing = pool.submit(store.write_documents, documents(400))
        assert ended.wait(60)
        deleting = pool.submit(store.delete_documents, ["d1"])
        assert len(store.embedding_retrieval([1.0, 0.0, 0.0, 0.0], top_k=5)) == 5
        assert store.count_documents() == 400
        assert not (writing.done() or deleting.done())
        gate.set()
        assert writing.result(60) == 400
        deleting.result(60)
    assert shard_names(tmp_path) == ["shard-2"]
    assert store._shard._edge.info().indexed_vectors_count >= 2 * 400
    query = [0.5, -0.5, 0.5, 0.5]
    rows = vectors(400)
    rows[1] = -np.asarray(query)
    assert [d.id for d in store.embedding_retrieval(query, top_k=20)] == exact_ranking(rows, np.asarray(query), 20)
    before = store.filter_documents()
    store.close()
    assert make(tmp_path).filter_documents() == before


def test_searches_that_always_overlap_do_not_keep_a_write_waiting(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "EXACT_BELOW", 300)
    store = make(tmp_path)
    store.write_documents(documents(10, prefix="e"))
    with ThreadPoolExecutor(1) as pool, ExitStack() as last:
        last.enter_context(store._shard.read())
        writing = pool.submit(store.write_documents, documents(400))
        for _ in range(6_000):
            if wait([writing], timeout=0.01).done:
                break
            earlier = last.pop_all()
            last.enter_context(store._shard.read())  # before the earlier one leaves
            earlier.close()
        assert writing.done()
    assert shard_names(tmp_path) == ["shard-2"]


def test_quantized_vectors_find_what_the_exact_search_finds_under_a_tenants_filter_and_under_two(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "EXACT_BELOW", 300)
    # Around few directions, as passages on one subject are: the nearest lie close together.
    random = np.random.default_rng(7)
    rows = random.standard_normal((40, 384))[random.integers(40, size=3000)] + 0.7 * random.standard_normal((3000, 384))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    meta = [{"tenant_id": f"t{i % 3}", "language": "zh" if i % 2 else "en"} for i in range(len(rows))]
    store = make(tmp_path, embedding_dim=384)
    store.write_documents([Document(id=f"d{i}", embedding=row.tolist(), meta=meta[i]) for i, row in enumerate(rows)])
    assert store._shard.quantized
    one = {"field": "meta.tenant_id", "operator": "==", "value": "t1"}
    both = {"operator": "AND", "conditions": [one, {"field": "meta.language", "operator": "==", "value": "en"}]}
    hits = expected = 0
    for query in rows[::100] + 0.05 * random.standard_normal((30, 384)):
        for filters, allowed in ((one, ("t1", "en zh")), (both, ("t1", "en"))):
            ids = [i for i, m in enumerate(meta) if m["tenant_id"] == allowed[0] and m["language"] in allowed[1]]
            nearest = sorted(ids, key=lambda i, query=query: -float(rows[i] @ query))[:10]
            found = store.embedding_retrieval(query.tolist(), filters, top_k=10)
            expected += 10
            hits += len({d.id for d in found} & {f"d{i}" for i in nearest})
    assert hits / expected >= 0.98


def test_a_second_build_takes_in_what_was_written_since(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "EXACT_BELOW", 10)
    store = make(tmp_path)
    store.write_documents(documents(5, prefix="few"))
    assert shard_names(tmp_path) == ["shard-1"]
    store.write_documents(documents(100))
    store.write_documents(documents(60, prefix="late"))
    assert shard_names(tmp_path) == ["shard-3"]
    store.write_documents([])
    assert shard_names(tmp_path) == ["shard-3"]
    assert store.count_documents() == 165


def test_closing_gives_up_a_build_that_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(quantizing, "__file__", str(tmp_path / "endless.py"))
    (tmp_path / "endless.py").write_text("import time\nwhile True: time.sleep(1)\n")
    started = threading.Event()
    start = quantizing.start

    def reported(*given):
        process = start(*given)
        started.set()
        return process

    monkeypatch.setattr(quantizing, "start", reported)
    monkeypatch.setattr(shards, "EXACT_BELOW", 10)
    store = make(tmp_path)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(store.write_documents, documents(20))
        assert started.wait(60)
        store.close()
        assert writing.result(60) == 20
    assert shard_names(tmp_path) == ["shard-1"]
    assert make(tmp_path).count_documents() == 20


def test_a_build_that_fails_leaves_the_store_as_it_was(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(shards, "EXACT_BELOW", 10)
    monkeypatch.setattr(quantizing, "__file__", str(tmp_path / "broken.py"))
    (tmp_path / "broken.py").write_text("raise SystemExit('no room')\n")
    store = make(tmp_path)
    store.write_documents(documents(20))
    assert "no room" in caplog.text
    assert shard_names(tmp_path) == ["shard-1"]
    assert len(store.embedding_retrieval([1.0, 0.0, 0.0, 0.0], top_k=50)) == 20


def test_leftovers_of_a_killed_build_are_cleared(tmp_path):
    make(tmp_path).write_documents(documents(5))
    close_all_shards()
    for leftover in ("building", "shard-2"):
        copy_library(tmp_path / "children" / "shard-1", tmp_path / "children" / leftover)
    assert make(tmp_path).count_documents() == 5
    assert shard_names(tmp_path) == ["shard-1"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_asks_its_parent(tmp_path):
    code = """
import os, sys
from haystack.dataclasses import Document
from shiguan.stores.embedded.qdrant_edge_document_store import QdrantEdgeDocumentStore
store = QdrantEdgeDocumentStore(path=sys.argv[1], embedding_dim=4).unscoped()
store.write_documents([Document(id="parent")])
if os.fork() == 0:
    store.write_documents([Document(id="child")])
    os._exit(store.count_documents())
print(os.waitstatus_to_exitcode(os.wait()[1]), *sorted(store.list_ids()))
"""
    said, errors = Started("-c", code, tmp_path).process.communicate(timeout=60)
    assert said == "2 child parent\n", errors


def test_deleted_documents_do_not_count_in_the_idf(tmp_path):
    fresh = make(tmp_path / "fresh")
    fresh.write_documents([Document(id="1", content="alpha"), Document(id="2", content="alpha beta")])
    used = make(tmp_path / "used")
    used.write_documents([Document(id=str(i), content="alpha gamma") for i in range(1, 9)])
    used.write_documents([Document(id="1", content="alpha"), Document(id="2", content="alpha beta")], ALL)
    used.delete_documents([str(i) for i in range(3, 9)])
    for store in (used, make(tmp_path / "used")):
        scores = {d.id: d.score for d in store.bm25_retrieval("alpha beta")}
        assert scores == pytest.approx({d.id: d.score for d in fresh.bm25_retrieval("alpha beta")})
        store.close()


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="the system does not list what a process holds")
def test_an_opened_folder_leaves_the_files_of_its_field_indexes_on_the_disk(tmp_path):
    make(tmp_path).write_documents(documents(3))
    close_all_shards()
    make(tmp_path).count_documents()
    held, file = 0, ""
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines():
        if line.startswith("Rss:"):
            held += int(line.split()[1]) if str(tmp_path) in file and "/payload_index/" in file else 0
        elif not line.split()[0].endswith(":"):
            file = line
    assert held < 100  # KiB; the engine alone leaves 25,000 of five fields


@pytest.mark.skipif(os.name != "posix", reason="POSIX rights")
def test_nobody_else_gets_into_the_data_folder(tmp_path):
    folder = tmp_path / "parents"
    folder.mkdir(mode=0o755)
    store = QdrantEdgeDocumentStore(name="parents", path=str(tmp_path), embedding_dim=None).unscoped()
    assert store.count_documents() == 0
    assert folder.stat().st_mode & 0o777 == 0o700
    mask = os.umask(0o022)
    try:
        store.write_documents(documents(1))
        store.close()
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(mask)
    rights = {path.stat().st_mode & 0o777 for path in folder.rglob("*") if path.is_file()}
    assert rights == {0o600}
