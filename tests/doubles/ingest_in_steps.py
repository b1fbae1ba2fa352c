"""
Runs `shiguan ingest` and waits after each slice of vectors for a line on standard input: `ingest_in_steps.py ARG…`.

It prints `slice` before it waits. Vectors are made without a model, under the name of the packaged one.
"""

import hashlib
import sys
from dataclasses import replace

from shiguan import cli
from shiguan.ingest import e5_document_embedder, vector_writer


class Embedder(e5_document_embedder.E5DocumentEmbedder):
    """Embeds without a model, as often as it is told to."""

    def warm_up(self):
        pass

    def run(self, documents):
        print("slice", flush=True)  # noqa: T201
        sys.stdin.readline()
        return {"documents": [replace(document, embedding=vector(document.content)) for document in documents]}


def vector(text):
    digest = hashlib.sha256(text.encode()).digest()
    return [1.0 if n == digest[0] else 0.0 for n in range(384)]


e5_document_embedder.E5DocumentEmbedder.warm_up = Embedder.warm_up
e5_document_embedder.E5DocumentEmbedder.run = Embedder.run
vector_writer._SLICE = vector_writer._BATCH = 8
if __name__ == "__main__":
    raise SystemExit(cli.main(sys.argv[1:]))
