"""Components that wait for what never comes end a pipeline without an answer and without an error."""

from collections.abc import Iterator

from shiguan.checking.definition import Definition
from shiguan.checking.finding import Finding
from shiguan.checking.repeats import loops
from shiguan.checking.sockets import BRANCH_JOINER, sockets_of


def check_starvation(definition: Definition) -> Iterator[Finding]:
    """Find inputs that nothing feeds, and loops that are fed from outside past their entrance."""
    fed = {edge.receiver for edge in definition.connections}
    fed |= {target for targets in definition.inputs.values() for target in targets}
    for component in definition.components.values():
        for name, socket in sockets_of(component).inputs.items():
            if socket.mandatory and (component.name, name) not in fed:
                yield Finding(
                    component.place,
                    f"Nothing feeds `{component.name}.{name}`, so `{component.name}` never runs.",
                    "Expected a connection or a declared input.",
                    "Connect it, or remove the component.",
                    unsafe=False,
                )
    for loop in loops(definition):
        if not any(definition.components[name].type == BRANCH_JOINER for name in loop):
            yield Finding(
                ("connections",),
                f"The components {', '.join(f'`{name}`' for name in sorted(loop))} wait for one another.",
                "Expected a loop that is entered through a `BranchJoiner`.",
                "Remove a connection, or add the joiner.",
                unsafe=False,
            )
        for edge in definition.connections:
            entered = edge.receiver[0]
            if edge.sender[0] in loop or entered not in loop:
                continue
            if definition.components[entered].type != BRANCH_JOINER:
                yield Finding(
                    edge.place,
                    f"`{'.'.join(edge.sender)}` stands outside the loop and feeds `{'.'.join(edge.receiver)}` inside "
                    "it: it delivers once, and from the second round on the receiver does not run, or runs without it.",
                    "Expected everything inside a loop to come from inside.",
                    "Carry the value through the loop: name it in `carry` of `AttemptStarter` and `AttemptReader`.",
                )
