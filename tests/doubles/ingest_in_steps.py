"""
Runs `shiguan ingest` and waits after each slice of vectors for a line on standard input: `ingest_in_steps.py ARG…`.

It prints `slice` before it waits. Vectors are made without a model, under the name of the packaged one.
"""

import sys

from tests.doubles.fake_embedder import embed_without_a_model

from shiguan import cli
from shiguan.ingest import vector_writer


def wait(_):
    print("slice", flush=True)  # noqa: T201
    sys.stdin.readline()


embed_without_a_model(wait)
vector_writer._SLICE = vector_writer._BATCH = 8
if __name__ == "__main__":
    raise SystemExit(cli.main(sys.argv[1:]))
