from hypothesis import given
from hypothesis import strategies as st

from shiguan.text.passage_spans import cut_span

TEXT = "One two. Three four. Five six. Seven eight. Nine ten."


def words(text):
    return len(text.split())


def test_without_matches_the_beginning_is_kept():
    assert TEXT[slice(*cut_span(TEXT, [], 4, words))] == "One two. Three four."


def test_grows_around_the_match():
    at = TEXT.index("Five")
    assert TEXT[slice(*cut_span(TEXT, [(at, at + 4)], 6, words))] == "Three four. Five six. Seven eight."


def test_reaches_for_the_second_match_first():
    matches = [(0, 3), (TEXT.index("Five"), TEXT.index("Five") + 4)]
    assert TEXT[slice(*cut_span(TEXT, matches, 6, words))] == "One two. Three four. Five six."


def test_a_match_of_several_sentences_is_kept_whole():
    assert TEXT[slice(*cut_span(TEXT, [(9, 43)], 6, words))] == "Three four. Five six. Seven eight."


def test_one_long_sentence_is_cut_hard():
    start, end = cut_span("a" * 1000, [], 10, len)
    assert (start, end) == (0, 10)


@given(st.text(), st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=3), st.integers(1, 30))
def test_any_text_is_cut_within_its_bounds_and_budget(text, matches, budget):
    start, end = cut_span(text, matches, budget, len)
    assert 0 <= start <= end <= len(text)
    assert end - start <= budget
