"""The stores of the deployment `elasticsearch_qdrant`: words and parents in Elasticsearch, vectors in Qdrant."""

from importlib import import_module

from shiguan.errors import ConfigurationError
from shiguan.resources import install_command

for _integration in ("elasticsearch", "qdrant"):
    try:
        import_module(f"haystack_integrations.document_stores.{_integration}")
    except ImportError as error:
        raise ConfigurationError(
            f"The deployment `elasticsearch_qdrant` needs the package `{_integration}-haystack`, which cannot be "
            f"imported ({error}). Install it with `{install_command('elasticsearch,qdrant')}`."
        ) from error
