from copy import deepcopy
from dataclasses import replace

import pytest
from haystack import Document
from hypothesis import given
from hypothesis import strategies as st

from shiguan.reading.text import read_text
from shiguan.text.passages import SharedDocument, cut_span, similarity, without_text

TEXT = "One two. Three four. Five six. Seven eight. Nine ten."


def number_of_words(text):
    return len(text.split())


def test_grows_around_the_match():
    at = TEXT.index("Five")
    assert TEXT[slice(*cut_span(TEXT, [(at, at + 4)], 6, number_of_words))] == "Three four. Five six. Seven eight."


def test_reaches_for_the_second_match_first():
    matches = [(0, 3), (TEXT.index("Five"), TEXT.index("Five") + 4)]
    assert TEXT[slice(*cut_span(TEXT, matches, 6, number_of_words))] == "One two. Three four. Five six."


def test_one_long_sentence_is_cut_hard():
    assert cut_span("a" * 1000, [], 10, len) == (0, 10)


@given(st.text(), st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=3), st.integers(1, 30))
def test_any_text_is_cut_within_its_bounds_and_budget(text, matches, budget):
    start, end = cut_span(text, matches, budget, len)
    assert 0 <= start <= end <= len(text)
    assert end - start <= budget


def test_a_copy_shares_what_is_large_and_owns_its_meta():
    document = SharedDocument(id="a", content="x", meta={"blocks": [{}]}, embedding=[0.5])
    twin = deepcopy(document)
    assert twin == document
    assert twin.embedding is document.embedding
    assert twin.meta["blocks"] is document.meta["blocks"]
    twin.meta["own"] = 1
    assert "own" not in document.meta


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("安祿山反於范陽", "安禄山反于范阳", 1.0),
        ("The Old General", "the old general!", 1.0),
        # "a b c d" has the runs abc, bcd; "a b c e" has abc, bce: one shared of three.
        ("alpha beta gamma delta", "alpha beta gamma omega", 1 / 3),
        ("！！", "！！", 1.0),  # texts without terms compare by their characters
        ("！！", "？？", 0.0),
    ],
)
def test_similarity_is_shared_runs_by_all_runs(one, other, expected):
    assert similarity(read_text(one).shingles, read_text(other).shingles) == expected


def test_a_joiner_changes_the_score_of_a_document_without_text_and_of_one_with_it():
    [hit] = without_text([("a", 1.0, {"parent_id": "b"})])
    assert replace(hit, score=2.0) == SharedDocument(id="a", score=2.0, meta={"parent_id": "b"})
    assert type(replace(hit, score=2.0)) is SharedDocument
    read = SharedDocument(content="x", meta={"parent_id": "b"})
    assert replace(read, score=2.0).to_dict() == read.to_dict() | {"score": 2.0}
    assert read.id == Document(content="x", meta={"parent_id": "b"}).id
