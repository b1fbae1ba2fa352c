import pytest

from shiguan.llm.configured_chat_generator import ConfiguredChatGenerator


@pytest.fixture
def judge(stand_in_llm, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", stand_in_llm.url)
    return ConfiguredChatGenerator(role="helper")
