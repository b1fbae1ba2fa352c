"""
Ingests files in a process of its own that is killed at a chosen point: `ingest_and_die.py DATA_DIR STEP [FILE…]`.

A step is a slice of six documents written or deleted; the process sends itself SIGKILL before step STEP, or lives if
there are fewer. Several runs may be asked for at once (`-- DATA_DIR STEP FILE…` again); each is a forked process. Prints
for each run `killed` or the number of steps and of embedded documents.
"""

import hashlib
import os
import signal
import sys
from dataclasses import replace

from haystack import Document, component

from shiguan.loading import load_pipeline
from shiguan.stores.qdrant_edge_document_store import QdrantEdgeDocumentStore
from shiguan.support.packed_tokens import META_KEY, PackedTokens

SLICE = 6


@component
class HashEmbedder:
    """Gives every text vectors of its own, always the same."""

    def __init__(self):
        self.embedded = 0

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]):
        self.embedded += len(documents)
        return {"documents": list(map(embedded, documents))}


def embedded(document):
    digest = hashlib.sha256(document.content.encode()).digest()
    tokens = PackedTokens("hash", 8, bytes([digest[0] % 16, 0, 0, 0]), digest[:5])
    return replace(document, embedding=vector(document.content), meta={**document.meta, META_KEY: tokens})


def vector(text):
    digest = hashlib.sha256(text.encode()).digest()
    return [(digest[n % 32] - 127.5) / 128 for n in range(384)]


def ingest(data_dir, last_step, files):
    steps = 0

    def step():
        nonlocal steps
        if steps == last_step:
            os.kill(os.getpid(), signal.SIGKILL)
        steps += 1

    write, delete = QdrantEdgeDocumentStore.write_documents, QdrantEdgeDocumentStore.delete_by_filter

    def write_documents(self, documents, *args, **kwargs):
        written = 0
        for start in range(0, len(documents), SLICE):
            step()
            written += write(self, documents[start : start + SLICE], *args, **kwargs)
        return written

    async def write_documents_async(self, documents, *args, **kwargs):
        return write_documents(self, documents, *args, **kwargs)

    def delete_by_filter(self, filters):
        ids = self.list_ids(filters)
        for start in range(0, len(ids), SLICE):
            step()
            slice_ = {"field": "id", "operator": "in", "value": ids[start : start + SLICE]}
            delete(self, {"operator": "AND", "conditions": [filters, slice_]})
        return len(ids)

    QdrantEdgeDocumentStore.write_documents = write_documents
    QdrantEdgeDocumentStore.write_documents_async = write_documents_async
    QdrantEdgeDocumentStore.delete_by_filter = delete_by_filter
    pipeline = load_pipeline("embedded", "index", data_dir=data_dir)
    embedder = HashEmbedder()
    pipeline.get_component("embedder").document_embedder = embedder
    pipeline.run({"source_inspector": {"sources": files}, "stamper": {"tenant_id": "t"}})
    report(f"{steps} {embedder.embedded}")


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
    load_pipeline("embedded", "index", data_dir="nowhere")
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
