"""New passages and old ones, each once, up to a limit."""

from haystack import Document

from shiguan.grading.passage_merger import PassageMerger

A, B, C, D = (Document(id=name, content=name, score=0.1, meta={"number": 7}) for name in "abcd")


def ids(documents, earlier=None):
    return [one.id for one in PassageMerger().run(documents=documents, earlier=earlier)["documents"]]


def numbered(letter, count):
    return [Document(id=f"{letter}{at}", content=letter) for at in range(count)]


def test_the_first_round_keeps_what_was_found_up_to_ten():
    assert PassageMerger().run(documents=[A, B])["documents"] == [A, B]
    assert ids(numbered("a", 12), []) == [f"a{at}" for at in range(10)]


def test_old_and_new_take_turns_and_each_is_there_once():
    assert ids([C, D], [A, B]) == ["a", "c", "b", "d"]
    assert ids([C, A], [A, B]) == ["a", "c", "b"]


def test_neither_side_can_fill_the_limit_alone():
    assert ids(numbered("n", 12), numbered("o", 12)) == "o0 n0 o1 n1 o2 n2 o3 n3 o4 n4".split()
    assert ids([], [A, B]) == ["a", "b"]


def test_merged_passages_are_scored_by_their_place_and_lose_their_number():
    merged = PassageMerger().run(documents=[C], earlier=[A])["documents"]
    assert [(one.score, one.meta) for one in merged] == [(1.0, {}), (0.5, {})]
    assert A.meta == {"number": 7}


def test_a_passage_found_again_is_the_new_copy():
    fresh = Document(id="a", content="whole", score=0.9)
    assert PassageMerger().run(documents=[fresh], earlier=[A, B])["documents"][0].content == "whole"
