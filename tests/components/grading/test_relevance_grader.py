"""Scores for passages, and the one better search."""

from haystack import Document
from tests.components.grading.conftest import attempt

from shiguan.grading.relevance_grader import RelevanceGrader

QUESTION = "When did An Lushan rise?"
RIGHT = Document(id="right", content="An Lushan rose at Fanyang in 755.", score=0.9)
WRONG = Document(id="wrong", content="Tea is grown on hills.", score=0.2)


def test_words_of_the_question_give_the_scores_and_the_order_stays():
    result = RelevanceGrader().run([WRONG, RIGHT], "Lushan", attempt=attempt())
    assert [(one.id, one.meta["relevance"]) for one in result["documents"]] == [("wrong", 0.0), ("right", 10.0)]
    assert result["relevance"]["overall"] == 10.0
    assert "relevance" not in WRONG.meta


def test_the_words_that_no_passage_has_are_searched_for_once():
    question = "Which hills did Guo Ziyi climb?"
    grader = RelevanceGrader()
    result = grader.run([WRONG], attempt=attempt(question))
    assert "documents" not in result
    retry = result["retry"]
    assert result["relevance"]["reformulated"] == "Guo Ziyi climb"
    assert (retry.query, retry.queries) == (question, (question, "Guo Ziyi climb"))
    assert retry.documents == (WRONG,)
    assert (retry.number, retry.filters) == (1, {"field": "meta.tenant_id"})
    again = grader.run([WRONG], attempt=retry)
    assert "retry" not in again
    assert len(again["documents"]) == 1


def test_outside_a_loop_or_where_no_passage_has_any_word_of_the_question_nothing_is_searched_for_again():
    for passages in ([], [WRONG], [Document(content="安禄山反于范阳。")]):
        result = RelevanceGrader().run(passages, QUESTION, attempt=attempt())
        assert len(result["documents"]) == len(passages)
    assert len(RelevanceGrader().run([WRONG], "Which hills did Guo Ziyi climb?")["documents"]) == 1


def test_new_and_earlier_passages_take_turns_each_once_and_whole():
    earlier = [Document(id=name, content="…", score=9.0) for name in ("useful", "both", "old")]
    new = [Document(id=name, content=f"All of {name}.", score=0.1) for name in ("both", "new")]
    result = RelevanceGrader().run(new, QUESTION, attempt=attempt(documents=tuple(earlier)))
    found = result["documents"]
    assert [one.id for one in found] == ["useful", "both", "new", "old"]
    assert found[1].content == "All of both."
    assert [one.score for one in found] == [1.0, 0.75, 0.5, 0.25]
    assert (earlier[0].score, new[0].score) == (9.0, 0.1)


def test_at_most_ten_passages_are_read_in_a_round():
    earlier = tuple(Document(id=f"old {n}", content="x") for n in range(10))
    new = [Document(id=f"new {n}", content="x") for n in range(10)]
    assert len(RelevanceGrader().run(new, QUESTION)["documents"]) == 10
    found = RelevanceGrader().run(new, QUESTION, attempt=attempt(documents=earlier))["documents"]
    assert [one.id for one in found] == [f"{name} {n}" for n in range(5) for name in ("old", "new")]
    assert len(RelevanceGrader().run([*new, *earlier], QUESTION)["documents"]) == 10
