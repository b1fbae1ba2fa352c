"""Which words of a passage it states: where it has them, it is read."""

import pytest

from shiguan.claims import stated
from shiguan.claims.checker import ClaimChecker
from shiguan.claims.claims import split_claims
from shiguan.claims.stated import find_stated
from shiguan.errors import ModelMissingError

TWICE = "Karl sold the mill in May. It was rebuilt. Karl sold the mill in June."

PLAIN = [  # a claim, a passage that states it, one that does not
    (
        "The council rejected the plan.",
        "The council rejected the plan, and Otto resigned.",
        "If the council rejected the plan, Otto would resign.",
    ),
    ("Mary painted the house.", "Mary painted the house in 1990.", "Mary painted the house in a dream."),
    (
        "Karl took the town.",
        "Karl came to Acre, took the town, and was killed.",
        "Karl came to Acre, and Otto, who took the town, was killed.",
    ),
    (
        "The rent had doubled.",
        "The bank closed its branch because the rent had doubled.",
        "The bank closed its branch before the rent had doubled.",
    ),
    ("杨炎建议两税法。", "780年，杨炎建议两税法。", "若杨炎建议两税法，帝必不从。"),
    ("大坝垮了。", "大坝垮了，下游三个村子被淹。", "工程师说，大坝垮了，下游三个村子会被淹。"),
]


class Reader:
    """Thinks that what stands before some words is only dreamed."""

    def __init__(self, dreamed):
        self.dreamed = dreamed

    def log_odds(self, text, places):
        return -9.0 if places[-1][1] <= text.index(self.dreamed) else 9.0


@pytest.fixture
def reader(monkeypatch):
    def use(dreamed):
        monkeypatch.setattr(stated, "factuality_reader", lambda: Reader(dreamed))

    return use


def test_what_a_passage_does_not_state_there_may_be_stated_further_on(reader):
    reader("It was rebuilt")
    place, doubted = find_stated("Karl sold the mill.", TWICE)
    assert (TWICE[slice(*place)], place[0] > 20, doubted) == ("Karl sold the mill", True, True)


def test_words_that_no_place_states_are_partial_and_say_why(reader):
    reader("in June")
    assert find_stated("It was rebuilt.", TWICE) == (None, True)
    (claim,) = ClaimChecker({1: TWICE}).check(split_claims("It was rebuilt [1]."))
    assert claim.support.verdict == "partial"
    assert claim.support.reason == "a passage has these words, but may not state them"


def test_what_no_passage_has_is_not_doubted(reader):
    reader("It was rebuilt")
    assert find_stated("The bridge burned.", TWICE) == (None, False)


def test_without_the_model_nothing_is_stated(monkeypatch):
    def missing():
        raise ModelMissingError("no weights")

    monkeypatch.setattr(stated, "factuality_reader", missing)
    assert find_stated("It was rebuilt.", f"{TWICE} It snowed.") == (None, True)


@pytest.mark.parametrize(("claim", "stating", "other"), PLAIN)
def test_a_plain_clause_is_stated_and_not_where_its_sentence_takes_it_back(claim, stating, other):
    assert find_stated(claim, stating)[0]
    assert find_stated(claim, other)[0] is None
