"""What a conversation was about, in a few words."""

import pytest
from haystack.dataclasses import ChatMessage
from hypothesis import given
from hypothesis import strategies as st

from shiguan.text.follow_ups import salient_terms
from shiguan.text.terms import terms

SALT = [
    ChatMessage.from_user("Who ran the salt monopoly after Diwu Qi?"),
    ChatMessage.from_assistant("Liu Yan ran the salt monopoly until 780."),
]


def test_rare_words_of_the_person_come_before_common_ones():
    found = salient_terms("Who drove him to death?", SALT)
    assert {"salt", "monopoly", "Diwu", "Qi"} <= set(found)
    assert "after" not in found
    assert "Who" not in found


def test_words_that_the_question_has_are_not_repeated():
    assert "salt" not in salient_terms("Who taxed salts?", SALT)


def test_a_word_of_both_speakers_outweighs_a_rarer_one_of_the_assistant_alone():
    turns = [ChatMessage.from_user("Tell me of pepper."), ChatMessage.from_assistant("Pepper, and xylomancy.")]
    assert salient_terms("And then?", turns, limit=1) == ["pepper"]


def test_an_older_turn_counts_less():
    turns = [
        ChatMessage.from_user("Tell me about Suiyang."),
        ChatMessage.from_assistant("It fell."),
        ChatMessage.from_user("Tell me about Xiangzhou."),
        ChatMessage.from_assistant("It fell too."),
    ]
    assert salient_terms("When?", turns, limit=2) == ["Xiangzhou", "Suiyang"]


def test_chinese_gives_names_and_no_question_words():
    turns = [ChatMessage.from_user("田弘正死后，谁做了魏博节度使？"), ChatMessage.from_assistant("是田布。")]
    found = salient_terms("他怎么死的？", turns)
    assert any("田弘正" in word for word in found)
    assert not any("谁" in word for word in found)


@pytest.mark.parametrize("turns", [[], [ChatMessage.from_user("")], [ChatMessage.from_user("？！")]])
def test_nothing_to_say_gives_nothing(turns):
    assert salient_terms("When?", turns) == []


@given(st.text(), st.lists(st.text(), max_size=4), st.integers(0, 8))
def test_any_conversation_gives_few_new_words(question, texts, limit):
    found = salient_terms(question, [ChatMessage.from_user(text) for text in texts], limit)
    assert len(found) <= limit
    assert all(not set(terms(word)) <= set(terms(question)) for word in found)


def test_marks_of_citations_are_no_words():
    turns = [ChatMessage.from_assistant("It began in Pudding Lane [1] (2), in 1666 [3, 4].")]
    assert sorted(salient_terms("And why?", turns)) == ["1666", "Lane", "Pudding", "began"]
