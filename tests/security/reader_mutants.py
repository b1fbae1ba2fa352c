"""Cuts around one component that reads a store."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from tests.security.mutant_parts import (
    ADAPTER,
    MEMORY_BM25,
    MEMORY_STORE,
    OURS,
    PROMPT,
    RELAY,
    TENANT_FILTER,
    THEIRS,
    Change,
    add,
    filter_retriever,
    filters_of,
    fit,
    receivers,
    retrievers_of,
    stores_of,
)


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
    yield (
        "its filters are the caller's by a relay",
        lambda d: instead(d, "relay", RELAY, "value", filters=["relay.value"]),
        False,
    )
    yield (
        "its filters are made by an adapter",
        lambda d: instead(
            d,
            "made",
            {"type": ADAPTER, "init_parameters": {"template": "{{ filters }}", "output_type": "dict[str, typing.Any]"}},
            "output",
            filters=["made.filters"],
        ),
        False,
    )
    other = {"type": TENANT_FILTER}
    yield (
        "its filters are another tenant's",
        lambda d: instead(d, "second", other, held, owner=["second.tenant_id"]),
        False,
    )

    def constant(d):
        instead(d, "second", other, held)
        prompt = {"type": PROMPT, "init_parameters": {"template": "theirs"}}
        add(d, "says", prompt, edges=[("says.prompt", "second.tenant_id")])

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

    memory = {"type": MEMORY_STORE, "init_parameters": {"index": "library"}}
    taken = {"type": MEMORY_BM25, "init_parameters": {"document_store": memory}}
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
            yield (
                f"its twin without filters joins {edge['receiver']}",
                lambda d, to=edge["receiver"]: twin(d, to),
                False,
            )
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
        merging = {
            "type": MEMORY_BM25,
            "init_parameters": {"document_store": memory, "filter_policy": "merge", "filters": THEIRS},
        }
        yield "it merges filters", lambda d: swapped(d, merging, True), False
        whole = filter_retriever(stores_of(spec)[0])
        yield "it is swapped for a reader of everything", lambda d: swapped(d, whole, False, ()), False
        wrapped = {
            "type": "haystack.components.retrievers.multi_query_text_retriever.MultiQueryTextRetriever",
            "init_parameters": {"retriever": taken},
        }
        yield (
            "it is swapped for one that hands filters on and has none",
            lambda d: swapped(d, wrapped, False, ("queries",)),
            False,
        )

    def followed(d, kind, socket, output):
        spec_ = {
            "type": f"haystack.components.retrievers.{kind}",
            "init_parameters": {"document_store": stores_of(spec)[0]},
        }
        for edge in d["connections"]:
            if edge["sender"] == f"{reader}.documents":
                edge["sender"] = f"after.{output}"
        add(d, "after", spec_, edges=[(f"{reader}.documents", f"after.{socket}")])

    yield (
        "a window of neighbours is read after it",
        lambda d: followed(
            d, "sentence_window_retriever.SentenceWindowRetriever", "retrieved_documents", "context_documents"
        ),
        False,
    )
    yield (
        "whole passages are read after it",
        lambda d: followed(d, "auto_merging_retriever.AutoMergingRetriever", "documents", "documents"),
        False,
    )
    for inner in retrievers_of(spec):
        if inner is spec:
            continue

        def nested(d, inner=inner, kind="sentence_window_retriever.SentenceWindowRetriever"):
            (one,) = [found for found in retrievers_of(d["components"][reader]) if found == inner]
            one["type"] = f"haystack.components.retrievers.{kind}"
            one["init_parameters"] = {"document_store": stores_of(inner)[0]}

        short = inner["type"].rpartition(".")[2]
        yield f"{short} inside it takes no filters", nested, False
        yield (
            f"{short} inside it goes its own way",
            lambda d, inner=inner: nested(d, inner, "auto_merging_retriever.AutoMergingRetriever"),
            False,
        )

        def merge(d, inner=inner):
            (one,) = [found for found in retrievers_of(d["components"][reader]) if found == inner]
            kind = "embedding" if "embedding" in inner["type"].lower() else "bm25"
            name = {"embedding": "InMemoryEmbeddingRetriever", "bm25": "InMemoryBM25Retriever"}[kind]
            one["type"] = f"haystack.components.retrievers.in_memory.{kind}_retriever.{name}"
            one["init_parameters"] = {"document_store": memory, "filter_policy": "merge", "filters": THEIRS}

        yield f"{short} inside it merges filters", merge, False
