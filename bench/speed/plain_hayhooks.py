"""
`simple` as a user of Hayhooks would serve it: one YAML file, Haystack's in-memory stores, no code of ours around it.

Started as a process by the load benchmark: `python -m bench.speed.plain_hayhooks --port 8010 --children 5000`.
"""

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

import yaml
from bench.speed.synthetic import SyntheticLibrary

CHILDREN, PARENTS = "load-children", "load-parents"
_MEMORY = "haystack.document_stores.in_memory.document_store.InMemoryDocumentStore"
_RETRIEVERS = "haystack.components.retrievers.in_memory."


def plain_definition(folder: Path) -> dict[str, Any]:
    """Take over our `simple`, with Haystack's store and retrievers in the place of ours and the same embedder."""
    from bench.speed.systems import HITS, WORDS

    from shiguan import load_pipeline

    ours = load_pipeline("embedded", "simple", data_dir=folder)
    definition: dict[str, Any] = ours.to_dict()
    children = {
        "type": _MEMORY,
        "init_parameters": {
            "index": CHILDREN, "bm25_tokenization_regex": WORDS, "bm25_algorithm": "BM25Okapi",
        },
    }  # fmt: skip
    parents = {"type": _MEMORY, "init_parameters": {"index": PARENTS}}
    components = definition["components"]
    components["bm25_retriever"] = {
        "type": f"{_RETRIEVERS}bm25_retriever.InMemoryBM25Retriever",
        "init_parameters": {"document_store": children, "top_k": HITS},
    }
    components["embedding_retriever"] = {
        "type": f"{_RETRIEVERS}embedding_retriever.InMemoryEmbeddingRetriever",
        "init_parameters": {"document_store": children, "top_k": HITS},
    }
    for name in ("citation_extractor", "language_balancer"):
        components[name]["init_parameters"]["document_store"] = children
    for name in ("parent_fetcher", "conversation"):
        components[name]["init_parameters"]["document_store"] = parents
    # Hayhooks demands every declared input, so only those that a plain client sends are declared.
    inputs = {name: ours.metadata["inputs"][name] for name in ("query", "tenant_id")}
    return {**definition, "inputs": inputs, "outputs": {"answers": ours.metadata["outputs"]["answers"]}}


def fill_stores(children: int) -> None:
    """Write the synthetic library into the stores that every pipeline of this process shares by their `index`."""
    from bench.speed.systems import WORDS, child_documents, parent_document
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    child_store = InMemoryDocumentStore(index=CHILDREN, bm25_tokenization_regex=WORDS, bm25_algorithm="BM25Okapi")
    parent_store = InMemoryDocumentStore(index=PARENTS)
    for parent in SyntheticLibrary(children).parents():
        parent_store.write_documents([parent_document(parent)])
        child_store.write_documents(child_documents(parent))


def main() -> None:
    """Serve until stopped."""
    parser = argparse.ArgumentParser(prog="python -m bench.speed.plain_hayhooks")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--children", type=int, default=5000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pipelines = Path(folder) / "pipelines"
        pipelines.mkdir()
        definition = plain_definition(Path(folder) / "unused")
        (pipelines / "simple.yml").write_text(yaml.safe_dump(definition, sort_keys=False), encoding="utf-8")
        os.environ["HAYHOOKS_PIPELINES_DIR"] = str(pipelines)
        os.environ["HAYHOOKS_LOG_LEVEL"] = os.environ["LOG"] = "WARNING"
        fill_stores(options.children)

        import uvicorn

        from hayhooks import create_app

        uvicorn.run(create_app(), host="127.0.0.1", port=options.port, log_level="warning")


if __name__ == "__main__":
    main()
