"""Where quotations stand in a library: verdicts, places, differences, and whose library it is."""

from itertools import pairwise

import pytest
from tests.doubles.small_library import own_library

from shiguan.engine.library import Library
from shiguan.stores.embedded.shards import close_all_shards
from shiguan.verify.quotations import QuotationSearch

WHALE = """# Loomings

Call me Ishmael. Some years ago—never mind how long precisely—having little or no money in my purse, and nothing \
particular to interest me on shore, I thought I would sail about a little and see the watery part of the world.

# The Whiteness

It was the whiteness of the whale that above all things appalled me. There were 40 men aboard, and Starbuck did not \
fear them; the captain had lost his leg three years before off Japan.

# The Chase

Forehead to forehead I meet thee, this third time, Moby Dick! The ship's company never came back to Nantucket.
"""
TANG = "# 本紀\n\n貞觀二年春正月，太宗御太極殿，羣臣皆賀。房玄齡不受賞，曰：「臣有三愧。」上從之。\n"
OATH = "And so they swore the oath upon the river stone."


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    songs = "".join(f"# Song {n}\n\nSong number {n} is about the month {n}. {OATH}\n\n" for n in range(1, 41))
    mine = {"whale.md": WHALE, "tang.md": TANG, "songs.md": songs}
    theirs = {"secret.txt": "The hidden letter names the traitor as Li Mi of Longxi."}
    yield Library(data_dir=own_library(tmp_path_factory.mktemp("library"), a=mine, b=theirs))
    close_all_shards()


@pytest.fixture(scope="module")
def search(library):
    return QuotationSearch(library.stores, "a")


@pytest.mark.parametrize(
    "quotation",
    [
        "Call me Ishmael. Some years ago", "call me Ishmael, some years ago - never mind how long precisely",
        "having little or no\nmon-\ney in my purse", "Call me Ishmael … having little or no money",
        "Call me Ishmael [...] having little or no money", "Call me Ishmael [the teller]. Some years ago",
        "[C]all me Ishmael. Some years ago", "貞觀二年春正月，太宗御太極殿",
        "贞观二年春正月太宗御太极殿，群臣皆贺", "房玄齡不受賞，曰：『臣有三愧。』", "房玄龄不受赏　曰臣有三愧",
    ],
)  # fmt: skip
def test_a_quotation_in_another_dress_is_found(search, quotation):
    found = search.check(quotation)
    assert (found["verdict"], found["places"], found["difference"]) == ("found", 1, [])
    assert found["source"] in ("whale.md", "tang.md")


def test_a_place_is_that_of_the_words_in_the_passage(search, library):
    found = search.check("above all things appalled me")
    assert found["quote"] == "above all things appalled me"
    assert found["section"] == ["The Whiteness"]
    text = library.passage(found["parent_id"], tenant_id="a")["passage"]["text"]
    assert text[found["start"] : found["end"]] == found["quote"]
    read = "\n\n".join(part for part in WHALE.split("\n\n") if not part.startswith("#"))
    assert found["anchor"]["offset"] == read.index("above all things")


@pytest.mark.parametrize(("quotation", "quoted", "stands"), [
    ("There were 14 men aboard, and Starbuck", "14", "40"),
    ("and Stubb did not fear them; the captain", "Stubb", "Starbuck"),
    ("There were 40 men aboard, and Starbuck did fear them", "", "not"),
    ("the captain had lost his arm three years before", "arm", "leg"),
    ("太宗御太極殿，羣臣皆怒", "怒", "賀"), ("貞觀三年春正月，太宗御太極殿", "三", "二"), ("房玄齡受賞，曰：「臣有三愧。」", "", "不"),
])  # fmt: skip
def test_a_word_a_name_a_number_and_a_negation_alter_a_quotation(search, quotation, quoted, stands):
    found = search.check(quotation)
    assert found["verdict"] == "altered"
    assert found["difference"] == [{"quoted": quoted, "stands": stands}]


@pytest.mark.parametrize("text", [
    "Starbuck did … fear them; the captain", "There were 40 men aboard, and Starbuck did [not ever] not fear them",
    *(f"I thought I would sail about a {bracketed} and see the watery part"
      for bracketed in ("[un]nothing", "[14] little", "[not] little", "[十] little")),
])  # fmt: skip
def test_an_ellipsis_and_brackets_hide_no_denial_no_number_and_no_part_of_a_word(search, text):
    assert search.check(text)["verdict"] == "altered"


