"""Copies of our pipeline files, each with one way cut into it on which a tenant could see or change another's documents."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

PIPELINES = Path(__file__).resolve().parents[2] / "pipelines"
FILES = sorted(PIPELINES.glob("*/*.yml"))

TENANT_FILTER = "shiguan.retrieval.tenant_filter.TenantFilter"
STAMPER = "shiguan.ingest.source_stamper.SourceStamper"
STARTER = "shiguan.grading.attempt_starter.AttemptStarter"
READER = "shiguan.grading.attempt_reader.AttemptReader"
BRANCH_JOINER = "haystack.components.joiners.branch.BranchJoiner"
FILTER_RETRIEVER = "haystack.components.retrievers.filter_retriever.FilterRetriever"
MEMORY_STORE = "haystack.document_stores.in_memory.document_store.InMemoryDocumentStore"
MEMORY_BM25 = "haystack.components.retrievers.in_memory.bm25_retriever.InMemoryBM25Retriever"
PROMPT = "haystack.components.builders.prompt_builder.PromptBuilder"
ADAPTER = "haystack.components.converters.output_adapter.OutputAdapter"
WRITER = "haystack.components.writers.document_writer.DocumentWriter"
CLUSTER = "shiguan.cluster."  # its retrievers take no filters when they are built
RELAY = {"type": BRANCH_JOINER, "init_parameters": {"type_": "dict[str, typing.Any]"}}
THEIRS = {"field": "meta.tenant_id", "operator": "==", "value": "theirs"}


@dataclass
class Mutant:
    """
    :param file: Which file was changed, such as `embedded/simple`.
    :param name: What was done to it.
    :param data: The changed definition.
    :param shows: Whether a run of it shows another tenant's documents; else the harm is in a later round of the loop, in
        a store that is empty in a test, or in what is written.
    """

    file: str
    name: str
    data: dict[str, Any]
    shows: bool = True

    @property
    def id(self) -> str:
        return f"{self.file}: {self.name}"


def load(path: Path) -> dict[str, Any]:
    """Read a file with every anchor written out, so that a change stays where it was made."""
    return _unshared(yaml.safe_load(path.read_text(encoding="utf-8")))


def _unshared(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unshared(inner) for key, inner in value.items()}
    return [_unshared(inner) for inner in value] if isinstance(value, list) else value


def mutants(path: Path) -> Iterator[Mutant]:
    """All mutants of a file."""
    data = load(path)
    file = f"{path.parent.name}/{path.stem}"
    make = _index_mutants if path.stem == "index" else _query_mutants
    for name, change, *rest in make(data):
        copy = deepcopy(data)
        change(copy)
        assert copy != data, name
        yield Mutant(file, name, copy, *rest)


Change = tuple[Any, ...]


def _query_mutants(data: dict[str, Any]) -> Iterator[Change]:
    tenant_filter = next(name for name, spec in data["components"].items() if spec["type"] == TENANT_FILTER)
    # A ranker may look things up in a store too, of passages that were found under the filter.
    readers = [name for name, spec in data["components"].items() if stores_of(spec) and "Ranker" not in spec["type"]]
    assert readers
    yield from _tenant_mutants(data, tenant_filter, readers)
    for reader in readers:
        for name, change, *rest in _reader_mutants(data, reader):
            yield f"{reader}: {name}", change, *rest
    if any(spec["type"] == STARTER for spec in data["components"].values()):
        yield from _loop_mutants(data, tenant_filter, readers)
    for number, store in enumerate(stores_of(data["components"])):
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
        for target in ("context_builder.documents", "citations.documents"):
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
    in_loop = any(spec["type"] == STARTER for spec in data["components"].values())
    yield "there is no tenant filter", removed_without, not in_loop


def _reader_mutants(data: dict[str, Any], reader: str) -> Iterator[Change]:  # noqa: C901 - a list of cuts
    spec = data["components"][reader]
    socket = f"{reader}.filters"

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
            {"type": ADAPTER, "init_parameters": {"template": "{{ filters }}", "output_type": "dict"}},
            "output",
            filters=["made.filters"],
        ),
        False,
    )
    other = {"type": TENANT_FILTER}
    yield (
        "its filters are another tenant's",
        lambda d: instead(d, "second", other, "filters", owner=["second.tenant_id"]),
        False,
    )

    def constant(d):
        instead(d, "second", other, "filters")
        prompt = {"type": PROMPT, "init_parameters": {"template": "theirs"}}
        add(d, "says", prompt, edges=[("says.prompt", "second.tenant_id")])

    yield "its filters are those of a tenant that the file names", constant, False

    def initial(d):
        drop(d)
        for one in retrievers_of(d["components"][reader]):
            if CLUSTER in one["type"]:
                one.update(deepcopy(taken))
            one["init_parameters"]["filters"] = {"field": "meta.tenant_id", "operator": "==", "value": "theirs"}

    memory = {"type": MEMORY_STORE, "init_parameters": {"index": "library"}}
    taken = {"type": MEMORY_BM25, "init_parameters": {"document_store": memory}}
    if "fetcher" not in reader:
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
    yield "its twin without filters is an output", lambda d: twin(d, None), "fetcher" not in reader

    def swapped(d, spec, keep, sockets=("query",)):
        d["components"][reader] = spec
        if not keep:
            drop(d)
        fit(d, reader, sockets if not keep else (*sockets, "filters"))

    if "fetcher" not in reader:
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
        yield "it is swapped for one that takes no filters", lambda d: swapped(d, wrapped, False, ("queries",)), False

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


def _loop_mutants(  # noqa: C901 - a list of cuts
    data: dict[str, Any], tenant_filter: str, readers: list[str]
) -> Iterator[Change]:
    names = {spec["type"]: name for name, spec in data["components"].items()}
    starter, reader, joiner = names[STARTER], names[READER], names[BRANCH_JOINER]

    def carry(d, remove=(), **new):
        for name in (starter, reader):
            carried = d["components"][name]["init_parameters"]["carry"]
            for key in remove:
                carried.pop(key)
            carried.update(new)

    def drop(d, *sockets):
        d["connections"] = [edge for edge in d["connections"] if edge["receiver"] not in sockets]

    inside = [edge["receiver"] for edge in data["connections"] if edge["sender"] == f"{reader}.filters"]

    def not_carried(d):
        carry(d, ["filters"])
        drop(d, f"{starter}.filters", *inside)

    def from_outside(d, readers=readers):
        for one in readers:
            drop(d, f"{one}.filters")
            d["connections"].append({"sender": f"{tenant_filter}.filters", "receiver": f"{one}.filters"})

    def callers_start(d):
        drop(d, f"{starter}.filters")
        d["inputs"]["filters"] = [f"{starter}.filters"]

    def carried_beside(d, one):
        carry(d, where="dict")
        d["inputs"]["where"] = [f"{starter}.where"]
        for edge in d["connections"]:
            if edge["receiver"] in {f"{name}.filters" for name in one}:
                edge["sender"] = f"{reader}.where"

    def rewritten(d, sender, receiver, spec, output, socket):
        d["connections"] = [e for e in d["connections"] if (e["sender"], e["receiver"]) != (sender, receiver)]
        add(d, "between", spec, edges=[(sender, f"between.{socket}"), (f"between.{output}", receiver)])

    def second_start(d):
        spec = deepcopy(d["components"][starter])
        edges = [
            (edge["sender"], f"second.{edge['receiver'].partition('.')[2]}")
            for edge in d["connections"]
            if edge["receiver"].startswith(f"{starter}.") and not edge["receiver"].endswith(".filters")
        ]
        add(
            d, "second", spec, edges=[*edges, ("second.state", f"{joiner}.value")], inputs={"where": ["second.filters"]}
        )

    yield "the loop does not carry the filters", not_carried
    yield "the filters come from outside of the loop", from_outside, False
    for one in readers:
        yield f"{one} gets its filters from outside of the loop", lambda d, one=one: from_outside(d, [one]), False
    yield "the caller's filters enter the loop", callers_start
    yield "the caller's filters are carried beside", lambda d: carried_beside(d, readers)
    for one in readers:
        yield f"{one} takes filters that are carried beside", lambda d, one=one: carried_beside(d, [one]), False
    yield "a caller may pass a state to the joiner", lambda d: d["inputs"].update(state=[f"{joiner}.value"]), False
    made = {"type": ADAPTER, "init_parameters": {"template": "{{ state }}", "output_type": "dict"}}
    for sender, receiver in (
        (f"{starter}.state", f"{joiner}.value"),
        (f"{joiner}.value", f"{reader}.state"),
        ("grader.retry", f"{joiner}.value"),
    ):
        yield (
            f"the state is rewritten between {sender} and {receiver}",
            lambda d, sender=sender, receiver=receiver: rewritten(d, sender, receiver, made, "output", "state"),
            False,
        )
    yield "a second loop starts with the caller's filters", second_start, False
    only = {
        name: type_
        for name, type_ in data["components"][reader]["init_parameters"]["carry"].items()
        if name != "filters"
    }

    def reader_alone(d):
        d["components"][reader]["init_parameters"]["carry"] = only
        drop(d, *inside)

    yield "the reader forgets the filters", reader_alone
    yield "the starter's filters come from nowhere", lambda d: drop(d, f"{starter}.filters"), False


def _index_mutants(data: dict[str, Any]) -> Iterator[Change]:
    stamper = next(name for name, spec in data["components"].items() if spec["type"] == STAMPER)
    before = [
        edge["sender"]
        for edge in data["connections"]
        if edge["receiver"].endswith(".documents") and not edge["sender"].startswith(f"{stamper}.")
    ]
    after, frontier = set(), [stamper]
    while frontier:
        name = frontier.pop()
        for edge in data["connections"]:
            receiver = edge["receiver"].partition(".")[0]
            if edge["sender"].startswith(f"{name}.") and receiver not in after:
                after.add(receiver)
                frontier.append(receiver)
    unstamped = [sender for sender in dict.fromkeys(before) if sender.partition(".")[0] not in after]
    stamped = sorted({e["receiver"] for e in data["connections"] if e["receiver"].endswith(".documents") and e["receiver"].partition(".")[0] in after})  # fmt: skip
    assert len(unstamped) >= 5
    assert len(stamped) >= 4
    for receiver in stamped:
        for sender in unstamped:
            yield (
                f"{sender} goes to {receiver} without a stamp",
                lambda d, edge=(sender, receiver): connect(d, *edge),
                False,
            )
        yield f"a caller's documents go to {receiver}", lambda d, to=receiver: d["inputs"].update(notes=[to]), False
        for number, store in enumerate(stores_of(data["components"])):
            yield (
                f"store {number} is read whole into {receiver}",
                lambda d, store=store, to=receiver: add(
                    d, "everything", filter_retriever(store), edges=[("everything.documents", to)]
                ),
                False,
            )
    tenant = f"{stamper}.tenant_id"

    def said(d, spec=None, output=None, **inputs):
        d["inputs"]["tenant_id"].remove(tenant)
        if not d["inputs"]["tenant_id"]:
            del d["inputs"]["tenant_id"]
        d["inputs"].update(inputs)
        if spec:
            add(d, "says", spec, edges=[(f"says.{output}", tenant)])

    yield "the tenant is another input", lambda d: said(d, owner=[tenant]), False
    yield "the tenant may be said twice", lambda d: d["inputs"].update(owner=[tenant]), False
    constant = {"type": PROMPT, "init_parameters": {"template": "theirs"}}
    yield "the tenant is in the file", lambda d: said(d, constant, "prompt"), False
    asked = {"type": PROMPT, "init_parameters": {"template": "{{ owner }}"}}
    yield "the tenant is the caller's word", lambda d: said(d, asked, "prompt", owner=["says.owner"]), False

    def without(d):
        said(d)
        d["components"][stamper] = {"type": "haystack.components.joiners.document_joiner.DocumentJoiner"}

    yield "a joiner is called the stamper", without, False
    for number, store in enumerate(stores_of(data["components"])):
        yield (
            f"store {number} is read whole before the stamp",
            lambda d, store=store: add(
                d, "everything", filter_retriever(store), edges=[("everything.documents", f"{stamper}.documents")]
            ),
            False,
        )
        yield (
            f"store {number} is an output",
            lambda d, store=store: add(
                d, "everything", filter_retriever(store), outputs={"all": "everything.documents"}
            ),
            False,
        )


def stores_of(value: Any) -> list[dict[str, Any]]:
    """The different document stores below a value."""
    found: list[dict[str, Any]] = []
    for node in _mappings(value):
        if str(node.get("type", "")).endswith("Store") and node not in found:
            found.append(node)
    return found


def retrievers_of(value: Any) -> list[dict[str, Any]]:
    """The components below a value that read a store themselves."""
    return [
        node
        for node in _mappings(value)
        if "document_store" in (node.get("init_parameters") or {}) and node.get("type") != WRITER
    ]


def _mappings(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from _mappings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _mappings(inner)


def filter_retriever(store: dict[str, Any]) -> dict[str, Any]:
    """A component that gives everything that a store holds."""
    return {"type": FILTER_RETRIEVER, "init_parameters": {"document_store": deepcopy(store)}}


def filters_of(data: dict[str, Any], readers: list[str]) -> list[str]:
    """The readers' filter sockets."""
    return [f"{reader}.filters" for reader in readers if f"{reader}.filters" in receivers(data)]


