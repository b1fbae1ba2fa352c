from hypothesis import given
from hypothesis import strategies as st

from shiguan.text.passage_spans import window_spans, with_gaps

TEXT = "One two. Three four. Five six. Seven eight. Nine ten."


def words(texts):
    # A gap costs one by its mark, and one more by its line.
    return [len(text.split()) for text in texts]


def shown(spans):
    return with_gaps(TEXT, spans)


def test_without_matches_the_window_is_the_beginning():
    assert shown(window_spans(TEXT, [], 6, words)) == "One two. Three four.\n…"


def test_the_window_grows_behind_the_match_first():
    at = TEXT.index("Five")
    # Six words and one gap: reaching the end costs no more than the gap that it saves.
    assert shown(window_spans(TEXT, [(at, at + 4)], 8, words)) == "…\nFive six. Seven eight. Nine ten."
    assert shown(window_spans(TEXT, [(at, at + 4)], 6, words)) == "…\nFive six.\n…"
    assert shown(window_spans(TEXT, [(at, at + 4)], 100, words)) == TEXT


def test_every_match_gets_a_window_while_it_fits():
    ends = [(0, 3), (len(TEXT) - 4, len(TEXT))]
    assert shown(window_spans(TEXT, ends, 6, words)) == "One two.\n…\nNine ten."
    assert shown(window_spans(TEXT, ends, 8, words)) == "One two. Three four.\n…\nNine ten."
    assert shown(window_spans(TEXT, ends, 4, words)) == "One two.\n…"


def test_a_text_without_sentences_has_no_spans():
    assert window_spans("", [], 5, words) == window_spans(" ", [(0, 1)], 5, words) == []
    assert with_gaps("", []) == ""


@given(
    st.text(alphabet="ab 。.!\n"),
    st.lists(st.tuples(st.integers(-3, 50), st.integers(-3, 50)), max_size=3),
    st.integers(1, 30),
)
def test_any_text_keeps_ordered_spans_within_its_bounds_and_budget(text, matches, budget):
    spans = window_spans(text, matches, budget, lambda texts: [len(part) for part in texts])
    edges = [edge for span in spans for edge in span]
    assert edges == sorted(edges)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    if len(spans) > 1:
        assert sum(end - start for start, end in spans) <= budget + text.count(" ") + text.count("\n")
