"""Texts that are read once, and the memory that finds them again."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from shiguan.reading.question import Question
from shiguan.reading.text import Memory, Text, kept, note_spans, read_text


def test_what_was_worked_out_is_found_again_by_the_string():
    asked = []

    class Counted(Text):
        size = kept(lambda string: asked.append(string) or len(string))

    memory = Memory(most=1_000, longest=100)
    assert [memory.read(Counted, f"An Lushan {end}").size for end in ("rose.", "rose.", "fled.")] == [15] * 3
    assert asked == ["An Lushan rose.", "An Lushan fled."]


def test_a_function_is_called_once_for_each_of_its_further_values():
    called = []

    def count(string, letter, *, times=1):
        called.append((letter, times))
        return string.count(letter) * times

    text = Text("banana")
    found = [text.once(count, "a"), text.once(count, "n"), text.once(count, "a"), text.once(count, "a", times=2)]
    assert found == [3, 2, 3, 6]
    assert called == [("a", 1), ("n", 1), ("a", 2)]


def test_the_texts_read_longest_ago_go_first_and_short_ones_count_as_fifty_characters():
    memory = Memory(most=200, longest=100)
    first, second, third = (memory.read(Text, string) for string in ("a" * 90, "b", "c"))  # 190 of 200
    assert memory.read(Text, "a" * 90) is first  # now the one read last
    memory.read(Text, "d")
    assert memory.read(Text, "a" * 90) is first
    assert memory.read(Text, "c") is third
    assert memory.read(Text, "b") is not second


def test_a_text_that_is_too_long_is_read_but_neither_stays_nor_makes_others_go():
    memory = Memory(most=200, longest=100)
    kept, long = memory.read(Text, "kept"), memory.read(Text, "x" * 101)
    assert long.terms == ["x" * 64]
    assert memory.read(Text, "x" * 101) is not long
    assert memory.read(Text, "kept") is kept


def test_a_text_that_is_asked_keeps_what_is_known_of_it():
    memory = Memory(most=200, longest=100)
    terms = memory.read(Text, "Who was Ahab?").terms
    question = memory.read(Question, "Who was Ahab?")
    assert question.terms is terms
    assert question.weights.keys() == {"ahab"}
    assert memory.read(Text, "Who was Ahab?") is question


def test_threads_share_one_memory_within_its_bound():
    memory = Memory(most=500, longest=100)
    strings = [f"sentence {number % 40}" for number in range(4_000)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda string: memory.read(Text, string), strings))
    assert [text.string for text in found] == strings
    assert memory.size == 500


def test_a_people_is_no_strange_name_where_its_country_is_named():
    text = Text("It was reported in the United States, in Spain, in France and in the Netherlands.")
    assert [text.lacking(name) for name in ("Americans", "Spaniards", "French", "Dutch")] == [[], [], [], []]
    assert [text.lacking(name) for name in ("Russians", "Toledo", "Hale")] == [["Russians"], ["Toledo"], ["Hale"]]


@pytest.mark.parametrize(
    ("name", "text", "has"),
    [
        ("An Lushan", "Then An Lushan rose.", True), ("An Lushan", "安禄山反。", True), ("安祿山", "安禄山反。", True),
        ("安禄山", "Then An Lushan rose.", True), ("伦敦", "The fire of London.", True), ("London", "伦敦大火。", True),
        ("Guo Ziyi", "安禄山反。", False), ("拿破仑", "Then An Lushan rose.", False), ("Napoleon", "安禄山反于范阳。", False),
        ("Shu", "他入蜀。", True), ("Queequeg", "魁魁格是个捕鲸手。", True), ("Ahab", "魁魁格是个捕鲸手。", False),
    ],
)  # fmt: skip
def test_a_name_is_found_as_spelled_translated_in_pinyin_or_by_its_consonants(name, text, has):
    assert read_text(text).has_name(name) is has


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("城[脚注：今托克马克。]，其年", "城，其年"), ("fell [Note: so the Mirror] in 757", "fell  in 757"),
        ("a [Note: see [12] and [Note: an inner] here] b", "a  b"), ("a [Note: never closed", "a [Note: never closed"),
        ("a [12] b ] c", "a [12] b ] c"), ("一[脚注：甲。]二[脚注：乙。]三", "一二三"),
    ],
)  # fmt: skip
def test_a_text_without_its_notes(text, bare):
    assert read_text(text).without_notes() == bare


def test_a_part_of_a_text_that_begins_in_a_note_has_what_follows_it():
    text = read_text("一[脚注：甲乙。]二三")
    assert [text.without_notes(start, 10) for start in (0, 1, 4)] == ["一二", "二", "二"]


def test_brackets_that_never_close_are_read_once():
    assert note_spans("[Note: " * 100_000) == ()
