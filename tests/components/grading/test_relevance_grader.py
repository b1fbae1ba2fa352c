"""Scores for passages, and the one better search."""

import pytest
from haystack import Document, Pipeline
from shiguan.retrieval.relevance_grader import RelevanceGrader

from shiguan.grading.attempts import first_state

QUESTION = "When did An Lushan rise?"
RIGHT = Document(id="right", content="An Lushan rose at Fanyang in 755.", score=0.9)
WRONG = Document(id="wrong", content="Tea is grown on hills.", score=0.2)


def state(question=QUESTION):
    return first_state(question, None, {"filters": {"field": "meta.tenant_id"}})


def test_words_of_the_question_give_the_scores_and_the_order_stays():
    result = RelevanceGrader().run([WRONG, RIGHT], "Lushan", state=state())
    assert [(one.id, one.meta["relevance"]) for one in result["documents"]] == [("wrong", 0.0), ("right", 10.0)]
    assert result["relevance"]["overall"] == 10.0
    assert "relevance" not in WRONG.meta


def test_the_scores_of_a_ranker_are_taken_as_they_are():
    result = RelevanceGrader("scores").run([RIGHT, WRONG], QUESTION)
    assert [one["score"] for one in result["relevance"]["passages"]] == [9.0, 2.0]
    assert result["relevance"]["overall"] == 9.0


def test_the_words_that_no_passage_has_are_searched_for_once():
    question = "Which hills did Guo Ziyi climb?"
    grader = RelevanceGrader(threshold=9)
    result = grader.run([WRONG], question, state=state(question))
    assert "documents" not in result
    retry = result["retry"]
    assert result["relevance"]["reformulated"] == "Guo Ziyi climb"
    assert (retry["query"], retry["queries"]) == (f"{question} Guo Ziyi climb", [question, "Guo Ziyi climb"])
    assert retry["documents"] == [WRONG]
    assert (retry["attempt"], retry["carried"]) == (1, {"filters": {"field": "meta.tenant_id"}})
    again = grader.run([WRONG], question, state=retry)
    assert "retry" not in again
    assert len(again["documents"]) == 1


@pytest.mark.parametrize("passages", [[], [WRONG], [Document(content="安禄山反于范阳。")]])
def test_where_no_passage_has_any_word_of_the_question_nothing_is_searched_for_again(passages):
    result = RelevanceGrader().run(passages, QUESTION, state=state())
    assert len(result["documents"]) == len(passages)


def test_outside_a_loop_nothing_is_asked_again():
    assert len(RelevanceGrader(threshold=10).run([WRONG], "Which hills did Guo Ziyi climb?")["documents"]) == 1


@pytest.mark.parametrize("options", [{"method": "llm"}, {"threshold": 11}])
def test_bad_arguments_are_refused(options):
    with pytest.raises(ValueError, match="must be"):
        RelevanceGrader(**options)


def test_it_survives_yaml():
    pipeline = Pipeline()
    pipeline.add_component("grader", RelevanceGrader("scores", threshold=5))
    again = Pipeline.loads(pipeline.dumps()).get_component("grader")
    assert (again.method, again.threshold) == ("scores", 5)
