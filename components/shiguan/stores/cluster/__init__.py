"""
The stores of the deployment `elasticsearch_qdrant`: words and parents in Elasticsearch, vectors in Qdrant.

They are Haystack's own document stores with what a library of books needs beside them: addresses from the environment,
indexes that one step makes, writes that say what was refused, exact words, and filters that mean the same on both
servers as on the embedded store. Haystack's own retrievers search them.
"""

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
