"""Which components of a file hold a store, and what they do with it."""

from collections.abc import Iterator

from shiguan.checking.annotations import mentions
from shiguan.checking.definition import Component, Definition, Socket, inner_components

_CARRIERS = ("Document", "ProducedIds")
_STORE_PACKAGES = ("haystack.document_stores.", "haystack_integrations.document_stores.")


def is_store(component: Component) -> bool:
    """Tell whether something that stands inside a component is a document store."""
    named = _names_store(component.place[-1])
    return named or component.type.startswith(_STORE_PACKAGES) or component.type.endswith("Store")


def reading_parts(component: Component) -> list[Component]:
    """Find the parts of a component out of which any document of a store may come."""
    return [one for one in _holders(component) if one.role != "writes"]


def readers(definition: Definition) -> Iterator[Component]:
    """Find the components of a pipeline out of which any document of a store may come."""
    return (component for component in definition.components.values() if reading_parts(component))


def writes(definition: Definition) -> Iterator[Socket]:
    """Find where documents go into a store."""
    for component in definition.components.values():
        for writer in _holders(component):
            if writer.role == "writes":
                inputs = writer.signature.inputs.items()
                yield from (
                    (component.name, name) for name, socket in inputs if mentions(socket.annotation, *_CARRIERS)
                )


def _holders(component: Component) -> list[Component]:
    """
    Find what reaches a store, a component or one inside it.

    It holds one among its parameters, its class takes one, or it is a retriever by its package: some open a database
    of their own.
    """
    inner = list(inner_components(component))
    parts = [component, *(one for one in inner if not is_store(one))]
    places = {one.place: one for one in parts}
    holders = {
        one.place for one in parts if ".retrievers." in one.type or any(map(_names_store, one.signature.parameters))
    }
    for store in filter(is_store, inner):
        place = store.place[:-1]
        while place not in places:
            place = place[:-1]
        holders.add(place)
    return [one for place, one in places.items() if place in holders]


def _names_store(key: str | int) -> bool:
    return str(key) == "store" or str(key).endswith("_store")
