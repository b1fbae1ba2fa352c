import time

import pytest
from haystack import Document
from hypothesis import given
from hypothesis import strategies as st

from shiguan.ingest.markdown_conventions import read_markdown
from shiguan.ingest.markdown_section_splitter import MarkdownSectionSplitter


def cut(text, **meta):
    return MarkdownSectionSplitter().run([Document(content=text, meta=meta)])["documents"]


def sections(text):
    return [(d.meta.get("section"), d.content) for d in cut(text)]


def test_headings_become_the_sections_path_and_leave_the_text():
    text = "Preface.\n\n# Tang\n\nIntro.\n\n## Rebellion\nIn 755.\n\n### North\nFanyang.\n\n## After\nGovernors.\n\n# Song\nLater.\n"
    assert sections(text) == [
        ([], "Preface."),
        (["Tang"], "Intro."),
        (["Tang", "Rebellion"], "In 755."),
        (["Tang", "Rebellion", "North"], "Fanyang."),
        (["Tang", "After"], "Governors."),
        (["Song"], "Later."),
    ]


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("# Title #", "Title"),
        ("   ## *Old* **Tang** `x`", "Old Tang x"),
        ("# [Link](http://a.b) end", "Link end"),
        ("#\tTab", "Tab"),
        ("# 卷一", "卷一"),
    ],
)
def test_heading_lines_are_reduced_to_their_words(line, title):
    assert sections(f"{line}\nText.") == [([title], "Text.")]


@pytest.mark.parametrize("line", ["#hashtag", "####### seven", "    # indented code", "a # b"])
def test_lines_that_are_no_headings_stay_text(line):
    assert sections(f"{line}\nText.") == [(None, f"{line}\nText.")]


def test_underlined_headings_count_and_rules_and_tables_do_not():
    text = "Tang\n====\n\nText.\n\nSub\n---\n\nMore.\n\nTwo lines\nof text\n---\nRest.\n\n---\n\n| a |\n---\n"
    assert sections(text) == [
        (["Tang"], "Text."),
        (["Tang", "Sub"], "More.\n\nTwo lines\nof text\n---\nRest.\n\n---\n\n| a |\n---"),
    ]


def test_headings_in_code_are_none():
    text = "# A\n```python\n# comment\n~~~\n```\n~~~~\n# b\n```\n~~~~\nText."
    assert sections(text) == [(["A"], text[4:])]


def test_front_matter_is_left_out():
    assert sections("---\ntitle: x\n---\nText.") == [([], "Text.")]


def test_a_text_without_headings_passes_unchanged():
    document = Document(content="Only text.\n", meta={"a": 1})
    assert MarkdownSectionSplitter().run([document])["documents"] == [document]


def test_the_first_heading_is_the_title_where_there_is_none():
    assert cut("# Tang\nText.")[0].meta["title"] == "Tang"
    assert cut("# Tang\nText.", title="Given")[0].meta["title"] == "Given"


def test_sections_know_the_page_they_begin_on():
    documents = cut("# A\nOne.\fTwo.\f\n# B\nThree.")
    assert [d.meta["anchor"]["page"] for d in documents] == [1, 3]


def test_line_ends_of_other_systems_are_kept_in_the_text():
    assert sections("# A\r\n\r\nOne.\r\nTwo.\r\n") == [(["A"], "One.\r\nTwo.")]


LINES = st.sampled_from(["# A", "## B", "text", "", "---", "===", "```", "    code", "- item", "\f", "#### D #", "---"])


@given(st.lists(LINES, max_size=20).map("\n".join))
def test_sections_are_exact_slices_in_order(text):
    at = 0
    shown = read_markdown(text).text
    for document in cut(text):
        start = document.meta.get("start", 0)
        assert shown[start : start + len(document.content)] == document.content
        assert start >= at
        at = start + len(document.content)


def test_a_line_of_five_million_characters_is_no_burden():
    assert len(cut("# " + "a  #" * 1_250_000 + "\n" + "-" * 1_000_000)) == 1


NOTED = """---
title: Journey
author: [Ann Author, {name: Bo Writer}]
date: 2026-09-18
...
# West

He left[^a], they say[^long], and `x[^a]` stays.[^a] So^[Own note.] it is[^none].

[^a]: A manuscript.

[^long]: First part
of it.

    Second part.

[^unused]: Nobody asks.
"""


def test_notes_stand_at_their_first_marks_and_front_matter_names_the_work():
    west, *_ = cut(NOTED)
    text = (
        "He left [Note: A manuscript.], they say [Note: First part of it. Second part.], and `x[^a]` stays. "
        "So [Note: Own note.] it is[^none].\n\n[^unused]: Nobody asks."
    )
    assert west.content == text
    assert [text[note["start"] : note["end"]] for note in west.meta["notes"]] == [
        "[Note: A manuscript.]", "[Note: First part of it. Second part.]", "[Note: Own note.]",
    ]  # fmt: skip
    assert (west.meta["title"], west.meta["section"]) == ("Journey", ["West"])
    assert west.meta["work"] == {"title": "Journey", "author": ["Ann Author", "Bo Writer"], "year": "2026"}


@pytest.mark.parametrize(
    ("written", "title", "text"),
    [
        ("+++\ntitle = 'A'\nauthor = 'B'\n+++\nText.", "A", "Text."),
        ("---\ntitle: A\n---\nText.", "A", "Text."),
        ("---\ntitle: [A\n---\nText.", "", "Text."),
        ("---\na: &a [x, x]\ntitle: [*a, *a]\n---\nText.", "", "Text."),
        ("---\n" + "title: " + "[" * 5000 + "\n---\nText.", "", "Text."),
        ("---\nBetween rules.\n\n---\nText.", "", "---\nBetween rules.\n\n---\nText."),
        ("---\nNever closed.", "", "---\nNever closed."),
    ],
)
def test_front_matter_is_no_text_and_harmless(written, title, text):
    documents = cut(written)
    assert "\n".join(document.content for document in documents) == text
    assert documents[0].meta.get("title", "") == title


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("Seen. <!-- hidden --> Seen too.", "Seen.  Seen too."),
        ("Seen.\n\n<!-- hidden\n# no heading\n-->\n\nToo.", "Seen.\n\n\nToo."),
        ("Seen. <!-- never closed", "Seen. <!-- never closed"),
        ("A [link][r].\n\n[r]: http://example.org 'Ref'", "A [link][r]."),
        ("[Aside]: this is text.", "[Aside]: this is text."),
        ("See [it](a.md){.external}, `x`{.py} and {this} set.", "See [it](a.md), `x` and {this} set."),
        ("```\n<!-- code -->\n[r]: x\n# {#a}\n```", "```\n<!-- code -->\n[r]: x\n# {#a}\n```"),
    ],
)
def test_what_a_reader_does_not_see_is_left_out(written, read):
    assert [document.content for document in cut(written)] == [read]


def test_a_heading_has_no_attributes():
    assert sections("# Set up {#setup .unnumbered}\nText.\n\nMore {#more}\n---\nText.") == [
        (["Set up"], "Text."), (["Set up", "More"], "Text."),
    ]  # fmt: skip


@pytest.mark.parametrize("piece", ["[^a]", "`", "``x", "<!--", "{#a ", "[a", "^[", "[^a]: ", "  ", "[^a]: x\n\n"])
def test_time_grows_with_the_length_of_the_text(piece):
    seconds = []
    for count in (20_000, 160_000):
        started = time.thread_time()
        read_markdown(piece * count)
        seconds.append(time.thread_time() - started + 0.01)
    assert seconds[1] < 24 * seconds[0]  # 64 where it grows with the square
