from haystack import Document
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


def test_the_order_of_the_ranker_stands_and_equal_scores_are_equally_good():
    result = SourceWeigher().run(documents=documents(2.0, 2.0, None, 3.0))
    assert ids(result["facts"]) == ["f0", "f1", "f2", "f3"]
    assert [one.meta["weighed"]["rank"] for one in result["facts"]] == [1, 1, 0.5, 0.25]


def test_what_was_said_stands_in_the_prompt_in_its_order():
    said = [
        Document(id="m2", content="third\nno", score=0.9, meta={"turns": [3, 3]}),
        Document(id="m1", content="both", score=0.5, meta={"turns": [1, 2]}),
    ]
    result = SourceWeigher().run(documents=documents(1.0), memory=said)
    assert result["text"] == "- both\n- third\nno"
    assert (ids(result["memory"]), result["recalled"]) == (["m2", "m1"], [])


def test_a_question_about_the_conversation_has_no_facts_and_one_without_a_memory_keeps_them():
    memory = documents(0.9, prefix="m")
    result = SourceWeigher().run(documents=documents(1.0), memory=memory, source="history")
    assert (ids(result["recalled"]), result["facts"]) == (["m0"], [])
    result = SourceWeigher().run(documents=documents(1.0), memory=[], source="history")
    assert (result["recalled"], ids(result["facts"])) == ([], ["f0"])


@given(st.lists(st.floats(-9, 9), max_size=8), st.lists(st.floats(-9, 9), max_size=8))
def test_the_best_passage_comes_first_whatever_was_said(facts, memory):
    facts = sorted(facts, reverse=True)
    given_facts, given_memory = documents(*facts), documents(*memory, prefix="m")
    result = SourceWeigher().run(documents=given_facts, memory=given_memory)
    assert sorted(ids(result["documents"])) == sorted(ids(given_facts) + ids(given_memory))
    if facts:
        assert result["documents"][0].score == max(facts)
        assert result["documents"][0].meta["origin"] == "fact"
    assert all("origin" not in one.meta for one in given_facts + given_memory)


def test_nothing_is_nothing():
    assert SourceWeigher().run(documents=[]) == {
        **{name: [] for name in ("documents", "facts", "memory", "recalled")},
        "text": "",
    }
    assert ids(SourceWeigher().run(documents=[], memory=documents(1.0))["documents"]) == ["f0"]
