import os
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
from haystack.dataclasses import Document
from haystack.document_stores.types import DuplicatePolicy

from shiguan.errors import StoreError, StoreFormatError
from shiguan.stores.qdrant_edge_document_store import QdrantEdgeDocumentStore
from shiguan.stores.shards import close_all_shards
from shiguan.stores.token_vector_file import VECTOR_FILE
from shiguan.support.packed_tokens import META_KEY, PackedTokens

ALL = DuplicatePolicy.OVERWRITE


@pytest.fixture(autouse=True)
def closed_shards():
    yield
    close_all_shards()


def make(folder):
    return QdrantEdgeDocumentStore(path=str(folder), embedding_dim=None, bm25=True).unscoped()


def file(folder):
    return folder / "children" / VECTOR_FILE


def document(name, *rows, tokens=(), model="m", dimensions=8):
    """A document whose token vectors are the given bytes, one for each token."""
    packed = PackedTokens(model, dimensions, np.array(tokens, dtype="<u4").tobytes(), bytes(rows))
    return Document(id=name, content=f"text {name}", meta={"tenant_id": "t", META_KEY: packed})


def rows_of(store, *names, model="m"):
    """The stored rows of each child, as bytes again."""
    found = store.token_vectors(list(names), model)
    if found is None:
        return None
    bits = np.packbits(found.values > 0, axis=1).ravel().tolist()
    bounds = found.bounds.tolist()
    return {name: bits[start:end] for name, start, end in zip(found.ids, bounds, bounds[1:], strict=False)}


def frequencies(store):
    found = store.token_vectors([], "m")
    return found.children, {token: count for token, count in enumerate(found.frequencies.tolist()) if count}


def test_vectors_come_back_in_the_order_asked_for_and_unknown_children_are_left_out(tmp_path):
    store = make(tmp_path)
    store.write_documents([document("a", 1, 2), document("b"), document("c", 255), Document(id="d", content="plain")])
    assert rows_of(store, "c", "nobody", "d", "b", "a") == {"c": [255], "b": [], "a": [1, 2]}
    assert store.token_vectors(["a"], "m").projection.shape == (8, 8)


def test_documents_come_back_without_their_token_vectors(tmp_path):
    store = make(tmp_path)
    given = document("a", 1)
    store.write_documents([given])
    (stored,) = store.filter_documents()
    assert stored.meta == {"tenant_id": "t"}
    assert META_KEY in given.meta


def test_a_meta_field_of_that_name_that_is_something_else_is_kept(tmp_path):
    store = make(tmp_path)
    store.write_documents([Document(id="a", content="x", meta={META_KEY: "a text"})])
    assert store.filter_documents()[0].meta == {META_KEY: "a text"}
    assert store.token_vectors(["a"], "m") is None


def test_a_folder_without_token_vectors_has_none_and_no_file(tmp_path):
    store = make(tmp_path)
    store.write_documents([Document(id="a", content="x")])
    store.delete_documents(["a"])
    assert store.token_vectors(["a"], "m") is None
    assert not file(tmp_path).exists()


def test_children_without_vectors_stand_beside_those_with_them(tmp_path):
    store = make(tmp_path)
    store.write_documents([Document(id="old", content="x")])
    store.write_documents([document("new", 5, tokens=[3])])
    assert rows_of(store, "old", "new") == {"new": [5]}
    assert frequencies(store) == (1, {3: 1})


def test_vectors_and_counts_outlive_the_process(tmp_path):
    make(tmp_path).write_documents([document("a", 1, 2, tokens=[4, 9]), document("b", 3, tokens=[9])])
    close_all_shards()
    store = make(tmp_path)
    assert rows_of(store, "a", "b") == {"a": [1, 2], "b": [3]}
    assert frequencies(store) == (2, {4: 1, 9: 2})


def test_counts_follow_every_write_and_delete(tmp_path):
    store = make(tmp_path)
    store.write_documents([document("a", 1, tokens=[4, 9]), document("b", 2, tokens=[9]), document("c", tokens=[9])])
    assert frequencies(store) == (3, {4: 1, 9: 3})
    store.write_documents([document("a", 7, tokens=[5])], ALL)
    assert frequencies(store) == (3, {5: 1, 9: 2})
    assert rows_of(store, "a") == {"a": [7]}
    store.delete_documents(["b", "nobody"])
    assert frequencies(store) == (2, {5: 1, 9: 1})
    assert rows_of(store, "a", "b") == {"a": [7]}


