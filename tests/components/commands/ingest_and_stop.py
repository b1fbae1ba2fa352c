"""
Runs `shiguan ingest` with a stage that signals its own process and then hangs: `ingest_and_stop.py POINT SIGNALS ARG…`.

POINT is where: `read` (while the other process reads the file), `words` (while children are written), `vectors` (in the second slice of
vectors). SIGNALS is how many times SIGINT is sent, or `term` for SIGTERM.
"""

import os
import signal
import sys
import threading
from itertools import count

from tests.doubles.fake_embedder import embed_without_a_model

from shiguan import cli, limited_process
from shiguan.ingest import vector_writer
from shiguan.stores.embedded.qdrant_edge_document_store import QdrantEdgeDocumentStore

point, signals, *arguments = sys.argv[1:]


def stop():
    for _ in range(1 if signals == "term" else int(signals)):
        os.kill(os.getpid(), signal.SIGTERM if signals == "term" else signal.SIGINT)
    threading.Event().wait(600)


batches = count(1)


def before(_):
    if next(batches) == 2 and point == "vectors":
        stop()


awaited = limited_process._awaited


def stopping_while_it_reads(*args):
    if point == "read":
        stop()
    return awaited(*args)


limited_process._awaited = stopping_while_it_reads
embed_without_a_model(before)
vector_writer._SLICE = vector_writer._BATCH = 8
write = QdrantEdgeDocumentStore.write_documents


def write_documents(self, documents, *args, **kwargs):
    written = write(self, documents, *args, **kwargs)
    if point == "words" and self.name == "children":
        stop()
    return written


QdrantEdgeDocumentStore.write_documents = write_documents
sys.exit(cli.main(arguments))
