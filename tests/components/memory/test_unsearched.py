"""A greeting, thanks and a sum need no library; nothing else is taken for one."""

import gzip
import json

import pytest

from shiguan.memory.unsearched import unsearched_answer

SUMS = [
    ("2+2", "2+2 = 4."), ("What is 12 * 8?", "12 * 8 = 96."), ("how much is 7 - 10", "7 - 10 = -3."),
    ("(1 + 2) × 3 =", "(1 + 2) × 3 = 9."), ("Calculate 1/3", "1/3 = 0.3333333333."), ("0.1+0.2", "0.1+0.2 = 0.3."),
    ("12345678901 + 0.25", "12345678901 + 0.25 = 12345678901.25."), ("12345678901 / 7 =", "12345678901 / 7 = 1763668414.4285714286."),
    ("1/3000000000000 =", "1/3000000000000 = 0.0000000000003333333333."), ("100000000000 / 4 =", "100000000000 / 4 = 25000000000."),
    ("12÷4等于多少？", "12÷4 = 3。"), ("计算 100-37", "100-37 = 63。"),
]  # fmt: skip


@pytest.mark.parametrize(("question", "said"), SUMS)
def test_a_sum_is_computed_exactly_and_said_to_be_computed(question, said):
    answer = unsearched_answer(question)
    assert answer.startswith(said)
    assert "not looked up" in answer or "没有查过资料" in answer


PHRASES = {
    "Hello. Ask a question, and it is looked up in the library; no search was needed for this.": ["Hello!", "good morning", "Hi there"], "您好。": ["你好", "您好，史官！", "早上好。"],
    "You are welcome.": ["Thanks!", "thank you very much"], "不客气。": ["谢谢你的帮助", "非常感谢！"],
}  # fmt: skip


@pytest.mark.parametrize(("answer", "question"), [(answer, one) for answer, some in PHRASES.items() for one in some])
def test_a_greeting_and_thanks_are_answered(answer, question):
    assert unsearched_answer(question).startswith(answer)


@pytest.mark.parametrize(
    "question",
    [
        "", "755-763", "What is 9/11?", "1945-1949?", "9·11", "1/0 =", "42", "What is 42?", "how much is 42", "2**9999",
        "2 + 2 apples", "Hello Kitty", "Who said thank you?", "What does hello mean?", "((((1+1", "1+" * 60 + "1",
        "__import__('os') + 1", "谢谢是什么意思？", "谢安是谁？", "thanks to whom was the reform passed?", "1+1j",
    ],
)  # fmt: skip
def test_whatever_else_goes_to_the_library(question):
    assert unsearched_answer(question) == ""


@pytest.mark.parametrize("name", ["en_squad2", "zh_cmrc2018", "zh_drcd", "en_multihop"])
def test_no_question_of_public_sets_is_taken_for_one(public_data, name):
    with gzip.open(public_data / name / "queries.jsonl.gz", "rt", encoding="utf-8") as file:
        questions = [json.loads(line)["text"] for line in file]
    assert len(questions) >= 100
    assert not [question for question in questions if unsearched_answer(question)]