def test_a_document_written_again_without_vectors_has_none(tmp_path):
    store = make(tmp_path)
    store.write_documents([document("a", 1, tokens=[4]), document("b", 2, tokens=[4])])
    store.write_documents([Document(id="a", content="other")], ALL)
    assert rows_of(store, "a", "b") == {"b": [2]}
    assert frequencies(store) == (1, {4: 1})


def test_a_changed_meta_field_leaves_them(tmp_path):
    store = make(tmp_path)
    store.write_documents([document("a", 1)])
    store.update_by_filter({"field": "meta.tenant_id", "operator": "==", "value": "t"}, {"page": 2})
    assert rows_of(store, "a") == {"a": [1]}


def test_of_a_document_twice_in_one_write_the_last_counts(tmp_path):
    store = make(tmp_path)
    store.write_documents([document("a", 1, tokens=[4]), document("a", 2, tokens=[5])], ALL)
    assert rows_of(store, "a") == {"a": [2]}
    assert frequencies(store) == (1, {5: 1})


def test_an_emptied_store_takes_another_model(tmp_path):
    store = make(tmp_path)
    store.write_documents([document("a", 1)])
    store.delete_all_documents()
    assert store.token_vectors(["a"], "m") is None
    store.write_documents([document("a", 3, 4, model="other", dimensions=16)])
    assert store.token_vectors(["a"], "other").values.shape == (1, 16)


def test_vectors_of_another_model_are_refused_with_both_names(tmp_path):
    store = make(tmp_path)
    store.write_documents([document("a", 1)])
    with pytest.raises(StoreFormatError, match="model `m`, but `other` was asked for"):
        store.token_vectors(["a"], "other")
    with pytest.raises(StoreFormatError, match="model `m`, but `other`"):
        store.write_documents([document("b", 1, model="other")])
    with pytest.raises(StoreFormatError, match="have 8 numbers, but those of `m` have 16 now"):
        store.write_documents([document("b", 1, 1, dimensions=16)])
    # What was refused is not half in the store.
    assert store.list_ids() == ["a"]
    assert rows_of(store, "a", "b") == {"a": [1]}


def test_many_children_are_read_and_deleted_at_once(tmp_path):
    store = make(tmp_path)
    names = [f"d{n}" for n in range(1300)]
    store.write_documents([document(name, n % 256, tokens=[n % 7]) for n, name in enumerate(names)])
    assert rows_of(store, *names) == {name: [n % 256] for n, name in enumerate(names)}
    store.delete_documents(names[:1299])
    assert frequencies(store) == (1, {1299 % 7: 1})


def damage(path):
    close_all_shards()
    path.write_bytes(b"no database at all" * 400)


def change_version(path):
    close_all_shards()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE about SET version = 99")
    connection.close()


@pytest.mark.parametrize("harm", [damage, change_version])
def test_a_file_that_cannot_be_read_costs_the_ranking_and_no_passage(tmp_path, harm, caplog):
    make(tmp_path).write_documents([document("a", 1)])
    harm(file(tmp_path))
    store = make(tmp_path)
    assert [hit.id for hit in store.bm25_retrieval("text", top_k=5)] == ["a"]
    assert "not ranked by their token vectors" in caplog.text
    with pytest.raises(StoreError, match=VECTOR_FILE):
        store.token_vectors(["a"], "m")
    with pytest.raises(StoreError, match="delete"):
        store.write_documents([document("b", 1)])
    store.write_documents([Document(id="c", content="x")])
    store.delete_documents(["a"])
    assert store.list_ids() == ["c"]
    close_all_shards()
    file(tmp_path).unlink()
    assert make(tmp_path).token_vectors(["c"], "m") is None


def test_a_full_disk_stops_the_write_before_a_passage_is_stored(tmp_path):
    store = make(tmp_path)
    store.write_documents([document("a", 1)])
    connection = store._shard.token_vectors._connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    large = [document(f"b{n}", *[7] * 4000) for n in range(30)]
    with pytest.raises(StoreError, match=r"could not be written: database or disk is full.*Make room"):
        store.write_documents(large)
    assert store.list_ids() == ["a"]
    connection.execute("PRAGMA max_page_count = 1000000")
    store.write_documents(large)
    assert len(rows_of(store, *[each.id for each in large])) == 30


def test_a_creation_that_was_killed_is_made_anew(tmp_path):
    make(tmp_path).write_documents([Document(id="a", content="x")])
    close_all_shards()
    file(tmp_path).touch()
    store = make(tmp_path)
    assert store.token_vectors(["a"], "m") is None
    store.write_documents([document("b", 9)])
    assert rows_of(store, "a", "b") == {"b": [9]}


