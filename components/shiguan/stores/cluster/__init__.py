"""
The stores of the deployment `elasticsearch_qdrant`: words and parents in Elasticsearch, vectors in Qdrant.

They are Haystack's own document stores with what a library of books needs beside them: addresses from the environment,
indexes that are made once and by one step, writes that say what was refused, and filters that mean the same on both
servers as on the embedded store.
"""

from importlib.util import find_spec

from shiguan.errors import ConfigurationError

for _integration in ("elasticsearch", "qdrant"):
    try:
        _found = find_spec(f"haystack_integrations.document_stores.{_integration}")
    except ModuleNotFoundError:  # not even the package around it
        _found = None
    if _found is None:
        raise ConfigurationError(
            f"The deployment `elasticsearch_qdrant` needs the package `{_integration}-haystack`, which is not "
            'installed. Install it with `pip install "shiguan[elasticsearch,qdrant]"`.'
        )
