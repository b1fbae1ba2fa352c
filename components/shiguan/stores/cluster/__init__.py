"""
The stores of the deployment `elasticsearch_qdrant`: words and parents in Elasticsearch, vectors in Qdrant.

They are Haystack's own document stores with what a library of books needs beside them: addresses from the environment,
indexes that one step makes, writes that say what was refused, exact words, and filters that mean the same on both
servers as on the embedded store. Haystack's own retrievers search them.
"""

from importlib import import_module
from typing import Any

from haystack.core.serialization import import_class_by_name

from shiguan.errors import ConfigurationError
from shiguan.resources import install_command


def _load_as_named(store: type[Any]) -> None:
    """
    Let Haystack's retrievers be loaded with a subclass of the store that they are made for.

    Their `from_dict` hands the YAML of the store to Haystack's own class, which takes no other `type` than itself.
    """
    own = store.from_dict.__func__

    def from_dict(cls: type[Any], data: dict[str, Any]) -> Any:
        if cls is store and data.get("type") != f"{store.__module__}.{store.__name__}":
            named: Any = import_class_by_name(str(data.get("type")))
            if issubclass(named, store):
                return named.from_dict(data)
        return own(cls, data)

    store.from_dict = classmethod(from_dict)


for _integration, _store in (("elasticsearch", "ElasticsearchDocumentStore"), ("qdrant", "QdrantDocumentStore")):
    try:
        _module = import_module(f"haystack_integrations.document_stores.{_integration}")
    except ImportError as error:
        raise ConfigurationError(
            f"The deployment `elasticsearch_qdrant` needs the package `{_integration}-haystack`, which cannot be "
            f"imported ({error}). Install it with `{install_command('elasticsearch,qdrant')}`."
        ) from error
    _load_as_named(getattr(_module, _store))
