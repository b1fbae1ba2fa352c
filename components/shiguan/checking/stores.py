"""Which components of a file hold a store, and what they do with it."""

from collections.abc import Iterator
from typing import Final

from shiguan.checking.definition import Component, Definition, inner_components

WRITERS: Final = {
    "haystack.components.writers.document_writer.DocumentWriter": "documents",
    "shiguan.ingest.new_document_filter.NewDocumentFilter": "documents",
    "shiguan.ingest.orphan_remover.OrphanRemover": "produced",
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


def holds_store(component: Component) -> bool:
    """
    Tell whether a component could read documents from a store.

    :param component: The component.
    :returns: Whether a store stands among its parameters at any depth, or its class takes one, or it is a retriever by
        its package: some open a database of their own.
    """
    if ".retrievers." in component.type or any(map(_names_store, component.signature.parameters)):
        return True
    return any(is_store(inner) or ".retrievers." in inner.type for inner in inner_components(component))


def readers(definition: Definition) -> Iterator[Component]:
    """
    Find the components out of which documents of a store may come.

    :param definition: The file.
    :returns: All that hold a store and are no writers.
    """
    for component in definition.components.values():
        if component.type not in WRITERS and holds_store(component):
            yield component


def _names_store(key: str | int) -> bool:
    return str(key) == "document_store" or str(key).endswith("_store")
