"""What the tests of whole pipelines share."""

import pytest
from tests.doubles.waiting import waits  # noqa: F401  a fixture


@pytest.fixture
def endpoint(stand_in_llm, monkeypatch):
    """A scripted model behind the environment's endpoint."""
    monkeypatch.setenv("OPENAI_BASE_URL", stand_in_llm.url)
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    return stand_in_llm


@pytest.fixture
def llm(endpoint):
    """One that answers with one supported sentence."""
    endpoint.default = "Yang Yan proposed the two-tax reform in 780. [1]"
    return endpoint
