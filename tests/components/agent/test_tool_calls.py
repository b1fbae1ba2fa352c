"""What a model's reply asks for, however it is written."""

import pytest
from haystack.dataclasses import ChatMessage, ToolCall

from shiguan.agent.tool_calls import read_step

CALL = '{"tool": "search_library", "arguments": {"query": "wall"}}'


def step(text="", calls=None):
    return read_step(ChatMessage.from_assistant(text or None, tool_calls=calls), 3)


@pytest.mark.parametrize("text", [
    CALL, f"```json\n{CALL}\n```", f"<think>I should search.</think>\n{CALL}",
    f"Thought: something is missing.\nAction: {CALL}",
    f"思考：还缺墙的资料。\n行动：{CALL}",
    '{"name": "search_library", "parameters": {"query": "wall"}}',
    '{"action": "search_library", "action_input": {"query": "wall"}}',
    '{"tool": "search_library", "arguments": {"query": "wall",}}',
])  # fmt: skip
def test_a_call_in_text_is_read(text):
    read = step(text)
    assert read.calls == (ToolCall("search_library", {"query": "wall"}),)
    assert read.in_text


@pytest.mark.parametrize(
    "text",
    [
        "The wall was pulled down in 904. [1]", f"A source says {CALL}",
        f"{CALL}\nThe wall was pulled down in 904. [1]", '{"result": 7}', "{", "He wrote {sic}",
    ],
)  # fmt: skip
def test_everything_else_is_an_answer(text):
    read = step(text)
    assert (read.text, read.calls) == (text, ())


def test_an_answer_in_json_is_taken_out_of_it():
    assert step('{"answer": "In 904. [1]"}').text == "In 904. [1]"
    assert step('{"final_answer": "In 904. [1]"}').text == "In 904. [1]"


def test_calls_of_the_api_get_ids_and_names_that_it_takes_back():
    read = step("Let me see. [1]", [ToolCall("search library!", {"query": "x"}, id=None), ToolCall("", {}, id="a")])
    assert [(call.tool_name, call.id) for call in read.calls] == [("search_library_", "call_3_0"), ("_", "call_3_1")]
    assert not read.in_text
    assert read.message.text == "Let me see. (1)"


def test_of_a_hundred_calls_twenty_are_looked_at():
    assert len(step(calls=[ToolCall("x", {}, id=str(number)) for number in range(100)]).calls) == 20
