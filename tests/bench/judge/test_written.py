"""What was written to train the judge: it fits its passages, and what is kept out is kept out whole."""

from collections import defaultdict

from bench.judge.changes import NOT_SAID, SUPPORTED
from bench.judge.questions import repeated
from bench.judge.sets import Question
from bench.judge.written import WRITTEN, is_kept_out
from bench.quality.public_sets import read

ROWS = read(WRITTEN)


def test_the_answers_stand_in_their_passages_word_for_word():
    own = [row for row in ROWS if "passage" in row]
    assert len(own) > 800
    assert [row["id"] for row in own if any(answer not in row["passage"] for _, answer in row["asked"])] == []


def test_nothing_is_true_and_false_of_a_passage_nor_asked_and_unanswerable():
    for row in ROWS:
        assert set(row["true"]).isdisjoint([*row["false"], *row["unsaid"]])
        assert {question for question, _ in row["asked"]}.isdisjoint(row["unasked"])


def test_an_eighth_of_the_groups_is_kept_out():
    of_group = defaultdict(list)
    for row in ROWS:
        of_group[row["group"]].append(row["id"])
    kept_out = sum(map(is_kept_out, of_group))
    assert 0.1 < kept_out / len(of_group) < 0.15
    # A chapter's passages are in one group: they share people, and answer one another's questions.
    assert len(of_group["W3-001"]) == 8


def test_a_passage_that_only_asks_again_does_not_answer():
    asked = [Question("written_en", f"Who held Acre in {year}?", "", 0, 4) for year in range(1200, 1230)]
    (example, *_), texts = list(repeated(asked, 5)), {one.text for one in asked}
    assert all(claim.text in texts and claim.label not in (SUPPORTED, NOT_SAID) for claim in example.claims)
    assert example.claims[0].text in example.passage
    assert example.claims[1].text not in example.passage
