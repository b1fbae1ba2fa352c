"""Where a question is answered from, by rules."""

import random
from pathlib import Path

import pytest
import yaml
from haystack.dataclasses import ChatMessage

from shiguan.conversations import Turn, as_messages
from shiguan.llm.prompts import clean_history
from shiguan.memory.conversation_reader import route_question

DATA = Path(__file__).resolve().parents[2] / "data"
HISTORY = [
    ChatMessage.from_user("How did the Great Fire of London start?"),
    ChatMessage.from_assistant("In a bakery in Pudding Lane, in 1666."),
]
QUESTION = "And why did it burn?"


@pytest.mark.parametrize(
    ("question", "source"),
    [
        ("Who was Guo Ziyi?", "database"), (QUESTION, "both"), ("You said it burned in 1672, is that right?", "both"),
        ("Where were we?", "history"), ("What did you say about the bakery?", "history"),
        ("郭子仪何时去世？", "database"), ("他后来怎么样了？", "both"), ("你刚才说是1672年，对吗？", "both"),
        ("我们刚才聊到哪了？", "history"), ("總結一下我們的對話。", "history"),
    ],
)  # fmt: skip
def test_each_kind_of_question_has_its_source(question, source):
    assert route_question(question, HISTORY)[0] == source


UNRELATED = {
    "en": [
        ChatMessage.from_user("Which plum blossoms at Fengtian in winter?"),
        ChatMessage.from_assistant("The red plum, says a gardener named Mu in 755 [1]."),
    ],
    "zh": [ChatMessage.from_user("奉天的梅花什么时候开？"), ChatMessage.from_assistant("据园丁穆氏记载，建中四年冬天开放[1]。")],
}  # fmt: skip


@pytest.mark.parametrize("language", UNRELATED)
def test_complete_questions_are_searched_unchanged_after_a_turn_about_something_else(language):
    asked = yaml.safe_load((DATA / "complete_questions.yml").read_text(encoding="utf-8"))
    questions = asked["en"] + asked["zh"]
    assert len(set(questions)) == 60
    assert [q for q in questions if route_question(q, UNRELATED[language]) != ("database", q)] == []


SUIYANG = [ChatMessage.from_user("Who defended Suiyang?"), ChatMessage.from_assistant("Zhang Xun held it in 757 [1].")]


def test_a_question_that_names_its_subject_takes_words_only_of_the_exchange_about_it():
    turns = SUIYANG + UNRELATED["en"]
    source, searched = route_question("What did Zhang Xun do there again?", turns)
    assert source == "both"
    assert sorted(searched.split("again? ")[1].split()) == ["757", "Suiyang", "defended", "held"]
    for question in ("What did Gao Lishi do there again?", "Who else met Gao Lishi?"):
        assert route_question(question, turns)[1] == question
    assert route_question("Who went to Suiyang, and what happened there?", turns)[0] == "database"
    chinese = [ChatMessage.from_user("谁守睢阳？"), ChatMessage.from_assistant("张巡[1]。"), *UNRELATED["zh"]]
    assert route_question("张巡在那里又做了什么？", chinese)[1] == "张巡在那里又做了什么？ 守睢阳"
    # One about another takes what was asked before.
    assert "defended" in route_question("What about Gao Lishi?", SUIYANG)[1]


@pytest.mark.parametrize(
    ("asked", "then", "searched"),
    [
        ("Where was the harpooneer Queequeg born?", "And Tashtego?", "Where was the harpooneer Tashtego born?"),
        ("When did An Lushan die?", "what about Guo Ziyi?", "When did Guo Ziyi die?"),
        ("薛仁贵是哪里人？", "那高仙芝呢？", "高仙芝是哪里人？"),
        ("长安有多少人口？", "吐蕃呢？", "吐蕃有多少人口？"),  # names that only the dictionary tells
        ("魏徵什么时候死的？", "那张公谨呢？", "张公谨什么时候死的？"),  # one that it does not have
    ],
)
def test_a_question_of_nothing_but_a_name_is_the_last_one_asked_of_another(asked, then, searched):
    turns = [ChatMessage.from_user(asked), ChatMessage.from_assistant("Kokovoko. 绛州龙门人[1]。")]
    assert route_question(then, turns) == ("both", searched)
    again = [*turns, ChatMessage.from_user("And Pip?" if asked.isascii() else "那狄仁杰呢？"), *turns[1:]]
    assert route_question(then, again) == ("both", searched)


@pytest.mark.parametrize(
    ("asked", "then"),
    [
        ("What did Starbuck say to Ahab?", "And Stubb?"),  # instead of whom?
        ("Where was Queequeg born?", "And his wife?"), ("Where was Queequeg born?", "And the result?"),
        ("薛仁贵是哪里人？", "那结果呢？"), ("薛仁贵是哪里人？", "那三年呢？"), ("薛仁贵是哪里人？", "他呢？"),
    ],
)  # fmt: skip
def test_any_other_follow_up_keeps_its_words_and_takes_some_of_the_conversation(asked, then):
    source, searched = route_question(then, [ChatMessage.from_user(asked), ChatMessage.from_assistant("Yes.")])
    assert (source, searched.startswith(f"{then} ")) == ("both", True)


@pytest.mark.parametrize("question", [QUESTION, "Where were we?", "他后来怎么样了？", "", " "])
def test_without_turns_everything_is_a_question_to_the_library(question):
    assert route_question(" \n", HISTORY) == ("database", " \n")
    assert route_question(question, []) == ("database", question)


def scripted_conversation(number, tables):
    """Put a conversation of ten to twenty turns together, each a question, its answer and its route."""
    chance = random.Random(755 + number)
    table, half = tables[("en", "zh")[number % 2]], number // 2 % 2
    first, second, third = chance.sample(table["topics"][half::2], 3)

    def phrase(kind, topic):
        return chance.choice(table[kind][half::2]).format(**topic)

    def block(topic, follows):
        chosen = [(chance.choice(topic["asks"]), "database")]
        chosen += [(one, "both") for one in chance.sample(topic["follows"], follows)]
        return [(*one.split(" | "), source) for one, source in chosen]

    turns = block(first, chance.randint(2, 4))
    turns[-1] = (turns[-1][0], f"{turns[-1][1]} {first['wrong']}", turns[-1][2])
    turns.append((phrase("doubts", first), first["truth"], "both"))
    turns += block(second, chance.randint(1, 3))
    turns.append((phrase("talk", second), first["name"], "history"))
    turns += block(third, chance.randint(1, 3))
    turns.append((phrase("returns", first), first["truth"], "both"))
    turns.append((phrase("talk", first), second["name"], "history"))
    return turns


@pytest.mark.parametrize("held_out", [0, 1])
def test_scripted_conversations_are_routed_by_rules(held_out, record_property):
    right = {True: 0, False: 0}
    tables = yaml.safe_load((DATA / "conversations.yml").read_text(encoding="utf-8"))
    for turns in (scripted_conversation(number, tables) for number in range(48) if number // 2 % 2 == held_out):
        assert 10 <= len(turns) <= 20
        for at, (question, _, source) in enumerate(turns):
            said = as_messages([Turn(asked, answer) for asked, answer, _ in turns[:at]])
            right[route_question(question, clean_history(said)[0])[0] == source] += 1
    share = right[True] / sum(right.values())
    record_property("right", share)
    assert share >= 0.85
