"""The self-correcting loop: how it is wired, and that it always ends with one answer."""

import asyncio
import random
import re
from dataclasses import replace

import pytest
from haystack import Document, Pipeline, component
from haystack.dataclasses import ChatMessage

from shiguan.claims.checker import CheckedClaim
from shiguan.claims.claim_support import Support
from shiguan.claims.evidence import Reading
from shiguan.errors import AnswerError, ConfigurationError, RefusedError
from shiguan.grading.attempt_loop import AttemptLoop
from shiguan.grading.attempts import Attempt
from shiguan.grading.hallucination_grader import HallucinationGrader
from shiguan.haystack_compat import AsyncPipeline

LOOP = """
components:
  attempt:
    type: shiguan.grading.attempt_loop.AttemptLoop
  relevance:
    type: shiguan.grading.relevance_grader.RelevanceGrader
  grader:
    type: shiguan.grading.hallucination_grader.HallucinationGrader
connections:
  - {sender: attempt.attempt, receiver: relevance.attempt}
  - {sender: attempt.attempt, receiver: grader.attempt}
  - {sender: relevance.documents, receiver: grader.documents}
  - {sender: relevance.retry, receiver: attempt.start}
  - {sender: grader.retry, receiver: attempt.start}
"""
FILTERS = {"field": "meta.tenant_id", "operator": "==", "value": "a"}
FACTS = {
    "rose": "An Lushan rose against the Tang at Fanyang in the winter of 755.",
    "died": "An Lushan was killed by his son An Qingxu in the first month of 757.",
}


@component
class FakeRetriever:
    """Finds one more passage each round, and remembers with which filters it was asked."""

    def __init__(self):
        self.asked = []

    @component.output_types(documents=list[Document])
    def run(self, query: str, filters: dict | None = None):
        self.asked.append((query, filters))
        texts = [FACTS["rose"]] if query.count("killed") < 2 else [FACTS["died"], FACTS["rose"]]
        return {"documents": [Document(id=f"p-{text[:12]}{len(text)}", content=text) for text in texts]}


@component
class FakeGenerator:
    """Says one prepared answer after the other; None is no reply at all."""

    def __init__(self, answers):
        self.answers = answers
        self.prompts = []

    @component.output_types(replies=list[ChatMessage])
    def run(self, documents: list[Document], attempt: Attempt):
        self.prompts.append((len(documents), attempt.feedback, attempt.question))
        answer = self.answers[min(len(self.prompts), len(self.answers)) - 1]
        return {"replies": [] if answer is None else [ChatMessage.from_assistant(answer)]}


def loop(kind, answers):
    pipeline = kind.loads(LOOP)
    pipeline.add_component("retriever", FakeRetriever())
    pipeline.add_component("generator", FakeGenerator(answers))
    pipeline.connect("attempt.query", "retriever.query")
    pipeline.connect("attempt.filters", "retriever.filters")
    pipeline.connect("retriever.documents", "relevance.documents")
    pipeline.connect("relevance.documents", "generator.documents")
    pipeline.connect("attempt.attempt", "generator.attempt")
    pipeline.connect("generator.replies", "grader.replies")
    return pipeline


def ask(kind, answers, question="When did An Lushan rise?"):
    pipeline = loop(kind, answers)
    data = {"attempt": {"start": [question], "filters": FILTERS}, "grader": {"language": "en"}}
    result = pipeline.run(data) if kind is Pipeline else asyncio.run(pipeline.run_async(data))
    return result, pipeline.get_component("retriever"), pipeline.get_component("generator")


kinds = pytest.mark.parametrize("kind", [Pipeline, AsyncPipeline])
HALF = "An Lushan rose against the Tang at Fanyang in 755 [1]. Dragons ate the moon over Kaifeng [1]."
KILLED = "An Lushan was killed by his son An Qingxu in the first month of 757 [1]."


