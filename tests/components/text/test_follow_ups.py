"""What a question lacks, and the words that are searched with it."""

import gzip
import json

import pytest
from haystack.dataclasses import ChatMessage
from hypothesis import given
from hypothesis import strategies as st

from shiguan.text.follow_ups import needs_context, salient_terms
from shiguan.text.terms import terms

LEANS = [
    "Is it treatable?", "And his sons?", "What about the second one?", "What are the symptoms?", "Who else?", "Why?",
    "Tell me more.", "How did they differ?", "What happened after that?", "Who received the first one?",
    "What is its main criticism?", "What are their key characteristics?", "What did he do there?", "他是何时起兵的？",
    "那他的儿子呢？", "为什么？", "后来呢？", "此战的结果如何？", "该城在哪里？", "还有哪些？", "原因是什么？",
    "其部下是谁？", "这场战争持续了多久？", "上述两人有何不同？",
]  # fmt: skip
STANDS = [
    "What is throat cancer?", "Tell me about lung cancer.", "Who was An Lushan?",
    "Why did An Lushan rebel against Emperor Xuanzong?", "When did Guo Ziyi lose his command?",
    "郭子仪是哪一年去世的？", "安禄山在哪里起兵？", "比较租庸调制与两税法的优劣。", "唐玄宗其实知道安禄山要反吗？",
]  # fmt: skip


@pytest.mark.parametrize("question", LEANS)
def test_a_question_that_leans_on_the_conversation(question):
    assert needs_context(question)
    assert not needs_context(question, has_history=False)


@pytest.mark.parametrize("question", [*STANDS, "", " \n"])
def test_a_question_that_stands_alone(question):
    assert not needs_context(question)


def test_most_follow_ups_of_real_conversations_are_noticed(public_data, record_property):
    """What leans by its meaning alone ("What is the role of serotonin?") no rule can know: such ones are the rest."""
    with gzip.open(public_data / "conv_rewrite_cast" / "data.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    said = [needs_context(row["turns"][-1]["text"], has_history=len(row["turns"]) > 1) for row in rows]
    needed = [row["needs_rewrite"] for row in rows]
    both = sum(a and b for a, b in zip(said, needed, strict=True))
    recall, precision = both / sum(needed), both / sum(said)
    spared = sum(not a and not b for a, b in zip(said, needed, strict=True)) / (len(rows) - sum(needed))
    for name, value in (("recall", recall), ("precision", precision), ("spared", spared)):
        record_property(name, value)
    assert recall >= 0.83
    assert precision >= 0.95
    assert spared >= 0.74


@pytest.mark.parametrize("name", ["zh_cmrc2018", "zh_drcd", "en_squad2", "en_multihop"])
def test_complete_questions_are_left_alone(public_data, record_property, name):
    """Words of an earlier turn in the search of a question about something else find the wrong passages."""
    with gzip.open(public_data / name / "queries.jsonl.gz", "rt", encoding="utf-8") as lines:
        questions = [json.loads(line)["text"] for line in lines]
    leaning = sum(map(needs_context, questions)) / len(questions)
    record_property("leaning", leaning)
    assert leaning <= 0.05


SALT = [
    ChatMessage.from_user("Who ran the salt monopoly after Diwu Qi?"),
    ChatMessage.from_assistant("Liu Yan ran the salt monopoly until 780."),
]


def test_rare_words_of_the_person_come_before_common_ones():
    found = salient_terms("Who drove him to death?", SALT)
    assert {"salt", "monopoly", "Diwu", "Qi"} <= set(found)
    assert "after" not in found
    assert "Who" not in found
    assert "salt" not in salient_terms("Who taxed salts?", SALT)  # which the question has


@pytest.mark.parametrize(
    ("said", "found"),
    [
        # A word of both speakers outweighs a rarer one of the assistant alone, and an older turn counts less.
        (["Tell me of pepper.", "Pepper, and xylomancy."], ["pepper", "xylomancy", "Tell"]),
        (
            ["Tell me about Suiyang.", "It fell.", "Tell me about Xiangzhou.", "It fell too."],
            ["Xiangzhou", "Suiyang", "Tell", "fell"],
        ),
        (["", "It began in Pudding Lane [1] (2), in 1666 [3, 4]."], ["1666", "Pudding", "Lane", "began"]),
        ([], []), ([""], []), (["？！"], []),
    ],
)  # fmt: skip
def test_salient_words_of_what_was_said(said, found):
    roles = (ChatMessage.from_user, ChatMessage.from_assistant)
    turns = [roles[at % 2](text) for at, text in enumerate(said)]
    assert salient_terms("And when?", turns) == found


def test_chinese_gives_names_and_no_question_words():
    turns = [ChatMessage.from_user("田弘正死后，谁做了魏博节度使？"), ChatMessage.from_assistant("是田布。")]
    found = salient_terms("他怎么死的？", turns)
    assert any("田弘正" in word for word in found)
    assert not any("谁" in word for word in found)


@given(st.text(), st.lists(st.text(), max_size=4))
def test_any_conversation_gives_few_new_words(question, texts):
    found = salient_terms(question, [ChatMessage.from_user(text) for text in texts])
    assert len(found) <= 6
    assert all(not set(terms(word)) <= set(terms(question)) for word in found)
