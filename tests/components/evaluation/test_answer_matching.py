"""Exact match and token F1 by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiguan.evaluation.answer_metrics import answer_tokens, contains_answer, exact_match, token_f1, without_marks


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
        ("the Li Su!", ["Guo Ziyi", "Li Su"], 1.0),
        ("安祿山", ["安禄山"], 1.0),
        ("Li Su rose", ["Li Su"], 0.0),
        ("", ["x"], 0.0),
    ],
)
def test_exact_match_takes_the_nearest_right_answer(answer, right, value):
    assert exact_match(answer, right) == value


@pytest.mark.parametrize(
    ("answer", "right", "value"),
    [
        ("in July 756, Chang'an", "July 756 AD", 4 / 7),  # 2 of 4 tokens shared, 2 of 3 wanted: P .5, R 2/3
        ("官军死伤四万余人", "四万余人", 2 / 3),  # by characters: P 4/8, R 1
        ("salt salt", "salt", 2 / 3),  # a repeated word counts once for each time it is wanted
    ],
)
def test_f1_by_hand(answer, right, value):
    assert token_f1(answer, [right]) == pytest.approx(value)


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
def test_every_answer_equals_itself(text):
    assert token_f1(text, [text]) == 1
    assert exact_match(text, [text]) == 1
