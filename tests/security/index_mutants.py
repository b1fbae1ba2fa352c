"""Cuts into the files that put documents into a library."""

from collections.abc import Iterator
from typing import Any

from tests.security.mutant_parts import (
    CONVERTER,
    SAYS_THE_OWNER,
    SAYS_THEIRS,
    STAMPER,
    Change,
    add,
    adding,
    filter_retriever,
    stores_of,
)


def index_mutants(data: dict[str, Any]) -> Iterator[Change]:
    stamper = next(name for name, spec in data["components"].items() if spec["type"] == STAMPER)
    after, frontier = set(), [stamper]
    while frontier:
        name = frontier.pop()
        for edge in data["connections"]:
            receiver = edge["receiver"].partition(".")[0]
            if edge["sender"].startswith(f"{name}.") and receiver not in after:
                after.add(receiver)
                frontier.append(receiver)
    carriers = (".documents", ".parents", ".children")
    receivers = {edge["receiver"] for edge in data["connections"] if edge["receiver"].endswith(carriers)}
    stamped = sorted(receiver for receiver in receivers if receiver.partition(".")[0] in after)
    assert len(stamped) >= 3
    everything = [filter_retriever(store) for store in stores_of(data["components"])]
    for receiver in stamped:
        for joined in ([receiver], [receiver, f"{stamper}.documents"]):
            edges = [("read.documents", each) for each in joined]
            read = adding("read", {"type": CONVERTER}, edges=edges, inputs={"sources": ["read.sources"]})
            yield f"what a converter reads goes to {' and '.join(joined)} without a stamp", read, False
        yield f"a caller's documents go to {receiver}", lambda d, to=receiver: d["inputs"].update(notes=[to]), False
        for number, reader in enumerate(everything):
            whole = adding("everything", reader, edges=[("everything.documents", receiver)])
            yield f"store {number} is read whole into {receiver}", whole, False
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
    yield "the tenant is in the file", lambda d: said(d, SAYS_THEIRS, "prompt"), False
    yield "the tenant is the caller's word", lambda d: said(d, SAYS_THE_OWNER, "prompt", owner=["says.owner"]), False

    def without(d):
        said(d)
        d["components"][stamper] = {"type": "haystack.components.joiners.document_joiner.DocumentJoiner"}

    yield "a joiner is called the stamper", without, False
    for number, reader in enumerate(everything):
        before_it = adding("everything", reader, edges=[("everything.documents", f"{stamper}.documents")])
        yield f"store {number} is read whole before the stamp", before_it, False
        yield (
            f"store {number} is an output",
            adding("everything", reader, outputs={"all": "everything.documents"}),
            False,
        )
