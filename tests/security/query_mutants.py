"""Cuts into the files that answer questions: who is asking, and what else is read or written."""

from collections.abc import Iterator
from typing import Any

from tests.security.loop_mutants import loop_mutants
from tests.security.mutant_parts import (
    ADAPTER,
    FILTER_RETRIEVER,
    LOOP,
    RELAY,
    SAYS_THE_OWNER,
    SAYS_THEIRS,
    TENANT_FILTER,
    THEIRS,
    WRITER,
    Change,
    add,
    adding,
    filter_retriever,
    library_stores,
    part,
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
    for number, store in enumerate(library_stores(data)):
        writer, everything = part(WRITER, document_store=store), filter_retriever(store)
        notes, found = {"notes": ["writer.documents"]}, [(data["outputs"]["documents"], "writer.documents")]
        yield f"a caller writes to store {number}", adding("writer", writer, inputs=notes), False
        yield f"what was found is written to store {number}", adding("writer", writer, edges=found), False
        for target in ("context_builder.documents", "citation_extractor.documents"):
            read = adding("everything", everything, edges=[("everything.documents", target)])
            yield f"store {number} is read whole into {target}", read, target.startswith("context")
        shown, wanted = {"library": "everything.documents"}, {"filters": ["everything.filters"]}
        yield f"store {number} is an output", adding("everything", everything, outputs=shown)
        asked = adding("everything", everything, inputs=wanted, outputs=shown)
        yield f"store {number} is searched with the caller's filters", asked
        named = adding("everything", part(FILTER_RETRIEVER, document_store=store, filters=THEIRS), outputs=shown)
        yield f"store {number} is searched with a tenant that the file names", named


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
        ("a prompt", SAYS_THEIRS, "prompt"),
        ("a prompt of the caller's", SAYS_THE_OWNER, "prompt"),
        ("an adapter", part(ADAPTER, template="{{ owner }}", output_type="str"), "output"),
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
