"""Follows a value backwards through a pipeline until it is sure that it came from a `TenantFilter`."""

from shiguan.checking.definition import Definition, Socket
from shiguan.checking.sockets import BRANCH_JOINER


def unfiltered(definition: Definition, sender: Socket) -> str | None:
    """
    Tell why an output does not hold the tenant's filters, to stand after "filtered by"; None if on every way it does.

    Values are asked for as they are, or as what a loop's state carries under a name.
    """
    frontier: list[tuple[Socket, str | None]] = [(sender, None)]
    seen = set(frontier)
    while frontier:
        output, carried = frontier.pop()
        before = _before(definition, output, carried)
        if isinstance(before, str):
            return before
        if before is None:
            continue
        receiver, name = before
        what = f"`{name}` of a state that" if name else "what"
        if definition.input_names(receiver):
            return f"{what} a caller may pass to `{'.'.join(receiver)}`"
        edges = definition.senders(receiver)
        if not edges:
            return f"{what} nothing sends to `{'.'.join(receiver)}`"
        for edge in edges:
            if (edge.sender, name) not in seen:
                seen.add((edge.sender, name))
                frontier.append((edge.sender, name))
    return None


def _before(definition: Definition, sender: Socket, carried: str | None) -> tuple[Socket, str | None] | str | None:
    """Give the input that an output comes from, and as what; None where it is the tenant's; else what is wrong."""
    component = definition.components.get(sender[0])
    role = component.role if component else ""
    if carried is None:
        if role == "filters" and sender[1] == "filters":
            return None
        if role == "carries":
            return (sender[0], "state"), sender[1]
        return f"`{'.'.join(sender)}`, which {'is no `TenantFilter`' if component else 'does not exist'}"
    if role == "starts" and component is not None:
        carry = component.parameters.get("carry")
        if not isinstance(carry, dict) or carried not in carry:
            return f"`{carried}`, which `{sender[0]}` does not carry"
        return (sender[0], carried), None
    if component is not None and component.type == BRANCH_JOINER:
        return (sender[0], "value"), carried
    if (role, sender[1]) in (("carries", "state"), ("retries", "retry")):
        return (sender[0], "state"), carried
    return f"`{carried}` of a state from `{'.'.join(sender)}`, which may change it"
