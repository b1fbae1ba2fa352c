"""BM25 among the sentences at hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shiguan.answer.sentence_match import sentence_matches


def test_scores_are_those_worked_out_by_hand():
    # "salt" stands in one of two sentences, "tax" in both; lengths 2 and 1, usual 1.5.
    salt, tax = math.log(1 + 1.5 / 1.5), math.log(1 + 0.5 / 2.5)
    long, short = 1.2 * (0.25 + 0.75 * 2 / 1.5), 1.2 * (0.25 + 0.75 * 1 / 1.5)
    first = (salt + tax) * 2.2 / (1 + long)
    second = tax * 2.2 / (1 + short)
    assert sentence_matches(["salt", "tax"], [["salt", "tax"], ["tax"]]) == pytest.approx([1.0, second / first])


@pytest.mark.parametrize(("asked", "sentences"), [([], [["a"]]), (["b"], [["a"], []])])
def test_nothing_shared_scores_nothing(asked, sentences):
    assert sentence_matches(asked, sentences) == [0.0] * len(sentences)


def test_no_sentences_have_no_scores():
    assert sentence_matches(["a"], []) == []


WORDS = st.lists(st.sampled_from("abcde"), max_size=5)


@given(WORDS, st.lists(WORDS, max_size=4))
def test_the_best_sentence_has_one_and_none_has_more(asked, sentences):
    scores = sentence_matches(asked, sentences)
    assert all(0 <= score <= 1 for score in scores)
    assert not any(scores) or max(scores) == 1