def receivers(data: dict[str, Any]) -> set[str]:
    """Every socket that something feeds."""
    targets = {target for listed in data["inputs"].values() for target in listed}
    return targets | {edge["receiver"] for edge in data["connections"]}


def fit(data: dict[str, Any], name: str, sockets: tuple[str, ...]) -> None:
    """Leave only connections that another component under the same name can take."""
    swap = {("query",): ("queries", "query"), ("queries",): ("query", "queries")}.get(sockets[:1], ("", ""))
    for edge in data["connections"]:
        if edge["receiver"] == f"{name}.{swap[0]}":
            edge["receiver"] = f"{name}.{swap[1]}"
            if swap == ("queries", "query") and edge["sender"].endswith(".queries"):
                edge["sender"] = f"{edge['sender'].partition('.')[0]}.query"

    def fits(socket):
        return not socket.startswith(f"{name}.") or socket.partition(".")[2] in sockets

    data["connections"] = [edge for edge in data["connections"] if fits(edge["receiver"])]
    for key, targets in list(data["inputs"].items()):
        renamed = [f"{name}.{swap[1]}" if target == f"{name}.{swap[0]}" else target for target in targets]
        data["inputs"][key] = [target for target in renamed if fits(target)]
        if not data["inputs"][key]:
            del data["inputs"][key]
    explained = data.get("explain", {})
    for key in [key for key, target in explained.items() if target.startswith(f"{name}.")]:
        del explained[key]


def connect(data: dict[str, Any], sender: str, receiver: str) -> None:
    """Add a connection."""
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
