"""The loops of a pipeline."""

from shiguan.checking.definition import Definition


def loops(definition: Definition) -> list[set[str]]:
    """
    Find the loops.

    :param definition: The file.
    :returns: For each loop, the names of the components that can reach one another.
    """
    names = set(definition.components)
    following: dict[str, set[str]] = {name: set() for name in names}
    for edge in definition.connections:
        if edge.sender[0] in names and edge.receiver[0] in names:
            following[edge.sender[0]].add(edge.receiver[0])
    reached = {name: _reached(name, following) for name in names}
    found: list[set[str]] = []
    for name in sorted(names):
        if name in reached[name] and not any(name in loop for loop in found):
            found.append({other for other in reached[name] if name in reached[other]})
    return found


def _reached(start: str, following: dict[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    frontier = [start]
    while frontier:
        for name in following[frontier.pop()] - reached:
            reached.add(name)
            frontier.append(name)
    return reached
