"""What is only spelled otherwise is stated, and what differs in one thing is not."""

import pytest

from shiguan.claims.restatement import restates

SAME = [
    # Contractions, and the words for nobody.
    ("The dam didn't break.", "The dam did not break."),
    ("Karl can’t sell the ship.", "Karl cannot sell the ship."),
    ("He won't sell the ship.", "He will not sell the ship."),
    ("It's the largest dam in Ohio.", "It is the largest dam in Ohio."),
    ("It's been sold to Otto.", "It has been sold to Otto."),
    ("They've sold the mill.", "They have sold the mill."),
    ("Nobody was injured in the blast.", "No one was injured in the blast."),
    ("None of the crew survived.", "No member of the crew survived."),
    ("Not one of the sailors survived.", "None of the sailors survived."),
]
OTHER = [
    ("The dam didn't break.", "The dam did break."),
    ("The dam did break.", "The dam didn't break."),
    ("Karl can't sell the ship.", "Karl can sell the ship."),
    ("It's been sold to Otto.", "It is been sold to Otto."),
    ("Nobody was injured in the blast.", "One was injured in the blast."),
    ("None of the crew survived.", "A member of the crew survived."),
    ("Not one of the sailors survived.", "One of the sailors survived."),
]


@pytest.mark.parametrize(("passage", "claim"), SAME)
def test_another_spelling_is_stated(passage, claim):
    assert restates(claim, passage) is not None
    assert restates(passage, claim) is not None


@pytest.mark.parametrize(("passage", "claim"), OTHER)
def test_another_thing_is_not_stated(passage, claim):
    assert restates(claim, passage) is None
