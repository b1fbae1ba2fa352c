"""What the tests of whole pipelines share."""

import pytest


@pytest.fixture
def llm(stand_in_llm, monkeypatch):
    """A model behind the environment's endpoint that answers with one supported sentence."""
    monkeypatch.setenv("OPENAI_BASE_URL", stand_in_llm.url)
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    stand_in_llm.default = "Yang Yan proposed the two-tax reform in 780. [1]"
    return stand_in_llm
