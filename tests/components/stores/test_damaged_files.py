"""Every file of a shard is damaged in every way: the store works or says so, and the process lives."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from tests.components.stores.test_store_folder import documents
from tests.doubles.small_library import copy_library
from tests.doubles.small_store import make

from shiguan.stores.embedded.shards import close_all_shards

pytestmark = pytest.mark.slow

AT_ONCE = 24
DAMAGES = {
    "half": lambda data: data[: len(data) // 2],
    "ones": lambda data: b"\xff" * len(data),
    "gone": lambda data: None,
}
USE = """
import json, sys
from haystack import Document
from haystack.document_stores.types import DuplicatePolicy
from shiguan.errors import ShiguanError
from shiguan.stores.embedded.shards import close_all_shards
from tests.doubles.small_store import make
for folder in json.load(sys.stdin):
    try:
        store = make(folder)
        found = len(store.filter_documents()), len(store.bm25_retrieval("text")), len(store.embedding_retrieval([0.1] * 4))
        store.write_documents([Document(id="new", content="new text", meta={"tenant_id": "t"})], DuplicatePolicy.OVERWRITE)
        store.delete_documents(["d1"])
        close_all_shards()
        print(json.dumps(["works", found]), flush=True)
    except ShiguanError as error:
        print(json.dumps(["told", str(error)]), flush=True)
"""


def test_no_damage_to_a_file_ends_the_process_or_in_a_traceback(tmp_path):
    whole = tmp_path / "whole"
    make(whole).write_documents(documents(8))
    close_all_shards()
    names = sorted(path.relative_to(whole) for path in whole.rglob("*") if path.is_file() and path.name != "lock")
    # One of each kind of file: the indexes of the payload's fields are all built alike.
    kinds = {(name.name, name.parts[-2]): name for name in names if "payload_index" not in name.parts}
    cases = [(name, kind) for name in kinds.values() for kind in DAMAGES]
    assert len(cases) > 40
    outcomes = {}
    for start in range(0, len(cases), AT_ONCE):
        folders = []
        for name, kind in cases[start : start + AT_ONCE]:
            folder = tmp_path / f"{len(outcomes) + len(folders)}"
            copy_library(whole, folder)
            damaged = DAMAGES[kind]((folder / name).read_bytes())
            (folder / name).unlink()
            if damaged is not None:
                (folder / name).write_bytes(damaged)
            folders.append(folder)
        done = subprocess.run(
            [sys.executable, "-c", USE], input=json.dumps([str(folder) for folder in folders]), text=True,
            capture_output=True, timeout=300, check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
        )  # fmt: skip
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        after = cases[start + len(lines) - 1]
        assert (done.returncode, len(lines)) == (0, len(folders)), (done.returncode, after, done.stderr[-1500:])
        outcomes |= dict(zip(cases[start:], lines, strict=False))
        for folder in folders:
            shutil.rmtree(folder)
    told = [said for kind, said in outcomes.values() if kind == "told"]
    assert all(str(tmp_path) in said and said.endswith(".") for said in told)