@kinds
def test_an_answer_that_the_passages_support_passes_at_once(kind):
    result, retriever, generator = ask(kind, ["An Lushan rose against the Tang at Fanyang in 755 [1]."])
    (reply,) = result["grader"]["replies"]
    assert reply.text == "An Lushan rose against the Tang at Fanyang in 755 [1]."
    assert reply.meta["grounding"]["status"] == "accepted"
    assert reply.meta["grounding"]["attempts"] == len(generator.prompts) == len(retriever.asked) == 1


@kinds
def test_a_refused_claim_is_never_searched_for_and_the_filters_reach_the_retriever_in_every_round(kind):
    result, retriever, generator = ask(kind, [KILLED])
    (reply,) = result["grader"]["replies"]
    assert reply.meta["grounding"]["status"] == "refused"
    assert not any("killed" in query or "son" in query.split() for query, _ in retriever.asked)
    assert [filters for _, filters in retriever.asked] == [FILTERS] * 3
    assert "killed by his son" in generator.prompts[1][1]
    assert {question for _, _, question in generator.prompts} == {"When did An Lushan rise?"}


@kinds
def test_what_the_passages_lack_of_the_question_is_searched_for_and_then_answered(kind):
    result, _, _ = ask(kind, [KILLED], question="By whom was An Lushan killed?")
    (reply,) = result["grader"]["replies"]
    assert reply.meta["grounding"]["status"] == "accepted"
    assert [entry["attempt"] for entry in reply.meta["grounding"]["history"]] == [1, 2]


@kinds
def test_after_three_attempts_the_unsupported_rest_is_removed(kind):
    result, _, generator = ask(kind, [HALF])
    (reply,) = result["grader"]["replies"]
    assert len(generator.prompts) == 3
    assert "755" in reply.text
    assert "Dragons" not in reply.text
    grounding = reply.meta["grounding"]
    assert (grounding["status"], grounding["attempts"]) == ("removed", 3)
    (removed,) = grounding["removed"]
    assert (removed["claim"], removed["kind"]) == ("Dragons ate the moon over Kaifeng.", "removed")


@kinds
def test_the_best_attempt_wins_over_the_last(kind):
    result, _, _ = ask(kind, ["Unicorns sang [1].", HALF, "Ghosts wrote every poem of Chang'an [1]."])
    (reply,) = result["grader"]["replies"]
    assert reply.meta["grounding"]["chosen"] == 2
    assert reply.text.startswith("An Lushan rose against the Tang at Fanyang in 755")


def outcomes(generator):
    """One random answer as the grader sees it: supported or not, found or not, empty or not."""
    kind = generator.random()
    if kind < 0.08:
        return ""
    if kind < 0.16:
        return "The sources do not say this."
    return " ".join(
        f"{generator.choice(['Good', 'Bad', 'Half', 'Wrong'])} claim number {generator.randrange(99)} stands here [1]."
        for _ in range(generator.randint(1, 4))
    )


def judge_by_first_word(self, read):
    verdicts = {"Good": ("supported", 0.9), "Half": ("partial", 0.5), "Bad": ("unsupported", 0.1)}
    checked = []
    for one in read:
        verdict, score = verdicts.get(one.stated.split()[0], ("contradicted", 0.1))
        support = Support(score, verdict, "by its word", 0, 0, 4)
        checked.append(CheckedClaim(one.index, one.claim, one.stated, support, "Some"))
    return checked