def test_a_closed_store_does_not_begin_another_file(tmp_path):
    store = make(tmp_path)
    store.write_documents([document("a", 1)])
    vectors = store._shard.token_vectors
    store.close()
    with pytest.raises(StoreError, match="has been closed"):
        vectors.stage({"6f1ad56c-6a5d-5f0e-9f2b-9b1a4c0f5f51": document("b", 1).meta[META_KEY]})
    assert rows_of(make(tmp_path), "a") == {"a": [1]}


DIE = """
import os, signal, sys
import numpy as np
from haystack.dataclasses import Document
from haystack.document_stores.types import DuplicatePolicy
from shiguan.stores import token_vector_tables as tables
from shiguan.stores.qdrant_edge_document_store import QdrantEdgeDocumentStore
from shiguan.stores.shards import Shard
from shiguan.support.packed_tokens import META_KEY, PackedTokens

def die(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)

def document(name, row, token):
    packed = PackedTokens("m", 8, np.array([token], dtype="<u4").tobytes(), bytes([row]))
    return Document(id=name, content=f"text {name}", meta={"tenant_id": "t", META_KEY: packed})

def run(folder, point):
    store = QdrantEdgeDocumentStore(path=folder, embedding_dim=None, bm25=True).unscoped()
    store.write_documents([document("old", 1, 4), document("kept", 2, 4)])
    vectors = type(store._shard.token_vectors)
    if point == "while staging":
        tables.stage = lambda connection, documents, stage=tables.stage: (stage(connection, documents), die())
    elif point == "before the points":
        Shard.upsert = die
    elif point == "before publishing":
        vectors.publish = die
    elif point == "while publishing":
        tables.publish = lambda connection, keys, publish=tables.publish: (publish(connection, keys), die())
    elif point == "after publishing":
        vectors.publish = lambda self, ids, publish=vectors.publish: (publish(self, ids), die())
    else:
        vectors.delete = lambda self, ids, delete=vectors.delete: (delete(self, ids), die())
        store.delete_documents(["old"])
    store.write_documents([document("new", 3, 5), document("old", 6, 5)], DuplicatePolicy.OVERWRITE)

root, *points = sys.argv[1:]
for point in points:
    process = os.fork()
    if process == 0:
        run(os.path.join(root, point), point)
        os._exit(0)
    status = os.waitpid(process, 0)[1]
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, point
"""

BEFORE = {"old": [1], "kept": [2]}
AFTER = {"old": [6], "kept": [2], "new": [3]}


KILLED = {
    "while staging": ({"old", "kept"}, BEFORE),
    # The document that was to be replaced is there, so it takes what was staged for it: ids are hashes of all that a
    # document is.
    "before the points": ({"old", "kept"}, {"old": [6], "kept": [2]}),
    "before publishing": ({"old", "kept", "new"}, AFTER),
    "while publishing": ({"old", "kept", "new"}, AFTER),
    "after publishing": ({"old", "kept", "new"}, AFTER),
    "between the deletions": ({"old", "kept"}, {"kept": [2]}),
}


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A data folder for each point, left by a process that was killed there."""
    root = tmp_path_factory.mktemp("killed")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    done = subprocess.run(
        [sys.executable, "-c", DIE, str(root), *KILLED], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return root


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")
@pytest.mark.parametrize("point", KILLED)
def test_a_kill_leaves_no_vectors_without_their_document(killed, point):
    folder = killed / point
    documents, vectors = KILLED[point]
    store = make(folder)
    assert set(store.list_ids()) == documents
    assert rows_of(store, "old", "kept", "new") == vectors
    counted = {4: 0, 5: 0}
    for rows in vectors.values():
        counted[4 if rows[0] < 3 else 5] += 1
    assert frequencies(store) == (len(vectors), {token: count for token, count in counted.items() if count})
    close_all_shards()
    with sqlite3.connect(file(folder)) as connection:
        assert connection.execute("SELECT count(*) FROM vectors").fetchone()[0] == len(vectors)
    connection.close()
    # Writing again repairs what was interrupted.
    again = [document("new", 3, tokens=[5]), document("old", 6, tokens=[5]), document("kept", 2, tokens=[4])]
    store.write_documents(again, ALL)
    assert rows_of(store, "old", "kept", "new") == AFTER
    assert frequencies(store) == (3, {4: 1, 5: 2})
