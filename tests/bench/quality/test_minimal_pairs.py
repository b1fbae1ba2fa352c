"""Pairs of a true sentence and one small change: what is made, and what the table says of the verdicts."""

import random

import pytest
from bench.quality.groundedness import DATA
from bench.quality.minimal_pairs import Outcome, Pair, changed, rows_of, written_pairs
from bench.quality.pair_forms import FORMS
from bench.quality.pair_rules import RULES, han_names

from bench.quality import minimal_pairs

NAMES = frozenset({"李光弼", "史思明", "李光颜"})
MADE = [
    ("roles", "In 1215 Subutai defeated Jebe near Samarkand.", "In 1215 Jebe defeated Subutai near Samarkand."),
    ("roles", "天宝末，李光弼击史思明于嘉山。", "天宝末，史思明击李光弼于嘉山。"),
    ("reversed", "The court opened the gates.", "The gates opened the court."),
    ("reversed", "The pier was damaged by Fay, but not destroyed.", "The pier damaged Fay, but not destroyed."),
    ("reversed", "裴寂为史思明所败，人情崩骇。", "裴寂败史思明，人情崩骇。"),
    ("name", "天宝末，李光弼出井陉。", "天宝末，李光颜出井陉。"),
    ("negation", "It did not reach the river.", "It did reach the river."),
    ("negation", "他没有到达睢阳城。", "他到达睢阳城。"),
    ("opposite", "The victory came at dawn.", "The defeat came at dawn."),
    ("order", "They left before the storm.", "They left after the storm."),
    ("place", "The town is in eastern Henan.", "The town is in western Henan."),
    ("cut", "The granary lost 12,500 bushels in the flood.", "The granary lost 12."),
    ("cut", "No soldiers ever reached the town.", "Soldiers ever reached the town."),
    ("cut", "是时叛军至城下者凡十五万。", "是时叛军至城下者凡十五。"),
    ("limit", "The king, according to Bede, gave them land.", "The king gave them land."),
    ("limit", "In 755 nearly all of them came from the north.", "In 755 all of them came from the north."),
    ("limit", "相传李白葬于当涂。", "李白葬于当涂。"),
]
NOT_MADE = [
    ("roles", "John married Mary in 1850."),
    ("roles", "The Mongols and the Jin arrived."),
    ("negation", "He had no more than three."),
    ("opposite", "Both men and women came."),
    ("order", "他们了三天后走。"),
    ("place", "江西南昌是一座城市。"),
]


@pytest.mark.parametrize(("kind", "true", "false"), MADE)
def test_a_rule_makes_a_false_sentence(kind, true, false):
    assert false in [*RULES[kind](true, random.Random(1), NAMES)]


@pytest.mark.parametrize(("kind", "true"), NOT_MADE)
def test_a_rule_makes_nothing_that_may_be_true(kind, true):
    assert not [*RULES[kind](true, random.Random(1), NAMES)]


def test_names_are_what_stands_in_changing_company():
    text = "李光弼出兵。郭子仪与李光弼会。以李光弼为将，郭子仪亦至。"
    assert "李光弼" in han_names(text)
    assert "光弼会" not in han_names(text)


@pytest.mark.parametrize(
    ("form", "text", "written"),
    [
        ("date moved", "In 1778, the British seized Savannah.", "The British seized Savannah in 1778."),
        ("date moved", "The fort was built in 1809.", "In 1809, the fort was built."),
        ("date moved", "石山麟于1985年创立集团。", "1985年，石山麟创立集团。"),
        ("clause dropped", "However, it rained (for a week) there.", "It rained there."),
        ("script or case", "贞观二年", "貞觀二年"),
    ],
)
def test_a_true_sentence_in_another_form(form, text, written):
    assert FORMS[form](text) == written


def test_a_pair_has_the_same_form_on_both_sides():
    for kind, form, true, false in changed("In 1778, Tybee defeated Augusta at dawn.", ["roles"], frozenset()):
        assert (kind, form) == ("roles", "date moved")
        assert (true, false) == ("Tybee defeated Augusta at dawn in 1778.", "Augusta defeated Tybee at dawn in 1778.")


def outcome(kind, form, true, false, *, in_place=True, name="x"):
    return Outcome(Pair(name, "en", kind, form, "t", "f", ("p",), 0), true, false, "", "", in_place)


def test_the_table_counts_what_is_wrong():
    rows = {
        row.name: row
        for row in rows_of(
            [
                outcome("roles", "verbatim", "supported", "supported"),
                outcome("roles", "signs", "partial", "contradicted"),
                outcome("cut", "paraphrased", "partial", "unsupported", name="sample-1"),
                outcome("cut", "paraphrased", "supported", "unsupported", in_place=False, name="sample-2"),
            ]
        )
    }
    assert (rows["en: false and supported, roles"].value, rows["en: false and supported, roles"].holds) == (0.5, False)
    assert rows["en: false and supported, cut"].holds
    assert rows["en: true, verbatim or nearly, supported"].value == 0.5
    assert rows["en: true, paraphrased by hand, supported or partial in its passage"].value == 0.5
    assert rows["en: false and contradicted"].value == 0.25


def test_every_pair_on_the_sample_book_has_its_passage():
    pairs = written_pairs(None)
    assert {language: sum(pair.language == language for pair in pairs) for language in ("en", "zh")} == {
        "en": 18,
        "zh": 18,
    }
    assert all(0 <= pair.gold < len(pair.passages) and pair.true != pair.false for pair in pairs)


@pytest.mark.skipif(not DATA.is_dir(), reason="the public sets are not there")
def test_every_pair_written_by_hand_has_its_passage():
    halves = [written_pairs(DATA, half) for half in "AB"]
    assert sum(map(len, halves)) == len(minimal_pairs.WRITTEN.read_text(encoding="utf-8").splitlines()) >= 60
