from haystack import Document

from shiguan.context.context_builder import ranked
from shiguan.reading.passage import Passage


def ids(documents):
    return [document.id for document in documents]


def test_scores_rank_and_ids_break_ties():
    documents = [Document(id=name, content=name, score=score) for name, score in (("b", 1), ("a", 1), ("c", 2))]
    assert ids(ranked(documents)) == ["c", "a", "b"]


def test_of_one_id_the_best_is_kept():
    documents = [Document(id="a", content="x", score=score) for score in (0.1, 0.9)]
    assert [document.score for document in ranked(documents)] == [0.9]


def test_without_scores_the_first_of_one_id_keeps_its_place():
    documents = [Document(id=name, content=text) for name, text in (("a", "first"), ("b", "x"), ("a", "second"))]
    assert [(document.id, document.content) for document in ranked(documents)] == [("a", "first"), ("b", "x")]


def test_passages_without_text_are_left_out():
    assert ranked([Document(content=""), Document(content=" \n"), Document(content=None)]) == []


def test_matches_without_a_place_are_no_spans():
    meta = {"matches": [{"start": 1, "end": 2, "score": 1}, {"start": 1}, "x"]}
    assert Passage(Document(content="abc", meta=meta)).spans == [(1, 2)]
    assert Passage(Document(content="abc", meta={"matches": None})).spans == []
