"""What the mutants of pipeline files are made with."""

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from shiguan.checking.pipeline_check import Report, check_pipeline
from shiguan.engine.loading import mappings

TENANT_FILTER = "shiguan.retrieval.tenant_filter.TenantFilter"
CONVERTER = "haystack.components.converters.txt.TextFileToDocument"
STAMPER = "shiguan.ingest.source_stamper.SourceStamper"
LOOP = "shiguan.grading.attempt_loop.AttemptLoop"
BRANCH_JOINER = "haystack.components.joiners.branch.BranchJoiner"
FILTER_RETRIEVER = "haystack.components.retrievers.filter_retriever.FilterRetriever"
MEMORY_STORE = "haystack.document_stores.in_memory.document_store.InMemoryDocumentStore"
MEMORY_BM25 = "haystack.components.retrievers.in_memory.bm25_retriever.InMemoryBM25Retriever"
EDGE_STORE = "shiguan.stores.embedded.qdrant_edge_document_store.QdrantEdgeDocumentStore"
EDGE_BM25 = "shiguan.stores.embedded.qdrant_edge_bm25_retriever.QdrantEdgeBM25Retriever"
WINDOW = "haystack.components.retrievers.sentence_window_retriever.SentenceWindowRetriever"
PROMPT = "haystack.components.builders.prompt_builder.PromptBuilder"
CHAT_PROMPT = "haystack.components.builders.chat_prompt_builder.ChatPromptBuilder"
ADAPTER = "haystack.components.converters.output_adapter.OutputAdapter"
WRITER = "haystack.components.writers.document_writer.DocumentWriter"
RELAY = {"type": BRANCH_JOINER, "init_parameters": {"type_": "dict[str, typing.Any]"}}
SAYS_THEIRS = {"type": PROMPT, "init_parameters": {"template": "theirs"}}
SAYS_THE_OWNER = {"type": PROMPT, "init_parameters": {"template": "{{ owner }}"}}

Change = tuple[Any, ...]
"""A name, a function that changes a definition, and whether a run of it shows the harm (yes if left out)."""


def checked(data: dict[str, Any], folder: Path, **options: Any) -> Report:
    path = folder / "mine.yml"
    path.write_text(json.dumps(data), encoding="utf-8")  # JSON is YAML
    return check_pipeline(path, "mine.yml", **options)


def load(path: Path) -> dict[str, Any]:
    """Read a file with every anchor written out and its options as inputs, so that a change stays where it was made."""
    data: dict[str, Any] = json.loads(json.dumps(yaml.safe_load(path.read_text(encoding="utf-8"))))
    data["inputs"] |= data.pop("options", {})
    return data


def spoken(data: dict[str, Any], said: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Hand what a caller says to the components that a file's inputs and options name."""
    run: dict[str, dict[str, Any]] = {}
    for name, targets in {**data["inputs"], **data.get("options", {})}.items():
        for component, _, socket in (target.partition(".") for target in targets):
            if said.get(name) is not None:
                run.setdefault(component, {})[socket] = said[name]
    return run


def stores_of(value: Any) -> list[dict[str, Any]]:
    """The different document stores below a value."""
    found: list[dict[str, Any]] = []
    for node in mappings(value):
        if str(node.get("type", "")).endswith("Store") and node not in found:
            found.append(node)
    return found


def retrievers_of(value: Any) -> list[dict[str, Any]]:
    """The components below a value that read a store themselves."""
    return [
        node
        for node in mappings(value)
        if "document_store" in (node.get("init_parameters") or {}) and node.get("type") != WRITER
    ]


def library_stores(data: dict[str, Any]) -> list[dict[str, Any]]:
    """The stores of a file but that of conversations."""
    return [store for store in stores_of(data["components"]) if "conversation" not in store["type"]]


def part(type_: str, /, **parameters: Any) -> dict[str, Any]:
    return {"type": type_, "init_parameters": parameters}


def filter_retriever(store: dict[str, Any]) -> dict[str, Any]:
    """A component that gives everything that a store holds."""
    return part(FILTER_RETRIEVER, document_store=deepcopy(store))


def filters_of(data: dict[str, Any], reader: str) -> str:
    """A reader's socket for the tenant's filters; `retriever_kwargs` where another retriever stands inside it."""
    inside = f"{reader}.retriever_kwargs"
    return inside if inside in receivers(data) else f"{reader}.filters"


def receivers(data: dict[str, Any]) -> set[str]:
    targets = {target for listed in data["inputs"].values() for target in listed}
    return targets | {edge["receiver"] for edge in data["connections"]}


def connect(data: dict[str, Any], sender: str, receiver: str) -> None:
    data["connections"].append({"sender": sender, "receiver": receiver})


def add(
    data: dict[str, Any],
    name: str,
    spec: dict[str, Any],
    *,
    edges: list[tuple[str, str]] | None = None,
    inputs: dict[str, list[str]] | None = None,
    outputs: dict[str, str] | None = None,
) -> None:
    """Add a component with what leads to it and away from it."""
    data["components"][name] = deepcopy(spec)
    for edge in edges or []:
        connect(data, *edge)
    for key, targets in (inputs or {}).items():
        data["inputs"].setdefault(key, []).extend(targets)
    data["outputs"].update(outputs or {})


def adding(name: str, spec: dict[str, Any], **where: Any) -> Callable[[dict[str, Any]], None]:
    """A change that does what `add` does."""
    return lambda data: add(data, name, spec, **where)
