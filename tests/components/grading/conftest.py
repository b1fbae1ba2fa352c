import pytest

from shiguan.grading.attempts import Attempt
from shiguan.llm.configured_chat_generator import ConfiguredChatGenerator


@pytest.fixture
def judge(endpoint):
    return ConfiguredChatGenerator(role="helper")


def attempt(question="Who?", **more):
    return Attempt(question, (question,), {"field": "meta.tenant_id"}, **more)
