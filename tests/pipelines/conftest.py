"""What the tests of whole pipelines share."""

from contextlib import ExitStack

import pytest
from tests.doubles.waiting import waits  # noqa: F401  a fixture

from shiguan.engine.runner import Runner


@pytest.fixture
def opened():
    """Open a mode on a library; it is closed when the test is over."""
    with ExitStack() as runners:
        yield lambda mode, library: runners.enter_context(Runner("embedded", mode, data_dir=library))


@pytest.fixture
def llm(endpoint):
    """One that answers with one supported sentence."""
    endpoint.default = "Yang Yan proposed the two-tax reform in 780. [1]"
    return endpoint
