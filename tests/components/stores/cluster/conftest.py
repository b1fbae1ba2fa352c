import pytest
from tests.doubles.cluster import elasticsearch, qdrant, small_models, waits  # noqa: F401  fixtures


@pytest.fixture(autouse=True)
def _no_waiting(waits):  # noqa: F811
    """A server that is away is asked again; no test waits for it."""
