"""Texts that are read once, and the memory that finds them again."""

from concurrent.futures import ThreadPoolExecutor

from shiguan.reading.question import Question
from shiguan.reading.text import Memory, Text, kept


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
    assert [text.once(count, "a"), text.once(count, "n"), text.once(count, "a"), text.once(count, "a", times=2)] == [
        3,
        2,
        3,
        6,
    ]
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
