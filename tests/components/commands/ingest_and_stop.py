"""
Runs `shiguan ingest` with a stage that signals its own process and then hangs: `ingest_and_stop.py POINT SIGNALS ARG…`.

POINT is where: `read` (while the other process reads the file), `words` (while children are written), `vectors` (in the second slice of
vectors). SIGNALS is how many times SIGINT is sent, or `term` for SIGTERM.
"""

import os
import signal
import sys
import threading

from tests.doubles.fake_embedder import embedded

from shiguan import cli, limited_process
from shiguan.ingest import e5_document_embedder, vector_writer
from shiguan.stores.embedded.qdrant_edge_document_store import QdrantEdgeDocumentStore

point, signals, *arguments = sys.argv[1:]


def stop():
    for _ in range(1 if signals == "term" else int(signals)):
        os.kill(os.getpid(), signal.SIGTERM if signals == "term" else signal.SIGINT)
    threading.Event().wait(600)


class Embedder(e5_document_embedder.E5DocumentEmbedder):
    """Embeds without a model."""

    calls = 0

    def warm_up(self):
        pass

    def run(self, documents):
        Embedder.calls += 1
        if point == "vectors" and Embedder.calls == 2:
            stop()
        return {"documents": list(map(embedded, documents))}


awaited = limited_process._awaited


def stopping_while_it_reads(*args):
    if point == "read":
        stop()
    return awaited(*args)


limited_process._awaited = stopping_while_it_reads
e5_document_embedder.E5DocumentEmbedder.run = Embedder.run
e5_document_embedder.E5DocumentEmbedder.warm_up = Embedder.warm_up
vector_writer._SLICE = vector_writer._BATCH = 8
write = QdrantEdgeDocumentStore.write_documents


def write_documents(self, documents, *args, **kwargs):
    written = write(self, documents, *args, **kwargs)
    if point == "words" and self.name == "children":
        stop()
    return written


QdrantEdgeDocumentStore.write_documents = write_documents
sys.exit(cli.main(arguments))
