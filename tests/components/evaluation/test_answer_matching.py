"""Whether an answer holds a right one, by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiguan.evaluation.answer_metrics import answer_tokens, contains_answer, without_marks


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The Governor's salt, 110 cash!", ["governors", "salt", "110", "cash"]),
        ("天寶十四載，An Lushan", ["天", "宝", "十", "四", "载", "lushan"]),
        ("ＡＢ　12", ["ab", "12"]),
        ("", []),
    ],
)
def test_tokens_are_characters_of_chinese_and_words_of_other_scripts(text, tokens):
    assert answer_tokens(text) == tokens


@pytest.mark.parametrize(
    ("answer", "right", "value"),
    [
        ("It was sold at 110 cash a peck.", ["110 cash"], 1.0),
        ("It was sold at 1100 cash.", ["110"], 0.0),
        ("杜甫写下悲陳陶", ["悲陈陶"], 1.0),
        ("anything", ["。"], 0.0),
    ],
)
def test_an_answer_in_a_sentence_is_found_as_whole_tokens(answer, right, value):
    assert contains_answer(answer, right) == value


def test_citation_marks_are_no_words():
    assert without_marks("Li Su took Caizhou [1][2].") == "Li Su took Caizhou."


@given(st.text(min_size=1))
def test_every_answer_with_a_token_holds_itself(text):
    assert contains_answer(text, [text]) == bool(answer_tokens(text))
