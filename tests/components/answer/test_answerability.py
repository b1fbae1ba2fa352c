"""Whether passages answer a question at all."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiguan.answer.answer_sentences import answerability, candidates
from shiguan.answer.answerability import Grounds, log_odds
from shiguan.llm.source_blocks import SourceBlock

SALT = "In 758 the official Diwu Qi created a salt monopoly, and the state sold the salt at 110 cash a peck."
TRADE = "The merchants of the lower Yangzi bought salt from the monopoly and sold it on in the towns."
BIRDS = "The swallow flies south in autumn and comes back when the plum tree blossoms."


def judged(question, *texts):
    sources = [SourceBlock(number, text) for number, text in enumerate(texts, start=1)]
    return answerability(question, sources, max(candidates(question, sources), key=lambda one: one.score))


@pytest.mark.parametrize(
    ("question", "texts"),
    [
        ("Who created the salt monopoly in 758?", (SALT, TRADE, BIRDS)),
        ("谁在灵武即皇帝位？", ("七月甲子，太子李亨在灵武即皇帝位，是为肃宗。", "玄宗往成都去。", "燕子南飞。")),
    ],
)
def test_a_question_that_the_passages_answer_is_likelier_answered_than_not(question, texts):
    assert judged(question, *texts) > 0


@pytest.mark.parametrize(
    ("question", "texts"),
    [
        ("Who composed the opera about the phantom of the theatre in Paris?", (SALT, TRADE, BIRDS)),
        (
            "罗马皇帝奥古斯都的母亲是哪里人？",
            ("东辽为契丹人建立的君主制政权。", "帝国军队达成停火协议。", "燕子南飞。"),
        ),
    ],
)
def test_a_question_about_something_else_is_not(question, texts):
    assert judged(question, *texts) < 0


def test_a_question_without_words_is_not_answered():
    assert log_odds(Grounds([], [], 9.0, 1.0, frozenset(), frozenset(), [])) < 0


def test_each_word_that_no_passage_has_makes_an_answer_less_likely():
    asked = ["salt", "monopoli", "758", "offici"]
    values = [
        log_odds(Grounds(asked, [], 6.0, 0.5, frozenset(asked[:n]), frozenset(asked[:n]), [frozenset()]))
        for n in range(5)
    ]
    assert values == sorted(values)
    assert values[0] < values[4] - 4


TERMS = st.lists(st.sampled_from(["salt", "cat", "盐", "食盐", "758", "monopoli"]), unique=True, max_size=6)


@given(TERMS, TERMS, TERMS, TERMS, st.lists(TERMS, max_size=3), st.floats(-2, 14), st.floats(0, 1))
def test_any_grounds_give_a_finite_number(asked, names, near, passage, others, score, phrase):
    found = log_odds(
        Grounds(asked, names, score, phrase, frozenset(near), frozenset(passage), [frozenset(o) for o in others])
    )
    assert math.isfinite(found)
