"""Changes of sentences: what is changed, and where."""

from random import Random

import pytest
from bench.judge.changes import (
    CONTRADICTED,
    Claim,
    exchange,
    frequent_han_names,
    latin_names,
    negation,
    number,
    opposite,
    reversal,
    rewritings,
)
from bench.judge.prepare import Example, statement, turned
from bench.judge.retellings import retold


def _wrong(claim):
    return [claim.text[start:end] for start, end in claim.wrong]


def test_exchanged_names_are_both_marked_and_lists_stay():
    claim = exchange("Pitt replaced Newcastle in 1757.", ["Pitt", "Newcastle"], Random(1))
    assert claim == Claim("Newcastle replaced Pitt in 1757.", CONTRADICTED, ((0, 9), (19, 23)), ((0, 4), (14, 23)))
    assert exchange("Pitt and Newcastle spoke.", ["Pitt", "Newcastle"], Random(1)) is None


@pytest.mark.parametrize(
    ("text", "reversed_"),
    [("裴度讨吴元济。", "吴元济讨裴度。"), ("The dog followed the old man.", "The old man followed the dog.")],
)
def test_who_acts_and_who_is_acted_on_are_exchanged(text, reversed_):
    assert reversal(text, Random(1)).text == reversed_


def test_a_denial_is_taken_back_and_what_stood_beside_it_is_marked():
    claim = negation("He was not there.", Random(1))
    assert claim.text == "He was there."
    assert _wrong(claim) == ["s "]


def test_numbers_and_opposites_differ_in_one_place():
    changed = number("In 757 he fell.", Random(3))
    assert changed.text.startswith("In ") and changed.text.endswith(" he fell.") and changed.text != "In 757 he fell."
    assert opposite("He came before dawn.", Random(1)) == Claim(
        "He came after dawn.", CONTRADICTED, ((8, 13),), ((8, 14),)
    )


def test_a_date_moves_and_a_passive_turns():
    assert "In 1760, the fort fell to them." in rewritings("the fort fell to them in 1760.", Random(1))
    assert "Wolfe attacked the fort." in rewritings("The fort was attacked by Wolfe.", Random(1))


def test_a_classical_clause_is_told_in_modern_words_with_names_in_full():
    (true, false), *_ = retold("肃宗以子仪为司空。", "郭子仪引兵还，肃宗以子仪为司空。", ["郭子仪"], Random(1))
    assert set(true) == {"肃宗任命郭子仪为司空。", "郭子仪被肃宗任命为司空。", "郭子仪担任司空，是肃宗任命的。"}
    assert Claim("郭子仪任命肃宗为司空。", CONTRADICTED, ((0, 3), (5, 7), (8, 10))) in false


def test_the_passage_may_say_the_change():
    claims = (Claim("He came.", 0), Claim("She came.", CONTRADICTED, ((0, 3),), ((0, 2),)))
    example = turned(Example("set", "It rained. He came.", claims), "He came.", Random(1))
    assert example.passage == "It rained. She came."
    assert example.claims == (Claim("She came.", 0), Claim("He came.", CONTRADICTED, ((0, 2),)))


@pytest.mark.parametrize(
    ("question", "answer", "said"),
    [
        ("Who founded the town?", "Ann", "Ann founded the town."),
        ("When was the town founded?", "1760", "The town was founded in 1760."),
        ("谁建立了这座城？", "刘秀", "刘秀建立了这座城。"),
        ("Why did it fall?", "hunger", None),
    ],
)
def test_an_answer_is_put_into_its_question(question, answer, said):
    assert statement(question, answer) == said


def test_names_are_found_by_their_form():
    assert latin_names("Then George Washington met the king of Spain.") == ["George Washington", "Spain"]
    assert frequent_han_names("裴寂见帝。" + "李光弼至。李光弼战。李光弼还。", "李裴") == {"李光弼"}
