"""Which components of a file hold a store, and what they do with it."""

from collections.abc import Iterator
from typing import Final

from shiguan.checking.definition import Component, Definition, Socket, inner_components

_WRITERS: Final = {
    "haystack.components.writers.document_writer.DocumentWriter": "documents",
    "shiguan.ingest.new_document_filter.NewDocumentFilter": "documents",
    "shiguan.ingest.orphan_remover.OrphanRemover": "produced",
    "shiguan.ingest.token_vector_document_embedder.TokenVectorDocumentEmbedder": "documents",
}
"""Components that change a store or compare with it, and the input that must come from a `SourceStamper`."""

_STORE_PACKAGES = ("haystack.document_stores.", "haystack_integrations.document_stores.")


def is_store(component: Component) -> bool:
    """
    Tell whether something that stands inside a component is a document store.

    :param component: What stands there.
    :returns: Whether it is one.
    """
    named = _names_store(component.place[-1])
    return named or component.type.startswith(_STORE_PACKAGES) or component.type.endswith("Store")


def reading_parts(component: Component) -> list[Component]:
    """
    Find the parts of a component out of which any document of a store may come.

    :param component: A component of the pipeline.
    :returns: Itself, components inside it, or nothing.
    """
    return [one for one in _holders(component) if one.type not in _WRITERS]


def readers(definition: Definition) -> Iterator[Component]:
    """
    Find the components of a pipeline out of which any document of a store may come.

    :param definition: The file.
    :returns: The components.
    """
    return (component for component in definition.components.values() if reading_parts(component))


def writes(definition: Definition) -> Iterator[Socket]:
    """
    Find where documents go into a store.

    :param definition: The file.
    :returns: The inputs of the components that write them, or that hold something that does.
    """
    for component in definition.components.values():
        names = {_WRITERS[one.type] for one in _holders(component) if one.type in _WRITERS}
        yield from ((component.name, name) for name in sorted(names))


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
