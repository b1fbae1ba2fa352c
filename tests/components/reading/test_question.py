"""What a question asks for, and what answers it."""

import pytest

from shiguan.reading.question import read_question


@pytest.mark.parametrize(
    ("question", "shape"),
    [
        ("When did An Lushan rise?", "time"), ("In what year did the capital fall?", "time"),
        ("How many men did he have?", "number"), ("Who took Caizhou?", "person"),
        ("Which general took Caizhou?", "person"), ("Where did the court flee?", "place"),
        ("Why did the court flee?", "reason"), ("How did he take the town?", "manner"),
        ("Who was Guo Ziyi?", "definition"), ("What is the Salt Commission?", "definition"),
        ("安禄山何时起兵？", "time"), ("安史之乱是哪一年结束的？", "time"), ("安祿山有多少兵？", "number"),
        ("谁攻下了蔡州？", "person"), ("玄宗逃到了哪里？", "place"), ("玄宗为什么逃走？", "reason"),
        ("李愬如何攻下蔡州？", "manner"), ("郭子仪是谁？", "definition"), ("節度使是什麼？", "definition"),
        ("什么是节度使？", "definition"),
    ],
)  # fmt: skip
def test_question_asks_for_its_kind_of_answer(question, shape):
    assert read_question(question).shapes[0] == shape


@pytest.mark.parametrize(
    ("sentence", "shape", "question", "expected"),
    [
        ("He rose in 755.", "time", "When did he rise?", True),
        ("He rose in Fanyang.", "time", "When did he rise?", False),
        ("In 755 he rose.", "time", "When in 755 did he rise?", False),
        ("天寶十四載，安祿山反。", "time", "安禄山何时反？", True),
        ("武德元年，封廬江王。", "time", "他是哪一年封王的？", True),
        ("He had 150,000 men.", "number", "How many men?", True),
        ("The town fell to Li Su.", "person", "Who took the town?", True),
        ("The town fell.", "person", "Who took the town?", False),
        ("They fled because grain was short.", "reason", "Why?", True),
        ("因糧盡而退。", "reason", "为什么退兵？", True),
        ("They fled.", "reason", "Why?", False),
    ],
)
def test_sentence_has_the_kind_of_answer_or_not(sentence, shape, question, expected):
    assert read_question(question).answered_by(sentence, shape) is expected
