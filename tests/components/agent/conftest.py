"""Waits that do not pass, for everything that tries again."""

import pytest
from tests.doubles.waiting import waits  # noqa: F401  a fixture


@pytest.fixture(autouse=True)
def _without_waiting(waits):  # noqa: F811
    pass
