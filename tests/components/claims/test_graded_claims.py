"""A grader's verdicts reach the citations."""

from haystack import Document
from haystack.dataclasses import ChatMessage

from shiguan.answer.citation_extractor import CitationExtractor
from shiguan.claims.graded_claims import graded_claims
from shiguan.grading.hallucination_grader import HallucinationGrader

DOCUMENTS = [Document(content="An Lushan rose against the Tang at Fanyang in 755.", meta={"number": 1})]


def test_the_extractor_shows_the_graders_verdict_and_history():
    text = "The commander turned upon the dynasty [1]. Li Bai drowned in the Yangzi [1]."
    graded = HallucinationGrader(max_attempts=1, on_unsupported="mark").run(
        [ChatMessage.from_assistant(text)], DOCUMENTS
    )
    (reply,) = graded["replies"]
    claims = reply.meta["grounding"]["claims"]
    claims[0].update(verdict="supported", score=0.9, reason="a judge said so")
    (answer,) = CitationExtractor().run([reply], DOCUMENTS, "Who?")["answers"]
    assert [claim["verdict"] for claim in answer.meta["claims"]] == ["supported", "unsupported"]
    assert answer.meta["citations"][0]["verdict"] == "supported"
    assert answer.meta["grounding"]["attempts"] == 1


def test_a_reply_that_nobody_graded_has_none():
    assert graded_claims({}) == {}
    assert graded_claims({"grounding": {"claims": [{"text": "half"}, "no claim"]}}) == {}
    assert graded_claims({"grounding": None}) == {}
