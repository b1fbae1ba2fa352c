"""Where a question is answered from, by rules."""

import pytest
from haystack.dataclasses import ChatMessage
from tests.components.memory.scripted_conversations import scripted_conversations
from tests.doubles.work import work

from shiguan.conversations import Turn, as_messages
from shiguan.llm.prompt_rendering import clean_history
from shiguan.memory.conversation_reader import route_question

HISTORY = [
    ChatMessage.from_user("How did the Great Fire of London start?"),
    ChatMessage.from_assistant("In a bakery in Pudding Lane, in 1666."),
]
QUESTION = "And why did it burn?"


@pytest.mark.parametrize(
    ("question", "source"),
    [
        ("Who was Guo Ziyi?", "database"),
        (QUESTION, "both"),
        ("You said it burned in 1672, is that right?", "both"),
        ("Where were we?", "history"),
        ("What did you say about the bakery?", "history"),
        ("郭子仪何时去世？", "database"),
        ("他后来怎么样了？", "both"),
        ("你刚才说是1672年，对吗？", "both"),
        ("我们刚才聊到哪了？", "history"),
        ("總結一下我們的對話。", "history"),
    ],
)
def test_each_kind_of_question_has_its_source(question, source):
    assert route_question(question, HISTORY)[0] == source


@pytest.mark.parametrize("question", [QUESTION, "Where were we?", "他后来怎么样了？", "", " "])
def test_without_turns_everything_is_a_question_to_the_library(question):
    assert route_question(" \n", HISTORY) == ("database", " \n")
    assert route_question(question, []) == ("database", question)


@pytest.mark.parametrize("held_out", [False, True])
def test_scripted_conversations_are_routed_by_rules(held_out, record_property):
    right = {True: 0, False: 0}
    conversations = [one for one in scripted_conversations() if one.held_out is held_out]
    for conversation in conversations:
        assert 10 <= len(conversation.turns) <= 20
        for at, turn in enumerate(conversation.turns):
            said = as_messages([Turn(before.question, before.answer) for before in conversation.turns[:at]])
            right[route_question(turn.question, clean_history(said)[0])[0] == turn.source] += 1
    share = right[True] / sum(right.values())
    record_property("right", share)
    assert len(conversations) == 24
    assert share >= 0.85


@pytest.mark.parametrize("piece", ["what did we ", "你说", "remind me ", "it ", "的", "that, "])
def test_four_times_as_long_a_question_is_at_most_eight_times_the_work(piece):
    short, long = (
        work(lambda length=length: route_question((piece * length)[:length], HISTORY)) for length in (500, 2000)
    )
    assert long <= 8 * short
