"""
The stores of the deployment `elasticsearch_qdrant`: words and parents in Elasticsearch, vectors in Qdrant.

They are Haystack's own document stores with what a library of books needs beside them: addresses from the environment,
indexes that are made once and by one step, writes that say what was refused, and filters that mean the same on both
servers as on the embedded store.
"""

from importlib.util import find_spec

from shiguan.errors import ConfigurationError


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package around it
        return False


for _integration in ("elasticsearch", "qdrant"):
    if not _is_installed(f"haystack_integrations.document_stores.{_integration}"):
        raise ConfigurationError(
            f"The deployment `elasticsearch_qdrant` needs the package `{_integration}-haystack`, which is not "
            'installed. Install it with `pip install "shiguan[elasticsearch,qdrant]"`.'
        )
