import pytest

from shiguan.llm.configured_chat_generator import ConfiguredChatGenerator


@pytest.fixture
def judge(endpoint):
    return ConfiguredChatGenerator(role="helper")
