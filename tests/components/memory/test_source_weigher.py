import pytest
from haystack import Document, Pipeline
from hypothesis import given
from hypothesis import strategies as st

from shiguan.memory.source_weigher import SourceWeigher


def documents(*scores, prefix="f"):
    return [Document(id=f"{prefix}{at}", content=str(at), score=score) for at, score in enumerate(scores)]


def ids(found):
    return [document.id for document in found]


def test_facts_and_memory_are_each_ranked_among_their_own():
    result = SourceWeigher().run(documents=documents(9.0, 5.0, 1.0, 0.5), memory=documents(0.9, 0.2, prefix="m"))
    # facts 1, .75, .5, .25; memory .6 and .3
    assert ids(result["documents"]) == ["f0", "f1", "m0", "f2", "m1", "f3"]
    assert ids(result["facts"]) == ["f0", "f1", "f2", "f3"]
    assert ids(result["memory"]) == ["m0", "m1"]
    assert [one.meta["origin"] for one in result["documents"]] == ["fact", "fact", "memory", "fact", "memory", "fact"]
    assert result["documents"][2].meta["weighed"] == {"rank": 1.0, "weight": 0.6, "value": 0.6}


def test_a_fragment_never_stands_above_a_passage_that_is_as_good():
    result = SourceWeigher(fact_weight=1.0, memory_weight=1.0).run(
        documents=documents(3.0, 2.0), memory=documents(9.0, 8.0, prefix="m")
    )
    assert ids(result["documents"]) == ["f0", "m0", "f1", "m1"]


def test_equal_scores_are_equally_good_and_a_missing_one_is_the_worst():
    result = SourceWeigher().run(documents=documents(None, 2.0, 2.0))
    assert ids(result["documents"]) == ["f1", "f2", "f0"]
    assert [one.meta["weighed"]["rank"] for one in result["documents"]] == pytest.approx([1, 1, 1 / 3])


@given(
    st.lists(st.floats(-9, 9), max_size=8), st.lists(st.floats(-9, 9), max_size=8), st.floats(0.01, 1.0)
)  # fmt: skip
def test_the_best_passage_comes_first_whatever_was_said(facts, memory, weight):
    given_facts, given_memory = documents(*facts), documents(*memory, prefix="m")
    result = SourceWeigher(memory_weight=weight).run(documents=given_facts, memory=given_memory)
    assert sorted(ids(result["documents"])) == sorted(ids(given_facts) + ids(given_memory))
    if facts:
        assert result["documents"][0].score == max(facts)
        assert result["documents"][0].meta["origin"] == "fact"
    assert all("origin" not in one.meta for one in given_facts + given_memory)


def test_nothing_is_nothing():
    assert SourceWeigher().run(documents=[]) == {"documents": [], "facts": [], "memory": []}
    assert ids(SourceWeigher().run(documents=[], memory=documents(1.0))["documents"]) == ["f0"]


@pytest.mark.parametrize("weights", [(0.5, 0.6), (1.0, 0.0), (1.0, -1.0)])
def test_memory_never_counts_more_than_facts(weights):
    with pytest.raises(ValueError, match="Facts stand before memory"):
        SourceWeigher(fact_weight=weights[0], memory_weight=weights[1])


def test_round_trip():
    pipeline = Pipeline()
    pipeline.add_component("weigher", SourceWeigher(fact_weight=0.9, memory_weight=0.3))
    again = Pipeline.loads(pipeline.dumps()).get_component("weigher")
    assert (again.fact_weight, again.memory_weight) == (0.9, 0.3)
