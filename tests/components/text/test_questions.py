import gzip
import json

import pytest

from shiguan.text.questions import (
    cleaned_question,
    fault_of_rewrite,
    has_shape,
    is_question,
    question_part,
    question_shapes,
    usable_queries,
)
from shiguan.text.terms import question_subject


@pytest.mark.parametrize(
    ("question", "shape"),
    [
        ("When did An Lushan rise?", "time"),
        ("In what year did the capital fall?", "time"),
        ("How many men did he have?", "number"),
        ("Who took Caizhou?", "person"),
        ("Which general took Caizhou?", "person"),
        ("Where did the court flee?", "place"),
        ("Why did the court flee?", "reason"),
        ("How did he take the town?", "manner"),
        ("Who was Guo Ziyi?", "definition"),
        ("What is the Salt Commission?", "definition"),
        ("安禄山何时起兵？", "time"),
        ("安史之乱是哪一年结束的？", "time"),
        ("安祿山有多少兵？", "number"),
        ("谁攻下了蔡州？", "person"),
        ("玄宗逃到了哪里？", "place"),
        ("玄宗为什么逃走？", "reason"),
        ("李愬如何攻下蔡州？", "manner"),
        ("郭子仪是谁？", "definition"),
        ("節度使是什麼？", "definition"),
        ("什么是节度使？", "definition"),
    ],
)
def test_question_asks_for_its_kind_of_answer(question, shape):
    assert question_shapes(question)[0] == shape


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
    assert has_shape(sentence, shape, question) is expected


def test_subject_is_the_question_without_its_frame():
    assert question_subject("郭子仪是谁？").split() == ["郭子仪", "？"]
    assert question_subject("什么？") == "什么？"


def test_a_name_spelt_out_is_not_invented():
    question = "How do companies adapt to it in the U.S.?"
    context = "What is the purpose of GDPR?"
    rewrite = "How do companies adapt to the General Data Protection Regulation in the United States?"
    assert fault_of_rewrite(rewrite, question, context) == ""
    assert "Swiss" in fault_of_rewrite("How do companies adapt to the Swiss GDPR?", question, context)


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("Who was he?", True),
        ("name the three garrisons", True),
        ("列出三镇", True),
        ("他是谁", True),
        ("He was a general.", False),
        ("他是将军。", False),
    ],
)
def test_questions_and_requests_are_told_from_statements(text, question):
    assert is_question(text) is question


def test_an_answer_after_the_question_is_cut_off():
    assert question_part("Who was he? A general.") == "Who was he?"
    assert question_part("“Who was he?”") == "“Who was he?”"
    assert question_part("A general.") == "A general."


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("1. x", "x"),
        ("- x", "x"),
        ("（二）甲", "甲"),
        ("Query 2: x", "x"),
        ("“x y”", "x y"),
        ("**x**", "x"),
        ("...", ""),
        ("", ""),
    ],
)
def test_what_models_put_around_a_question_is_taken_away(text, question):
    assert cleaned_question(text) == question


def test_queries_are_kept_once_and_in_number():
    assert usable_queries(["a b", "A  B!", "q", "c", "d"], "Q?", most=2) == ["a b", "c"]


def test_what_people_wrote_is_accepted(public_data, record_property):
    """Human rewrites are good replies; what names were missing stood in answers that the set does not hold."""
    with gzip.open(public_data / "conv_rewrite_cast" / "data.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    accepted = 0
    for row in rows:
        *before, last = [turn["text"] for turn in row["turns"]]
        accepted += not fault_of_rewrite(question_part(cleaned_question(row["rewrite"])), last, "\n".join(before))
    record_property("accepted", accepted / len(rows))
    assert accepted >= 0.94 * len(rows)
