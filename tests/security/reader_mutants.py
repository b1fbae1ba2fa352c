"""Cuts around one component that reads a store."""

from collections.abc import Iterator
from copy import deepcopy
from functools import partial
from typing import Any

from tests.security.mutant_parts import (
    ADAPTER,
    MEMORY_BM25,
    MEMORY_STORE,
    OURS,
    RELAY,
    SAYS_THEIRS,
    TENANT_FILTER,
    THEIRS,
    Change,
    add,
    filter_retriever,
    filters_of,
    fit,
    part,
    receivers,
    retrievers_of,
    stores_of,
)

RETRIEVERS = "haystack.components.retrievers."
WINDOW = "sentence_window_retriever.SentenceWindowRetriever"
MERGING = "auto_merging_retriever.AutoMergingRetriever"
MADE = part(ADAPTER, template="{{ filters }}", output_type="dict[str, typing.Any]")
OTHER = {"type": TENANT_FILTER}


def reader_mutants(data: dict[str, Any], reader: str) -> Iterator[Change]:  # noqa: C901 - a list of cuts
    spec = data["components"][reader]
    socket = filters_of(data, reader)
    held = socket.partition(".")[2]

    def drop(d):
        d["connections"] = [edge for edge in d["connections"] if edge["receiver"] != socket]

    def instead(d, name, other, output, **inputs):
        drop(d)
        add(d, name, other, edges=[(f"{name}.{output}", socket)], inputs=inputs)

    def to_input(d, key):
        drop(d)
        d["inputs"].setdefault(key, []).append(socket)

    # The retrievers and the fetcher behind them each hold the tenant apart, so that a run needs both open to show harm.
    yield "its filters are dropped", drop, False
    yield "its filters are the caller's", lambda d: to_input(d, "filters"), False
    yield "its filters are an input of their own", lambda d: to_input(d, "where"), False
    for name, change in (
        (
            "the caller's by a relay",
            partial(instead, name="relay", other=RELAY, output="value", filters=["relay.value"]),
        ),
        ("made by an adapter", partial(instead, name="made", other=MADE, output="output", filters=["made.filters"])),
        ("another tenant's", partial(instead, name="second", other=OTHER, output=held, owner=["second.tenant_id"])),
    ):
        yield f"its filters are {name}", change, False

    def constant(d):
        instead(d, "second", OTHER, held)
        add(d, "says", SAYS_THEIRS, edges=[("says.prompt", "second.tenant_id")])

    yield "its filters are those of a tenant that the file names", constant, False

    def initial(d):
        drop(d)
        for one in retrievers_of(d["components"][reader]):
            if OURS in one["type"]:
                by_vectors = "Embedding" in one["type"]
                one.update(deepcopy(taken))
                if by_vectors:
                    one["type"] = one["type"].replace("bm25", "embedding").replace("BM25", "Embedding")
            one["init_parameters"]["filters"] = {"field": "meta.tenant_id", "operator": "==", "value": "theirs"}

    memory = part(MEMORY_STORE, index="library")
    taken = part(MEMORY_BM25, document_store=memory)
    if not any(word in reader for word in ("fetcher", "balancer")):
        yield "its filters are in its parameters", initial, False

    def twin(d, target):
        query = "queries" if f"{reader}.queries" in receivers(d) else "query"
        edges = [
            (edge["sender"], f"twin.{edge['receiver'].partition('.')[2]}")
            for edge in d["connections"]
            if edge["receiver"].startswith(f"{reader}.") and edge["receiver"] != socket
        ]
        inputs = {
            key: [f"twin.{query}" for value in targets if value == f"{reader}.{query}"]
            for key, targets in d["inputs"].items()
        }
        add(d, "twin", deepcopy(spec), edges=edges, inputs={key: value for key, value in inputs.items() if value})
        if target is None:
            d["outputs"]["library"] = "twin.documents"
        else:
            d["connections"].append({"sender": "twin.documents", "receiver": target})

    for edge in data["connections"]:
        if edge["sender"] == f"{reader}.documents":
            yield f"its twin without filters joins {edge['receiver']}", partial(twin, target=edge["receiver"]), False
    # Of what searches, the twin shows what it found; fetcher, matcher and balancer only read for passages that came to them,
    # and the parts of a question are searched where it was taken apart.
    searches = not any(word in reader for word in ("fetcher", "matcher", "balancer", "sub_questions"))
    yield "its twin without filters is an output", lambda d: twin(d, None), searches

    def swapped(d, spec, keep, sockets=("query",)):
        d["components"][reader] = spec
        if not keep:
            drop(d)
        for edge in d["connections"]:
            if edge["receiver"] == socket:
                edge.update(sender=edge["sender"].replace(held, "filters"), receiver=f"{reader}.filters")
        fit(d, reader, sockets if not keep else (*sockets, "filters"))

    if searches:
        yield "it is swapped for a store in memory", lambda d: swapped(d, taken, False), False
        merging = part(MEMORY_BM25, document_store=memory, filter_policy="merge", filters=THEIRS)
        yield "it merges filters", lambda d: swapped(d, merging, True), False
        whole = filter_retriever(stores_of(spec)[0])
        yield "it is swapped for a reader of everything", lambda d: swapped(d, whole, False, ()), False
        wrapped = part(f"{RETRIEVERS}multi_query_text_retriever.MultiQueryTextRetriever", retriever=taken)
        hands_on = partial(swapped, spec=wrapped, keep=False, sockets=("queries",))
        yield "it is swapped for one that hands filters on and has none", hands_on, False

    def followed(d, kind, socket, output):
        for edge in d["connections"]:
            if edge["sender"] == f"{reader}.documents":
                edge["sender"] = f"after.{output}"
        after = part(f"{RETRIEVERS}{kind}", document_store=stores_of(spec)[0])
        add(d, "after", after, edges=[(f"{reader}.documents", f"after.{socket}")])

    neighbours = partial(followed, kind=WINDOW, socket="retrieved_documents", output="context_documents")
    yield "a window of neighbours is read after it", neighbours, False
    yield (
        "whole passages are read after it",
        partial(followed, kind=MERGING, socket="documents", output="documents"),
        False,
    )
    for inner in retrievers_of(spec):
        if inner is spec:
            continue

        def nested(d, inner=inner, kind=WINDOW):
            (one,) = [found for found in retrievers_of(d["components"][reader]) if found == inner]
            one |= part(f"{RETRIEVERS}{kind}", document_store=stores_of(inner)[0])

        short = inner["type"].rpartition(".")[2]
        yield f"{short} inside it takes no filters", nested, False
        yield f"{short} inside it goes its own way", partial(nested, kind=MERGING), False

        def merge(d, inner=inner):
            (one,) = [found for found in retrievers_of(d["components"][reader]) if found == inner]
            kind, name = ("embedding", "Embedding") if "embedding" in inner["type"].lower() else ("bm25", "BM25")
            type_ = f"{RETRIEVERS}in_memory.{kind}_retriever.InMemory{name}Retriever"
            one |= part(type_, document_store=memory, filter_policy="merge", filters=THEIRS)

        yield f"{short} inside it merges filters", merge, False
