"""Follows a value backwards through a pipeline until it is sure that it came from a `TenantFilter`."""

from shiguan.checking.definition import Definition, Socket
from shiguan.checking.sockets import ATTEMPT_READER, ATTEMPT_STARTER, BRANCH_JOINER

TENANT_FILTER = "shiguan.retrieval.tenant_filter.TenantFilter"
_GRADERS = frozenset(
    {
        "shiguan.grading.hallucination_grader.HallucinationGrader",
        "shiguan.retrieval.relevance_grader.RelevanceGrader",
    }
)


def unfiltered(definition: Definition, sender: Socket) -> str | None:
    """
    Tell why an output does not hold the tenant's filters.

    :param definition: The file.
    :param sender: The output.
    :returns: What it holds instead, to stand after "filtered by"; None if on every way it comes from a `TenantFilter`.
    """
    component = definition.components.get(sender[0])
    if component is None:
        return f"`{'.'.join(sender)}`, which does not exist"
    if component.type == TENANT_FILTER and sender[1] == "filters":
        return None
    if component.type == ATTEMPT_READER:
        return _state_without(definition, (sender[0], "state"), sender[1], set())
    return f"`{'.'.join(sender)}`, which is no `TenantFilter`"


def _state_without(definition: Definition, receiver: Socket, name: str, seen: set[Socket]) -> str | None:
    """Tell why the state of a loop that arrives somewhere may carry something else under a name."""
    if receiver in seen:
        return None
    seen.add(receiver)
    if definition.input_names(receiver):
        return f"`{name}` of a state that a caller may pass to `{'.'.join(receiver)}`"
    edges = definition.senders(receiver)
    if not edges:
        return f"`{name}` of a state that nothing sends to `{'.'.join(receiver)}`"
    for edge in edges:
        reason = _sent_without(definition, edge.sender, name, seen)
        if reason is not None:
            return reason
    return None


def _sent_without(definition: Definition, sender: Socket, name: str, seen: set[Socket]) -> str | None:
    component = definition.components.get(sender[0])
    type_ = component.type if component else ""
    if type_ == ATTEMPT_STARTER and component is not None:
        carry = component.parameters.get("carry")
        if not isinstance(carry, dict) or name not in carry:
            return f"`{name}`, which `{sender[0]}` does not carry"
        return _carried_without(definition, (sender[0], name))
    if type_ == BRANCH_JOINER:
        return _state_without(definition, (sender[0], "value"), name, seen)
    if (type_ in _GRADERS and sender[1] == "retry") or (type_ == ATTEMPT_READER and sender[1] == "state"):
        return _state_without(definition, (sender[0], "state"), name, seen)
    return f"`{name}` of a state from `{'.'.join(sender)}`, which may change it"


def _carried_without(definition: Definition, receiver: Socket) -> str | None:
    if definition.input_names(receiver):
        return f"the caller's input to `{'.'.join(receiver)}`"
    edges = definition.senders(receiver)
    if not edges:
        return f"`{'.'.join(receiver)}`, to which nothing is connected"
    return next((reason for edge in edges if (reason := unfiltered(definition, edge.sender)) is not None), None)
