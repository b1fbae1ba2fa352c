"""Copies of our pipeline files, each with one way cut into it on which a tenant could see or change another's documents."""

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

from tests.doubles.own_modes import PIPELINES
from tests.security.mutant_parts import (
    ADAPTER,
    CONVERTER,
    LOOP,
    RELAY,
    SAYS_THE_OWNER,
    SAYS_THEIRS,
    STAMPER,
    TENANT_FILTER,
    WINDOW,
    WRITER,
    Change,
    add,
    adding,
    connect,
    filter_retriever,
    filters_of,
    library_stores,
    load,
    part,
    retrievers_of,
    stores_of,
)

FILES = sorted(path for path in PIPELINES.glob("*/*.yml") if path.stem not in ("models", "read"))
MADE = part(ADAPTER, template="{{ filters }}", output_type="dict[str, typing.Any]")


def mutants(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """All mutants of a file: what was done, and the changed definition."""
    data = load(path)
    stamps = path.stem == "index"
    [tenant_of] = [name for name, one in data["components"].items() if one["type"] in (TENANT_FILTER, STAMPER)]
    for name, change in (*_tenants(tenant_of), *(_index(data, tenant_of) if stamps else _query(data, tenant_of))):
        copy = deepcopy(data)
        change(copy)
        assert copy != data, name
        yield name, copy


def _tenants(name: str) -> Iterator[Change]:
    """Whom a `TenantFilter` or a `SourceStamper` believes who asks."""
    tenant = f"{name}.tenant_id"

    def elsewhere(d, **inputs):
        d["inputs"] = {key: [one for one in targets if one != tenant] for key, targets in d["inputs"].items()}
        d["inputs"] = {key: targets for key, targets in d["inputs"].items() if targets} | inputs

    def said(d, spec, **inputs):
        elsewhere(d)
        add(d, "says", spec, edges=[("says.prompt", tenant)], inputs=inputs)

    yield "the tenant is another input", lambda d: elsewhere(d, owner=[tenant])
    yield "the tenant may be said twice", lambda d: d["inputs"].update(owner=[tenant])
    yield "the tenant is not asked for", elsewhere
    yield "the tenant is in the file", lambda d: said(d, SAYS_THEIRS)
    yield "the tenant is in the file as well", adding("says", SAYS_THEIRS, edges=[("says.prompt", tenant)])
    yield "the tenant is the caller's word", lambda d: said(d, SAYS_THE_OWNER, owner=["says.owner"])


def _index(data: dict[str, Any], stamper: str) -> Iterator[Change]:
    """What is written without a stamp."""
    documents = (".documents", ".parents", ".children")
    stamped = {edge["receiver"] for edge in data["connections"] if edge["receiver"].endswith(documents)}
    assert len(stamped) >= 3
    for receiver in sorted(stamped):
        edges = [("read.documents", receiver)]
        read = adding("read", {"type": CONVERTER}, edges=edges, inputs={"sources": ["read.sources"]})
        # What comes before the stamper is stamped by it.
        if not receiver.startswith(f"{stamper}."):
            yield f"what a converter reads goes to {receiver}", read
            yield f"a caller's documents go to {receiver}", lambda d, to=receiver: d["inputs"].update(notes=[to])
        for number, store in enumerate(stores_of(data["components"])):
            edges = [("everything.documents", receiver)]
            yield (
                f"store {number} is read whole into {receiver}",
                adding("everything", filter_retriever(store), edges=edges),
            )

    def joiner(d):
        d["inputs"].pop("tenant_id")
        d["components"][stamper] = {"type": "haystack.components.joiners.document_joiner.DocumentJoiner"}

    yield "a joiner is called the stamper", joiner


def _query(data: dict[str, Any], tenant_filter: str) -> Iterator[Change]:
    """What is read or written for another tenant."""
    for reader in [name for name, spec in data["components"].items() if stores_of(spec)]:
        yield from ((f"{reader}: {name}", change) for name, change in _reader(data, reader))
    for loop in [name for name, spec in data["components"].items() if spec["type"] == LOOP]:
        yield from _filters(f"{loop}.filters")
        yield "the loop's filters come from another loop", lambda d, loop=loop: _second(d, loop)

    def relayed(d):
        d["components"][tenant_filter] = RELAY
        d["connections"] = [edge for edge in d["connections"] if edge["sender"] != f"{tenant_filter}.retriever_kwargs"]
        for edge in d["connections"]:
            edge["sender"] = edge["sender"].replace(f"{tenant_filter}.filters", f"{tenant_filter}.value")
        d["inputs"]["filters"] = [f"{tenant_filter}.value"]
        del d["inputs"]["tenant_id"]

    yield "a relay is called the tenant filter", relayed
    for number, store in enumerate(library_stores(data)):
        writer, everything = part(WRITER, document_store=store), filter_retriever(store)
        yield f"a caller writes to store {number}", adding("writer", writer, inputs={"notes": ["writer.documents"]})
        yield f"nothing is connected to a writer to store {number}", adding("writer", writer)
        found = [(data["outputs"]["documents"], "writer.documents")]
        yield f"what was found is written to store {number}", adding("writer", writer, edges=found)
        whole = adding("everything", everything, edges=[("everything.documents", "context_builder.documents")])
        yield f"store {number} is read whole into the context", whole
        shown = adding("everything", everything, outputs={"library": "everything.documents"})
        yield f"store {number} is an output", shown


def _second(d: dict[str, Any], loop: str) -> None:
    d["connections"] = [edge for edge in d["connections"] if edge["receiver"] != f"{loop}.filters"]
    add(d, "second", d["components"][loop], inputs={"where": ["second.filters"]})
    connect(d, "query_rewriter.queries", "second.start")
    connect(d, "second.filters", f"{loop}.filters")


def _reader(data: dict[str, Any], reader: str) -> Iterator[Change]:
    yield from _filters(filters_of(data, reader))
    spec = data["components"][reader]
    # Tools are cut in `agent_mutants`.
    for inner in [one for one in retrievers_of(spec) if one is not spec and ".agent." not in one["type"]]:

        def nested(d, inner=inner):
            [one] = [found for found in retrievers_of(d["components"][reader]) if found == inner]
            one |= part(WINDOW, document_store=stores_of(inner)[0])

        yield f"{inner['type'].rpartition('.')[2]} inside it takes no filters", nested


def _filters(socket: str) -> Iterator[Change]:
    def drop(d):
        d["connections"] = [edge for edge in d["connections"] if edge["receiver"] != socket]

    def callers(d):
        drop(d)
        d["inputs"].setdefault("filters", []).append(socket)

    def made(d):
        drop(d)
        add(d, "made", MADE, edges=[("made.output", socket)], inputs={"filters": ["made.filters"]})

    yield f"{socket} are dropped", drop
    yield f"{socket} are the caller's", callers
    yield f"{socket} are made by an adapter", made
    yield f"{socket} are the caller's beside the tenant's", lambda d: d["inputs"].update(where=[socket])
