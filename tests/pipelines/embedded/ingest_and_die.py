"""
Ingests files in a process of its own that is killed at a chosen point: `ingest_and_die.py DATA_DIR STEP [FILE…]`.

Without files it only makes the vectors that are missing, as `shiguan ingest --resume` does. With `delete SOURCE` it
deletes a source, with `copy` it copies the library in DATA_DIR/source to DATA_DIR/target, as the commands do.

A step is a slice of six documents written, given their vectors or deleted; the process sends itself SIGKILL before step STEP, or lives if
there are fewer. Several runs may be asked for at once (`-- DATA_DIR STEP FILE…` again); each is a forked process. Prints
for each run `killed` or the number of steps and of embedded documents.
"""

import os
import signal
import sys
from itertools import count
from pathlib import Path

from tests.doubles.fake_embedder import FakeEmbedder

from shiguan import cli
from shiguan.engine import library_copy
from shiguan.engine.loading import load_pipeline
from shiguan.ingest import vector_writer
from shiguan.stores.embedded.qdrant_edge_document_store import QdrantEdgeDocumentStore

SLICE = 6


def ingest(data_dir, last_step, files):
    steps = count()  # a copy writes in several threads

    def step():
        if next(steps) == last_step:
            os.kill(os.getpid(), signal.SIGKILL)

    store = QdrantEdgeDocumentStore
    write, delete, write_vectors = store.write_documents, store.delete_by_filter, store.write_vectors

    def write_documents(self, documents, *args, **kwargs):
        written = 0
        for start in range(0, len(documents), SLICE):
            step()
            written += write(self, documents[start : start + SLICE], *args, **kwargs)
        return written

    async def write_documents_async(self, documents, *args, **kwargs):
        return write_documents(self, documents, *args, **kwargs)

    def write_a_slice(self, documents, *, model):
        step()
        return write_vectors(self, documents, model=model)

    def delete_by_filter(self, filters):
        ids = self.list_ids(filters)
        for start in range(0, len(ids), SLICE):
            step()
            slice_ = {"field": "id", "operator": "in", "value": ids[start : start + SLICE]}
            delete(self, {"operator": "AND", "conditions": [filters, slice_]})
        return len(ids)

    store.write_documents, store.write_documents_async = write_documents, write_documents_async
    store.delete_by_filter, store.write_vectors = delete_by_filter, write_a_slice
    vector_writer._SLICE = SLICE
    pipeline = load_pipeline("embedded", "index", data_dir=data_dir)
    embedder = FakeEmbedder("hash")
    pipeline.get_component("vector_writer").document_embedder = embedder
    if files[:1] == ["delete"]:
        run("delete", files[1], "--tenant", "t", "--data-dir", data_dir)
    elif files == ["copy"]:
        copy(data_dir, embedder)
    elif files:
        read = load_pipeline("embedded", "read").run({"sources": files})
        pipeline.run({"documents": read["joiner"]["documents"], "tenant_id": "t"})
    else:
        writer = pipeline.get_component("vector_writer")
        writer.document_store = writer.document_store.unscoped()
        writer.complete(None)
    report(f"{next(steps)} {len(embedder.embedded)}")


def copy(data_dir, embedder):
    """Copy between two folders in place of two deployments."""
    unscoped, load = library_copy._unscoped, load_pipeline

    def loaded(name, mode, *, data_dir):
        pipeline = load("embedded", mode, data_dir=Path(data_dir) / name)
        pipeline.get_component("vector_writer").document_embedder = embedder
        return pipeline

    library_copy._unscoped = lambda name, folder: unscoped("embedded", Path(folder) / name)
    library_copy.load_pipeline = loaded
    library_copy._embedder_of = lambda _: "hash"
    library_copy._SLICE = SLICE
    run("stores", "copy", "--from", "source", "--to", "target", "--data-dir", data_dir)


def run(*arguments):
    if cli.main([*arguments, "--json"]) != 0:
        raise SystemExit(f"{arguments} failed")


def report(line):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(arguments):
    runs = [[]]
    for argument in arguments:
        if argument == "--":
            runs.append([])
        else:
            runs[-1].append(argument)
    # Imports everything once, before the forks; no store is opened by this.
    for mode in ("read", "index"):
        load_pipeline("embedded", mode, data_dir="nowhere")
    for data_dir, last_step, *files in runs:
        process = os.fork()
        if process == 0:
            ingest(data_dir, int(last_step), files)
            os._exit(0)
        _, status = os.waitpid(process, 0)
        if os.WIFSIGNALED(status):
            report("killed" if os.WTERMSIG(status) == signal.SIGKILL else f"signal {os.WTERMSIG(status)}")


if __name__ == "__main__":
    main(sys.argv[1:])
