"""Notes that a reader of books inserted into a text."""

import pytest

from shiguan.reading.text import read_text
from shiguan.text.notes import note_spans

TEXTS = [
    ("城[脚注：今托克马克。]，其年", "城，其年"),
    ("fell [Note: so the Mirror] in 757", "fell  in 757"),
    ("a [Note: see [12] and [Note: an inner] here] b", "a  b"),
    ("a [Note: never closed", "a [Note: never closed"),
    ("a [12] b ] c", "a [12] b ] c"),
    ("一[脚注：甲。]二[脚注：乙。]三", "一二三"),
    ("no notes", "no notes"),
]


@pytest.mark.parametrize(("text", "bare"), TEXTS)
def test_a_text_without_its_notes(text, bare):
    assert read_text(text).without_notes() == bare


def test_a_part_of_a_text_that_begins_in_a_note_has_what_follows_it():
    text = "一[脚注：甲乙。]二三"
    assert [read_text(text).without_notes(start, 10) for start in (0, 1, 4)] == ["一二", "二", "二"]


def test_nested_notes_are_one_span():
    text = "a [Note: x [Note: y] z] b"
    assert note_spans(text) == ((2, 23),)


def test_brackets_that_never_close_are_read_once():
    assert note_spans("[Note: " * 100_000) == ()
