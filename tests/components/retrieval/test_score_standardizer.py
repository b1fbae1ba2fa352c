import math
from copy import deepcopy

import pytest
from haystack import Document, Pipeline
from haystack.components.joiners import DocumentJoiner
from hypothesis import assume, given
from hypothesis import strategies as st

from shiguan.retrieval.score_standardizer import ScoreStandardizer


def hits(scores):
    """Documents by name, in the order given."""
    return [Document(id=name, content="", score=score) for name, score in scores.items()]


def standardised(scores):
    documents = ScoreStandardizer().run(documents=hits(scores))["documents"]
    return {document.id: document.score for document in documents}


def joined(*lists, weights=(0.5, 0.5)):
    joiner = DocumentJoiner(join_mode="merge", weights=list(weights))
    documents = joiner.run(documents=[ScoreStandardizer().run(documents=hits(scores))["documents"] for scores in lists])
    return {document.id: document.score for document in documents["documents"]}


def test_scores_are_in_deviations_above_the_lowest():
    # Mean 6, deviations 6, 0 and -6, sd = sqrt(24).
    assert standardised({"a": 12.0, "b": 6.0, "c": 0.0}) == pytest.approx(
        {"a": 12 / math.sqrt(24), "b": 6 / math.sqrt(24), "c": 0.0}
    )


def test_the_better_of_two_hits_gets_two():
    assert standardised({"a": 31.7, "b": 0.2}) == pytest.approx({"a": 2.0, "b": 0.0})


@pytest.mark.parametrize("scores", [{"a": 7.0}, {"a": 0.0}, {"a": -1.5, "b": -1.5}, {"a": 0.8, "b": 0.8 + 1e-8}])
def test_without_a_deviation_every_hit_counts_as_the_better_of_two(scores):
    assert standardised(scores) == dict.fromkeys(scores, 2.0)


def test_a_single_hit_by_words_still_lifts_a_passage():
    vectors = {"a": 0.90, "b": 0.89, "c": 0.80}
    assert max(joined({"b": 3.0}, vectors), key=joined({"b": 3.0}, vectors).get) == "b"


def test_each_language_is_standardised_from_its_own_lowest():
    found = [
        ("a", 12.0, "en"),
        ("x", 8.0, "zh"),
        ("b", 6.0, "en"),
        ("y", 6.0, "zh"),
        ("c", 0.0, "en"),
        ("z", 3.0, "fr"),
    ]
    documents = [Document(id=name, content="", score=score, meta={"language": of}) for name, score, of in found]
    own = {document.id: document.score for document in ScoreStandardizer().run(documents=documents)["documents"]}
    sd = math.sqrt(24)
    assert own == pytest.approx({"a": 12 / sd, "x": 2.0, "b": 6 / sd, "y": 0.0, "c": 0.0, "z": 2.0})


def test_cosines_that_lie_close_together_are_in_units_of_the_least_deviation():
    close, wide = {"a": 0.900, "b": 0.898, "c": 0.896}, {"a": 0.92, "b": 0.90, "c": 0.88}
    found = [ScoreStandardizer(finds_by="vectors").run(documents=hits(scores))["documents"] for scores in (close, wide)]
    # The deviation is sqrt(8 / 3) thousandths, 1.6, where 6 are the least; and 16 in the other list.
    assert [document.score for document in found[0]] == pytest.approx([4 / 6, 2 / 6, 0.0])
    assert [document.score for document in found[1]] == pytest.approx([math.sqrt(6), math.sqrt(1.5), 0.0])
    assert list(standardised(close).values()) == pytest.approx([math.sqrt(6), math.sqrt(1.5), 0.0])


def test_nothing_found_is_nothing_standardised():
    assert ScoreStandardizer().run(documents=[]) == {"documents": []}


def test_a_hit_without_a_score_counts_as_the_lowest():
    assert standardised({"a": 5.0, "b": None, "c": 3.0}) == pytest.approx({"a": 3 / math.sqrt(2), "b": 0.0, "c": 0.0})


def test_what_came_in_is_not_changed():
    documents = hits({"a": 5.0, "b": 3.0})
    before = deepcopy(documents)
    found = ScoreStandardizer().run(documents=documents)["documents"]
    assert documents == before
    assert all(new is not old for new, old in zip(found, documents, strict=True))
    assert [document.id for document in found] == ["a", "b"]


