"""Cuts into the loop that corrects itself, which carries the filters."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from tests.security.mutant_parts import ADAPTER, READER, STARTER, Change, add


def loop_mutants(  # noqa: C901 - a list of cuts
    data: dict[str, Any], tenant_filter: str, readers: list[str]
) -> Iterator[Change]:
    names = {spec["type"]: name for name, spec in data["components"].items()}
    starter, reader = names[STARTER], names[READER]
    [joiner] = [
        edge["sender"].partition(".")[0] for edge in data["connections"] if edge["receiver"] == f"{reader}.state"
    ]

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
    made = {"type": ADAPTER, "init_parameters": {"template": "{{ state }}", "output_type": "dict[str, typing.Any]"}}
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
