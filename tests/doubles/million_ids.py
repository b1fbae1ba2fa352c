"""
A process that resumes, upgrades or deletes a library, and prints by how many MiB its memory grew at most.

    python -m tests.doubles.million_ids resume|upgrade|delete
"""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

from shiguan.ingest.vector_writer import VectorWriter
from shiguan.stores.cluster.elasticsearch_store import ElasticsearchStore
from shiguan.stores.cluster.paired_document_store import PairedDocumentStore
from shiguan.stores.cluster.qdrant_store import QdrantStore
from shiguan.tenants import of_tenant, where


class Embedder:
    """Gives every text the same vector."""

    model = "m"

    def run(self, documents):
        return {"documents": [replace(document, embedding=[1.0, 0.0]) for document in documents]}


def peak():
    """The most memory that this process ever had, in MiB; what `resource` says begins with that of the parent."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024


def main(action):
    pair = PairedDocumentStore(ElasticsearchStore("children"), vectors=QdrantStore("children", embedding_dim=2))
    writer = VectorWriter(Embedder(), document_store=pair)
    tenant = of_tenant("t")
    # What every process has, connections and all.
    writer.complete(of_tenant("t", where("id", "in", ["0000000"])))
    pair.unscoped().delete_documents(["0000001"])
    before = peak()
    if action == "resume":
        done = writer.complete(tenant)["written"]
    elif action == "upgrade":
        pair.drop_vectors()
        done = sum(1 for _ in pair.iter_ids_without_vector(tenant))
    else:
        done = pair.delete_by_filter(tenant)
    grew = round(peak() - before, 1)
    sys.stdout.write(json.dumps({"done": done, "grew": grew, "before": round(before, 1)}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