def test_what_repeats_itself_a_thousand_times_is_answered(search):
    for text in ("a" * 3000, "[" * 3000, " ." * 1500, "…" * 3000, "不" * 3000, "x " * 200_000):
        assert search.check(text)["verdict"] in ("absent", "too_short")


def test_parts_of_several_places_are_stitched(search):
    found = search.check("I thought I would sail about a little … Forehead to forehead I meet thee, this third time")
    assert found["verdict"] == "stitched"
    assert [(part["section"], part["quote"]) for part in found["parts"]] == [
        (["Loomings"], "I thought I would sail about a little"),
        (["The Chase"], "Forehead to forehead I meet thee, this third time"),
    ]


def test_what_stands_nowhere_is_absent_and_what_is_too_short_is_said_to_be(search):
    for text in ("It is a truth universally acknowledged", "春眠不覺曉，處處聞啼鳥", "مرحبا بالعالم كله"):
        found = search.check(text)
        assert (found["verdict"], found["source"], found["places"]) == ("absent", None, 0)
    for text in ("abc", "“”", "", "賀之也", "!!!", "\x1b[31m", "<b>"):
        assert search.check(text)["verdict"] == "too_short"


def test_all_places_of_a_quotation_are_counted(search):
    found = search.check("they swore the oath upon the river stone")
    assert (found["verdict"], found["places"]) == ("found", 40)
    assert search.check("they swore the oath upon the river stone", "Song 17")["section"] == ["Song 17"]


def test_a_wrong_place_beside_a_quotation_is_told(search):
    assert search.check("Call me Ishmael. Some years ago", "The Chase")["verdict"] == "misattributed"
    assert search.check("Call me Ishmael. Some years ago", "whale.md")["verdict"] == "found"
    wrong = search.check("Call me Ishmael. Some years ago", "songs.md")
    assert (wrong["verdict"], wrong["source"], wrong["section"]) == ("misattributed", "whale.md", ["Loomings"])


def test_a_work_that_the_passage_quotes_is_no_wrong_place(tmp_path):
    named = "# 魏博\n\n魏博五十馀年不沾皇化，一旦举六州之地来归。《资治通鉴》元和七年十月。\n\n"
    far = f"# 他处\n\n{'其后河北无事。' * 60}田承嗣镇魏博，选募六州骁勇之士五千人为牙军。\n"
    library = Library(data_dir=own_library(tmp_path, a={"rebellion.md": named + far}))
    search = QuotationSearch(library.stores, "a")
    quotation = "魏博五十餘年不沾皇化"
    assert search.check(quotation, "据《资治通鉴》：", in_context=True)["verdict"] == "found"
    assert search.check(quotation, "据《旧唐书》：", in_context=True)["verdict"] == "misattributed"
    assert search.check("选募六州骁勇之士", "据《资治通鉴》：", in_context=True)["verdict"] == "misattributed"


def test_another_tenants_passages_are_nowhere(library, search):
    letter = "The hidden letter names the traitor"
    assert search.check(letter)["verdict"] == "absent"
    assert QuotationSearch(library.stores, "b").check(letter)["verdict"] == "found"
    assert QuotationSearch(library.stores, "b").check("Call me Ishmael. Some years ago")["verdict"] == "absent"


def test_a_quotation_over_two_passages_is_found(library, tmp_path):
    sentences = [f"Number {n} of the sailors named {name} kept the watch {n * 7} nights." for n in range(1, 60)
                 for name in ("Abel", "Bede")]  # fmt: skip
    whole = " ".join(sentences)
    (tmp_path / "long.txt").write_text(whole, encoding="utf-8")
    [done] = library.ingest([tmp_path / "long.txt"], tenant_id="c")
    assert done.parents > 1
    search = QuotationSearch(library.stores, "c")
    for first, second in pairwise(sentences):
        assert search.check(f"{first} {second}")["verdict"] == "found"
    assert len(whole) > 6000  # longer than what is looked up at a time
    assert search.check(whole)["verdict"] == "found"
    changed = search.check(whole.replace("Number 39 of the sailors named Bede", "Number 38 of the sailors named Bede"))
    assert (changed["verdict"], changed["difference"]) == ("altered", [{"quoted": "38", "stands": "39"}])
