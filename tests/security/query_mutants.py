"""Cuts into the files that answer questions: who is asking, and what else is read or written."""

from collections.abc import Iterator
from typing import Any

from tests.security.loop_mutants import loop_mutants
from tests.security.mutant_parts import (
    ADAPTER,
    FILTER_RETRIEVER,
    LOOP,
    PROMPT,
    RELAY,
    TENANT_FILTER,
    THEIRS,
    WRITER,
    Change,
    add,
    filter_retriever,
    stores_of,
)
from tests.security.reader_mutants import reader_mutants

_NO_SEARCH = ("ToolAgent", "QueryRewriter", "ConversationReader", "CitationExtractor", "HallucinationGrader")
_FOR_THESE = (
    "its filters are dropped",
    "its filters are the caller's",
    "its filters are an input",
    "its filters are made",
    "its filters are another",
    "its filters are those",
)


def query_mutants(data: dict[str, Any]) -> Iterator[Change]:
    tenant_filter = next(name for name, spec in data["components"].items() if spec["type"] == TENANT_FILTER)
    readers = [name for name, spec in data["components"].items() if stores_of(spec)]
    assert readers
    yield from _tenant_mutants(data, tenant_filter, readers)
    for reader in readers:
        searches = not data["components"][reader]["type"].endswith(_NO_SEARCH)
        for name, change, *rest in reader_mutants(data, reader):
            # These read a store and give no list of what they found: the other cuts would break them rather than do harm.
            if searches or name.startswith(_FOR_THESE) or ("inside it" in name and "PassageReader" not in name):
                yield f"{reader}: {name}", change, *rest
    in_loop = any(spec["type"] == LOOP for spec in data["components"].values())
    if in_loop:
        yield from loop_mutants(data, tenant_filter, readers)
    for number, store in enumerate(
        store for store in stores_of(data["components"]) if "conversation" not in store["type"]
    ):
        yield (
            f"a caller writes to store {number}",
            lambda d, store=store: add(
                d,
                "writer",
                {"type": WRITER, "init_parameters": {"document_store": store}},
                inputs={"notes": ["writer.documents"]},
            ),
            False,
        )
        yield (
            f"what was found is written to store {number}",
            lambda d, store=store: add(
                d,
                "writer",
                {"type": WRITER, "init_parameters": {"document_store": store}},
                edges=[(d["outputs"]["documents"], "writer.documents")],
            ),
            False,
        )
        for target in ("context_builder.documents", "citation_extractor.documents"):
            yield (
                f"store {number} is read whole into {target}",
                lambda d, store=store, target=target: add(
                    d, "everything", filter_retriever(store), edges=[("everything.documents", target)]
                ),
                target.startswith("context"),
            )
        yield (
            f"store {number} is an output",
            lambda d, store=store: add(
                d, "everything", filter_retriever(store), outputs={"library": "everything.documents"}
            ),
        )
        yield (
            f"store {number} is searched with the caller's filters",
            lambda d, store=store: add(
                d,
                "everything",
                filter_retriever(store),
                inputs={"filters": ["everything.filters"]},
                outputs={"library": "everything.documents"},
            ),
        )
        yield (
            f"store {number} is searched with a tenant that the file names",
            lambda d, store=store: add(
                d,
                "everything",
                {"type": FILTER_RETRIEVER, "init_parameters": {"document_store": store, "filters": THEIRS}},
                outputs={"library": "everything.documents"},
            ),
        )


def _tenant_mutants(data: dict[str, Any], name: str, readers: list[str]) -> Iterator[Change]:
    tenant = f"{name}.tenant_id"

    def elsewhere(d, **inputs):
        d["inputs"]["tenant_id"].remove(tenant)
        if not d["inputs"]["tenant_id"]:
            del d["inputs"]["tenant_id"]
        for key, target in inputs.items():
            d["inputs"].setdefault(key, []).append(target)

    yield "the tenant is another input", lambda d: elsewhere(d, owner=tenant)
    yield "the tenant is the question", lambda d: elsewhere(d, query=tenant), False
    yield "the tenant may be said twice", lambda d: d["inputs"].update(owner=[tenant])
    yield "the tenant is not asked for", elsewhere, False
    for kind, spec, output in (
        ("a prompt", {"type": PROMPT, "init_parameters": {"template": "theirs"}}, "prompt"),
        ("a prompt of the caller's", {"type": PROMPT, "init_parameters": {"template": "{{ owner }}"}}, "prompt"),
        (
            "an adapter",
            {"type": ADAPTER, "init_parameters": {"template": "{{ owner }}", "output_type": "str"}},
            "output",
        ),
    ):
        inputs = {"owner": ["says.owner"]} if "owner" in str(spec) else {}

        def said(d, spec=spec, output=output, inputs=inputs):
            elsewhere(d)
            add(d, "says", spec, edges=[(f"says.{output}", tenant)], inputs=inputs)

        yield f"the tenant comes from {kind}", said

    def replaced(d, spec, socket):
        d["components"][name] = spec
        elsewhere(d)
        d["inputs"]["filters"] = [f"{name}.{socket}"]
        d["connections"] = [edge for edge in d["connections"] if edge["sender"] != f"{name}.retriever_kwargs"]
        for edge in d["connections"]:
            if edge["sender"] == f"{name}.filters":
                edge["sender"] = f"{name}.value"

    yield "a relay is called the tenant filter", lambda d: replaced(d, RELAY, "value")

    def removed(d):
        del d["components"][name]
        d["connections"] = [edge for edge in d["connections"] if not edge["sender"].startswith(f"{name}.")]
        elsewhere(d)
        d["inputs"]["filters"] = [e["receiver"] for e in data["connections"] if e["sender"] == f"{name}.filters"]

    def removed_without(d):
        removed(d)
        del d["inputs"]["filters"]

    yield "the caller's filters go to the readers", removed
    in_loop = any(spec["type"] == LOOP for spec in data["components"].values())
    yield "there is no tenant filter", removed_without, not in_loop