@pytest.mark.slow
def test_random_outcomes_never_take_more_than_three_generations_and_always_give_one_answer(monkeypatch):
    """The loop as the pipeline runs it, without its machinery: an attempt goes in again as it came out."""
    monkeypatch.setattr("shiguan.claims.checker.Evidence.read", lambda *_: Reading(""))
    monkeypatch.setattr("shiguan.claims.checker.ClaimChecker.judge", judge_by_first_word)
    generator = random.Random(755)
    documents = [Document(content="Some passage that stands here.", meta={"number": 1})]
    statuses = set()
    for _ in range(3_000):
        grader = HallucinationGrader(on_unsupported=generator.choice(["mark", "remove", "refuse"]))
        result, generations = {"retry": Attempt("What stands here?", ("What stands here?",), FILTERS)}, 0
        while attempt := result.get("retry"):
            assert attempt.filters == FILTERS
            generations += 1
            said = outcomes(generator)
            try:
                result = grader.run([ChatMessage.from_assistant(said)], documents, attempt=attempt, language="en")
            except AnswerError:
                result = {"replies": None}  # all attempts were empty
            assert ("retry" in result) != ("replies" in result)
        assert generations <= 3
        if result["replies"] is None:
            assert said == ""
            continue
        (answer,) = result["replies"]
        assert answer.text
        grounding = answer.meta["grounding"]
        assert len(grounding["history"]) == generations
        statuses.add(grounding["status"])
        if grounding["status"] in ("removed", "refused"):
            assert not re.search("Bad|Wrong", answer.text)
    assert statuses == {"accepted", "marked", "removed", "refused", "not_found"}


def test_the_first_round_hands_out_what_came_in():
    shown = [Document(id="p", meta={"number": 3})]
    earlier = [ChatMessage.from_user("Who?")]
    queries = ["Why did he rise?", "causes of the rising"]
    opened = AttemptLoop().run([queries], FILTERS, {"use_hyde": True, "type": "open_ended"}, earlier, shown=shown)
    attempt = opened.pop("attempt")
    assert opened == {
        "query": "Why did he rise?", "word_queries": queries, "vector_queries": queries, "use_hyde": True,
        "filters": FILTERS, "retriever_kwargs": {"filters": FILTERS}, "shown": shown,
    }  # fmt: skip
    assert (attempt.question, attempt.number, attempt.messages) == ("Why did he rise?", 1, tuple(earlier))


def test_a_later_round_hands_out_the_same_again_and_imagines_no_passage():
    first = AttemptLoop().run([["Why?", "How so?"]], FILTERS, {"use_hyde": True})["attempt"]
    for again in (replace(first, number=2, queries=("Why?", "garrisons")), replace(first, searched_again=True)):
        opened = AttemptLoop().run([again])
        assert opened["attempt"] is again
        assert (opened["filters"], opened["use_hyde"]) == (FILTERS, False)
        assert opened["word_queries"] == opened["vector_queries"] == list(again.queries)
    assert AttemptLoop().run([replace(first, number=2, queries=("Why?", "garrisons"))])["query"] == "Why? garrisons"


@pytest.mark.parametrize(("retrieval", "left_out"), [("words", "vector_queries"), ("vectors", "word_queries")])
def test_a_way_of_searching_that_is_left_out_gets_no_queries_in_any_round(retrieval, left_out):
    first = AttemptLoop().run([["Why?"]], FILTERS, retrieval=retrieval)
    second = AttemptLoop().run([replace(first["attempt"], number=2)])
    assert left_out not in first.keys() | second.keys()
    assert {"word_queries", "vector_queries"} - {left_out} <= first.keys() & second.keys()


def test_what_cannot_open_a_round_is_named():
    with pytest.raises(RefusedError):  # without a tenant
        AttemptLoop().run([["Why?"]])
    for start in ([], [[]], ["Why?"], [None], [{"query": "Why?"}]):
        with pytest.raises(ConfigurationError, match=r"Expected the queries of `QueryRewriter`"):
            AttemptLoop().run(start, FILTERS)


@kinds
def test_where_no_model_can_be_reached_in_a_round_the_loop_ends_with_the_best_answer_so_far(kind):
    result, _, generator = ask(kind, [HALF, None])
    (reply,) = result["grader"]["replies"]
    assert reply.text == "An Lushan rose against the Tang at Fanyang in 755[1]."
    assert len(generator.prompts) == 2
    result, _, _ = ask(kind, [None])
    assert result["grader"]["replies"] == []
