import gzip
import json

import pytest

from shiguan.text.questions import cleaned_question, fault_of_rewrite, is_question, question_part, usable_queries
from shiguan.text.terms import question_subject


def test_a_name_spelt_out_is_not_invented():
    question, context = "How do companies adapt to it in the U.S.?", "What is the purpose of GDPR?"
    rewrite = "How do companies adapt to the General Data Protection Regulation in the United States?"
    assert fault_of_rewrite(rewrite, question, context) == ""
    assert "Swiss" in fault_of_rewrite("How do companies adapt to the Swiss GDPR?", question, context)


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("Who was he?", True), ("name the three garrisons", True), ("列出三镇", True), ("他是谁", True),
        ("He was a general.", False), ("他是将军。", False),
    ],
)  # fmt: skip
def test_questions_and_requests_are_told_from_statements(text, question):
    assert is_question(text) is question


@pytest.mark.parametrize(
    ("part", "text", "question"),
    [
        (cleaned_question, "1. x", "x"), (cleaned_question, "- x", "x"), (cleaned_question, "（二）甲", "甲"),
        (cleaned_question, "Query 2: x", "x"), (cleaned_question, "“x y”", "x y"), (cleaned_question, "**x**", "x"),
        (cleaned_question, "...", ""), (cleaned_question, "", ""),
        (question_part, "Who was he? A general.", "Who was he?"), (question_part, "“Who was he?”", "“Who was he?”"),
        (question_part, "A general.", "A general."),
        (question_subject, "郭子仪是谁？", "郭子仪 ？"), (question_subject, "什么？", "什么？"),
    ],
)  # fmt: skip
def test_what_stands_around_a_question_is_taken_away(part, text, question):
    assert part(text).split() == question.split()


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
