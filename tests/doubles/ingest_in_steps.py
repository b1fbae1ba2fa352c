"""
Runs `shiguan ingest` and waits after each slice of vectors for a line on standard input: `ingest_in_steps.py ARG…`.

It prints `slice` before it waits. Vectors are made without a model, under the name of the packaged one.
"""

import sys

from tests.doubles.fake_embedder import embedded

from shiguan import cli
from shiguan.ingest import e5_document_embedder, vector_writer


class Embedder(e5_document_embedder.E5DocumentEmbedder):
    """Embeds without a model, as often as it is told to."""

    def warm_up(self):
        pass

    def run(self, documents):
        print("slice", flush=True)  # noqa: T201
        sys.stdin.readline()
        return {"documents": list(map(embedded, documents))}


e5_document_embedder.E5DocumentEmbedder.warm_up = Embedder.warm_up
e5_document_embedder.E5DocumentEmbedder.run = Embedder.run
vector_writer._SLICE = vector_writer._BATCH = 8
if __name__ == "__main__":
    raise SystemExit(cli.main(sys.argv[1:]))
