"""Marks for an answer: good and broken replies, the local stand-in, and the threshold."""

import asyncio
import json

import pytest
from haystack import Document
from haystack.dataclasses import ChatMessage

from shiguan.grading.answer_grader import AnswerGrader, check_answer
from shiguan.llm.configured_chat_generator import ConfiguredChatGenerator

QUESTION = "When did An Lushan rise?"
DOCUMENTS = [Document(content="An Lushan rose against the Tang at Fanyang in 755.", meta={"number": 1})]
REPLY = "An Lushan rose against the Tang at Fanyang in 755 [1]."
MARKS = {"support": 8, "relevance": 9, "completeness": 7, "clarity": 8}


def graded(chat_generator, reply=REPLY):
    answer = check_answer(ChatMessage.from_assistant(reply), DOCUMENTS, QUESTION, None)
    return asyncio.run(AnswerGrader(chat_generator).graded(answer))


def test_the_marks_and_their_average_come_from_one_call(stand_in_llm, judge):
    stand_in_llm.default = json.dumps({**MARKS, "feedback": "Say where.", "suggestions": ["Name Fanyang.", ""]})
    answer = graded(judge)
    assert answer.grade == MARKS | {
        "judge": "llm", "judged": 0, "claims": 1, "passed": True, "answers": True, "overall": 8.0, "missing": "",
        "feedback": "Say where.", "suggestions": ["Name Fanyang."],
    }  # fmt: skip
    assert answer.llm_calls == stand_in_llm.calls == 1


@pytest.mark.parametrize(("marks", "passed"), [
    ({"relevance": 7, "support": 7, "completeness": 7, "clarity": 7}, True),
    ({"relevance": 7, "support": 7, "completeness": 7, "clarity": 6}, False),
    ({"relevance": 10, "support": 3, "completeness": 10, "clarity": 10}, False),
    ({"relevance": "9/10", "support": 7, "completeness": 7, "clarity": 7}, True),
])  # fmt: skip
def test_an_answer_passes_from_the_threshold_on_unless_one_mark_is_far_below(stand_in_llm, judge, marks, passed):
    stand_in_llm.default = json.dumps(marks)
    grade = graded(judge).grade
    assert (grade["judge"], grade["passed"]) == ("llm", passed)


@pytest.mark.parametrize("reply", ["Very good!", "{}", json.dumps({**MARKS, "support": 11}), '{"relevance": 9}'])
def test_a_broken_reply_gives_local_marks_and_a_warning(stand_in_llm, judge, reply):
    stand_in_llm.default = reply
    answer = graded(judge)
    assert (answer.grade["judge"], answer.grade["passed"]) == ("local", True)
    assert len(answer.warnings) == 1


def test_without_an_endpoint_the_marks_are_local():
    """The answer has the rarer of the question's two words, "Lushan", and not "rise"; it stands in the passage."""
    answer = graded(ConfiguredChatGenerator())
    found = answer.grade
    assert (found["judge"], found["judged"], found["passed"], found["answers"]) == ("local", 0, True, True)
    assert (found["support"], found["clarity"]) == (10.0, 10.0)
    assert 5.0 < found["relevance"] == found["completeness"] < 10.0
    assert answer.warnings == ("No LLM is configured: the answer was checked locally.",)


def test_an_answer_without_the_kind_of_thing_that_is_asked_for_is_half_as_relevant():
    with_time, without = graded(None).grade, graded(None, "An Lushan rose [1].").grade
    assert without["relevance"] == pytest.approx(with_time["relevance"] / 2, abs=0.1)


def test_no_answer_gets_no_marks_and_no_call(stand_in_llm, judge):
    assert graded(judge, "").grade["overall"] == 0.0
    assert stand_in_llm.calls == 0
