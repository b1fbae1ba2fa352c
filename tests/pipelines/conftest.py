"""What the tests of whole pipelines share."""

from contextlib import ExitStack

import pytest
from tests.doubles.waiting import waits  # noqa: F401  a fixture

from shiguan.engine.runner import Runner


@pytest.fixture
def opened(library):
    """Open a mode on the library of a test; it is closed when the test is over."""
    with ExitStack() as runners:
        yield lambda mode: runners.enter_context(Runner("embedded", mode, data_dir=library))


@pytest.fixture
def llm(endpoint):
    """One that answers with one supported sentence."""
    endpoint.default = "Yang Yan proposed the two-tax reform in 780. [1]"
    return endpoint
