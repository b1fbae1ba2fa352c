"""Cuts into the loop that corrects itself, which hands its stages the filters in every round."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from tests.security.mutant_parts import ADAPTER, LOOP, RELAY, Change, add, filters_of


def loop_mutants(data: dict[str, Any], tenant_filter: str, readers: list[str]) -> Iterator[Change]:
    [loop] = [name for name, spec in data["components"].items() if spec["type"] == LOOP]
    fed = {edge["receiver"] for edge in data["connections"] if edge["sender"].startswith(f"{loop}.")}
    inside = {reader: socket for reader in readers if (socket := filters_of(data, reader)) in fed}
    assert len(inside) >= 4

    def drop(d, *sockets):
        d["connections"] = [edge for edge in d["connections"] if edge["receiver"] not in sockets]

    def from_outside(d, *readers):
        for reader in readers:
            drop(d, inside[reader])
            output = inside[reader].partition(".")[2]
            d["connections"].append({"sender": f"{tenant_filter}.{output}", "receiver": inside[reader]})

    def callers_start(d):
        drop(d, f"{loop}.filters")
        d["inputs"]["filters"] = [f"{loop}.filters"]

    def relayed(d):
        drop(d, f"{loop}.filters")
        edges = [(f"{tenant_filter}.filters", "relay.value"), ("relay.value", f"{loop}.filters")]
        add(d, "relay", RELAY, edges=edges, inputs={"where": ["relay.value"]})

    def second(d, *edges):
        """Let another loop begin with the caller's filters."""
        same = [
            (edge["sender"], f"second.{edge['receiver'].partition('.')[2]}")
            for edge in d["connections"]
            if edge["receiver"].startswith(f"{loop}.") and ".retry" not in edge["sender"]
        ]
        kept = [edge for edge in same if edge[1] != "second.filters"]
        again = deepcopy(d["components"][loop])
        add(d, "second", again, edges=[*kept, *edges], inputs={"where": ["second.filters"]})

    def second_first(d):
        drop(d, f"{loop}.filters")
        second(d, ("second.filters", f"{loop}.filters"))

    def each_others(d):
        drop(d, f"{loop}.filters")
        again = deepcopy(d["components"][loop])
        edges = [("query_rewriter.queries", "second.start"), (f"{loop}.filters", "second.filters")]
        add(d, "second", again, edges=[*edges, ("second.filters", f"{loop}.filters")])

    def rewritten(d, reader):
        socket = inside[reader]
        output = socket.partition(".")[2]
        drop(d, socket)
        made = {"type": ADAPTER, "init_parameters": {"template": "{{ value }}", "output_type": "dict[str, typing.Any]"}}
        add(d, "between", made, edges=[(f"{loop}.{output}", "between.value"), ("between.output", socket)])

    yield "the loop has no filters", lambda d: drop(d, f"{loop}.filters")
    yield "the filters come from outside of the loop", lambda d: from_outside(d, *inside), False
    for one in inside:
        yield f"{one} gets its filters from outside of the loop", lambda d, one=one: from_outside(d, one), False
        yield f"the filters are rewritten between the loop and {one}", lambda d, one=one: rewritten(d, one), False
    yield "the caller's filters enter the loop", callers_start
    yield "the caller's filters enter the loop beside the tenant's", lambda d: d["inputs"].update(where=[f"{loop}.filters"]), False  # fmt: skip
    yield "the caller's filters enter the loop by a relay", relayed, False
    yield "an attempt of the caller's own filters enters the loop", lambda d: second(d, ("second.attempt", f"{loop}.start")), False  # fmt: skip
    yield "two loops have their filters from each other", each_others, False
    yield "a second loop hands on the caller's filters", second_first, False
