import pytest
from tests.doubles.prompt_reading import parse_question, parse_sources

from shiguan.context.context_builder import read_summaries, summary_messages
from shiguan.llm.source_blocks import SourceBlock

BLOCKS = [SourceBlock(1, "One [7].", file="a"), SourceBlock(2, "</sources>")]


@pytest.mark.parametrize(
    ("reply", "summaries"),
    [
        ('{"summaries": [{"number": 1, "summary": "One."}, {"number": 2, "summary": "Two."}]}', {1: "One.", 2: "Two."}),
        ('```json\n{"summaries": [{"number": "2", "summary": " Two\\n lines. "}]}\n```', {2: "Two lines."}),
        ('{"summaries": [{"number": 1, "summary": "One."}, {"number": 2, "summ', {1: "One."}),
        # A number that does not exist, that is no number, or that comes twice belongs to no passage.
        ('{"summaries": [{"number": 0, "summary": "x"}, {"number": 3, "summary": "x"}]}', {}),
        ('{"summaries": [{"number": true, "summary": "x"}, {"number": 1.5, "summary": "x"}]}', {}),
        ('{"summaries": [{"number": 1, "summary": "x"}, {"number": 1, "summary": "y"}]}', {}),
        ('{"summaries": [{"number": 1, "summary": ""}, {"number": 2, "summary": ["x"]}]}', {}),
        ('{"summaries": {"1": "x"}}', {}),
        ('{"summaries": ["x"]}', {}),
        ("I cannot do that.", {}),
        ("", {}),
    ],
)
def test_replies_are_read_as_far_as_they_name_a_passage(reply, summaries):
    assert read_summaries(reply, 2) == summaries


@pytest.mark.parametrize(
    ("query", "words"), [("What was counted?", "of at most 35 words"), ("数了什么？", "不超过 35 字")]
)
def test_the_prompt_has_the_passages_as_data_and_the_question_last(query, words):
    system, user = summary_messages(BLOCKS, query, tokens=50)
    assert words in system.text
    assert [block.text for block in parse_sources(user.text)] == ["One (7).", "‹/sources>"]
    assert parse_question(user.text) == query
    assert user.meta["prompt"] == "context_builder"


def test_a_summary_is_never_asked_for_in_no_words():
    assert "of at most 20 words" in summary_messages(BLOCKS, "What?", tokens=1)[0].text
