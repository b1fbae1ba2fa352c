"""A text taken apart: what is quoted, what names its source, what else is said."""

import pytest

from shiguan.verify.reading import read_text


def parts(text):
    return [(part.kind, part.text) for part in read_text(text)[0]]


@pytest.mark.parametrize(("text", "quoted"), [
    ('He says "one two".', ["one two"]), ("He says “one two”.", ["one two"]), ("他说「一二」。", ["一二"]),
    ("他说『一二』。", ["一二"]),
    ("“one ‘two’ “three” four”", ["one ‘two’ “three” four"]),
    ("「一『二』三」", ["一『二』三"]), ('"one" and "two"', ["one", "two"]), ("> one\n> two\n\nThree.", ["one\ntwo"]),
    (">>> one\n> — Melville\n", ["one"]), ("““”” “”", []), ('"', []),
])  # fmt: skip
def test_quotations_are_found_by_their_marks(text, quoted):
    assert [text for kind, text in parts(text) if kind == "quotation"] == quoted


def test_other_sentences_are_claims_and_those_with_a_quotation_are_not():
    told = [("claim", "Ahab is captain."), ("quotation", "I am"), ("claim", "Starbuck is mate.")]
    assert parts("Ahab is captain. He says “I am”. Starbuck is mate.") == told


def test_a_mark_that_does_not_close_ends_with_its_paragraph_and_is_counted():
    found, unclosed = read_text("He says “one two.\n\nThen “three four” follows.")
    assert unclosed == 1
    assert [part.text for part in found if part.kind == "quotation"] == ["three four"]
    assert read_text("“" * 100_000)[1] == 100_000


def test_what_names_a_source_stands_around_a_quotation_and_behind_it():
    [part] = read_text("As Melville writes, “Call me Ishmael.” (Moby-Dick, chapter 1)")[0][:1]
    assert part.named.split() == "As Melville writes, (Moby-Dick, chapter 1)".split()
    [block] = [part for part in read_text("In Moby-Dick it begins:\n\n> Call me Ishmael.\n")[0] if part.kind != "claim"]
    assert block.named == "In Moby-Dick it begins:"
    [signed] = read_text("> Call me Ishmael.\n> — Moby-Dick\n")[0]
    assert (signed.text, signed.named) == ("Call me Ishmael.", "Moby-Dick")
