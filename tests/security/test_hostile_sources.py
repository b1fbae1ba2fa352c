"""No file that somebody uploads holds or fills the process that answers questions."""

from functools import cache

import pytest
from haystack.dataclasses import ByteStream
from tests.doubles.epub_builder import chapter
from tests.doubles.processor_time import assert_grows_with_length
from tests.security.hostile_sources import TEXT, hostile_sources, page_of_notes

from shiguan.ingest import conversion
from shiguan.ingest.epub.notes import BookFile, NoteIndex
from shiguan.ingest.epub.trees import parse_xhtml

# 400,000 elements and 20,000 pages take most of their limit on a quiet machine: a busy one may end them.
ENDED_OR_READ = {
    "elements.epub": "reading it took more than 8 seconds of the processor",
    "many_kids.pdf": "reading it took more than 9 seconds of the processor",
}
# These have no text that anybody could read, or the reader refuses them.
REFUSED = {"kids_in_circles.pdf": "no text was found in it"}


@cache
def sources():
    """Made where they are asked for: they take seconds, which every other test would wait for, too."""
    return dict(hostile_sources())


def texts(reading, name):
    answer = reading.convert(ByteStream(sources()[name], meta={"file_name": name}), lambda: None)
    return "\n".join(content for _, content, _ in answer["documents"]), [entry["cause"] for entry in answer["skipped"]]


@pytest.mark.parametrize(
    "name", ["attributes.epub", "notes_in_a_sentence.epub", "spans.docx", "styles_in_a_circle.docx", "merged_rows.docx"]
)
def test_what_took_time_squared_is_read_in_a_moment(reading, name, monkeypatch):
    monkeypatch.setattr(conversion, "_SECONDS", 4)
    text, causes = texts(reading, name)
    assert (TEXT in text, causes) == (True, [])


def test_notes_are_placed_in_time_that_grows_with_their_number():
    def page(count):
        root, _ = parse_xhtml(chapter(page_of_notes(count)).encode())
        return BookFile("page.xhtml", 0, root, cfi="/6/2!")

    def index(file):
        return NoteIndex([file], lambda _, href: ("page.xhtml", href[1:]))

    assert len(index(page(4_000)).notes) == 4_000
    assert_grows_with_length(index, page, 4_000)


@pytest.mark.slow
def test_each_ends_within_its_limits_with_its_text_or_a_reason(reading):
    wrong = {}
    for name, content in sources().items():
        assert conversion._SECONDS + conversion._SECONDS_PER_MB * len(content) / 1e6 <= 20, name
        text, causes = texts(reading, name)
        expected = REFUSED.get(name)
        if causes and name in ENDED_OR_READ:
            expected = ENDED_OR_READ[name]
        fine = (text, causes) == ("", [expected]) if expected else TEXT in text
        if not fine:
            wrong[name] = (text[:200], causes)
    assert wrong == {}
