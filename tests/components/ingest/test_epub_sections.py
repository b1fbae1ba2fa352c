"""Section paths from tables of contents and headings, case by case."""

from shiguan.ingest.epub.package import Entry, Target
from shiguan.ingest.epub.sections import SectionTracker


def entry(label, href="", fragment="", parent=None):
    return Entry(label, Target(href, fragment), parent=parent)


def test_fuller_of_label_and_heading_is_shown():
    for label, heading, shown in [
        ("Chapter 1. Loomings", "LOOMINGS", ["Chapter 1. Loomings"]),
        ("1", "Chapter 1: The Storm", ["Chapter 1: The Storm"]),
        ("Chapter 1", "The Storm", ["Chapter 1", "The Storm"]),
        ("190 The Clover", "II. The Clover", ["190 The Clover"]),
    ]:
        tracker = SectionTracker([entry(label, "a")])
        tracker.start_file("a")
        tracker.add_heading(heading, 1, 0, "/html/body")
        assert tracker.path() == shown


def test_label_that_names_the_start_of_reading_is_no_section():
    tracker = SectionTracker([entry("Start reading", "a")], skipped_labels=["start reading"])
    tracker.start_file("a")
    tracker.add_heading("The Storm", 1, 0, "/html/body")
    assert tracker.path() == ["The Storm"]


def test_deeper_of_two_entries_with_one_target_wins():
    part = entry("Part", "a")
    tracker = SectionTracker([part, entry("Chapter", "a", parent=part)])
    tracker.start_file("a")
    assert tracker.path() == ["Part", "Chapter"]


def test_target_inside_the_heading_belongs_to_it():
    tracker = SectionTracker([entry("One", "a", "x"), entry("Two", "a", "y")])
    tracker.start_file("a")
    for name, label in (("x", "One"), ("y", "Two")):
        tracker.start_element(name)
        tracker.add_heading(label, 2, 0, "/html/body")
        assert tracker.path() == [label]


def test_heading_that_the_label_already_says_is_not_repeated():
    tracker = SectionTracker([entry("本纪 卷九 玄宗下", "a")])
    tracker.start_file("a")
    tracker.add_heading("本纪　卷九", 1, 1, "/html/body/section[1]")
    tracker.add_heading("玄宗下", 2, 1, "/html/body/section[1]")
    assert tracker.path() == ["本纪 卷九 玄宗下"]
    tracker.add_heading("肃宗", 2, 1, "/html/body/section[1]")
    assert tracker.path() == ["本纪 卷九 玄宗下", "肃宗"]