def test_it_round_trips_through_yaml():
    pipeline = Pipeline()
    pipeline.add_component("scores", ScoreStandardizer())
    assert isinstance(Pipeline.loads(pipeline.dumps()).get_component("scores"), ScoreStandardizer)


NAMES = [f"d{number}" for number in range(12)]
LISTS = st.dictionaries(
    st.sampled_from(NAMES), st.integers(-1000, 1000).map(lambda n: n / 8), min_size=2, max_size=12
).filter(lambda scores: len(set(scores.values())) > 1)
WEIGHTS = st.integers(1, 9).map(lambda tenths: (tenths / 10, 1 - tenths / 10))


def by_the_formula(lists, weights):
    """Sum w * (s - mean) / sd over the lists, a missing hit as the lowest of its list, written as it stands in the paper."""
    totals = {}
    for name in {name for scores in lists for name in scores}:
        totals[name] = 0.0
        for scores, weight in zip(lists, weights, strict=True):
            values = list(scores.values())
            mean = sum(values) / len(values)
            sd = math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))
            totals[name] += weight * (scores.get(name, min(values)) - mean) / sd
    return totals


@given(LISTS, LISTS, WEIGHTS)
def test_with_haystacks_joiner_it_is_the_sum_of_standardised_scores_up_to_a_constant(words, vectors, weights):
    expected = by_the_formula([words, vectors], weights)
    found = joined(words, vectors, weights=weights)
    assert found.keys() == expected.keys()
    constant = {round(found[name] - expected[name], 6) for name in found}
    assert max(constant) - min(constant) <= 2e-6


@given(LISTS, LISTS, st.sampled_from([0.001, 0.5, 3.0, 400.0]), st.integers(-500, 500))
def test_scale_and_zero_of_a_retriever_play_no_part(words, vectors, scale, shift):
    moved = {name: scale * score + shift for name, score in words.items()}
    # A shift that drowns the differences is what the guard against noise is there for.
    spread = max(moved.values()) - min(moved.values())
    assume(spread > 1e-4 * max(map(abs, moved.values())))
    assert joined(moved, vectors) == pytest.approx(joined(words, vectors), abs=1e-6)


@given(LISTS, LISTS, st.randoms())
def test_the_order_in_which_hits_and_lists_arrive_does_not_matter(words, vectors, random):
    shuffled = list(words.items())
    random.shuffle(shuffled)
    assert joined(dict(shuffled), vectors) == pytest.approx(joined(words, vectors), abs=1e-9)
    assert joined(vectors, words) == pytest.approx(joined(words, vectors), abs=1e-9)


@given(LISTS, LISTS)
def test_equal_weights_of_any_size_are_halves(words, vectors):
    assert joined(words, vectors, weights=(3, 3)) == pytest.approx(joined(words, vectors))


@given(LISTS)
def test_the_order_within_one_list_is_kept_and_the_lowest_is_zero(scores):
    found = standardised(scores)
    assert min(found.values()) == 0
    for one in scores:
        for other in scores:
            if scores[one] > scores[other]:
                assert found[one] > found[other]


@given(LISTS)
def test_one_more_hit_as_low_as_the_lowest_leaves_the_order(scores):
    """It changes mean and deviation, so all scores of the list, and no order in it."""
    more = standardised({**scores, "late": min(scores.values())})
    assert more["late"] == 0
    assert sorted(scores, key=lambda name: (-standardised(scores)[name], name)) == sorted(
        scores, key=lambda name: (-more[name], name)
    )


def test_a_list_that_was_found_the_other_way_is_left_out():
    words, unnamed = ScoreStandardizer(finds_by="words"), ScoreStandardizer()
    found = hits({"a": 3.0, "b": 1.0})
    assert [len(words.run(found, how)["documents"]) for how in ("hybrid", "words", "vectors")] == [2, 2, 0]
    assert [len(unnamed.run(found, how)["documents"]) for how in ("hybrid", "words", "vectors")] == [2, 2, 2]
    with pytest.raises(ValueError, match="hybrid, words, vectors, got 'both'"):
        words.run(found, "both")
    with pytest.raises(ValueError, match="`finds_by` must be one of words, vectors, got 'luck'"):
        ScoreStandardizer(finds_by="luck")
