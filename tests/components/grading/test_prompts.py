"""The prompts of the graders, word for word, in both languages."""

from pathlib import Path

import pytest
from haystack import Document

from shiguan.claims.checker import ClaimChecker
from shiguan.claims.claims import split_claims
from shiguan.grading.answer_grade import grade_messages
from shiguan.grading.claim_judge import judge_messages
from shiguan.retrieval.relevance import relevance_messages

GOLDEN = Path(__file__).parent / "golden"
CASES = {
    "en": ("When did An Lushan rise?", "He rose in 755 [1]. He had <three> eyes [2].", "An Lushan rose in 755."),
    "zh": ("安禄山何时起兵？", "他于755年起兵[1]。他有三只眼[2]。", "天宝十四载，安禄山反于范阳。"),
}


def rendered(name, language):
    question, answer, passage = CASES[language]
    documents = [Document(content=passage, meta={"number": 1, "source": "tang.epub"})]
    if name == "answer_grader":
        messages = grade_messages(answer, documents, question, language)
    elif name == "relevance_grader":
        messages = relevance_messages(documents, question, language)
    else:
        claims = ClaimChecker({1: passage}).check(split_claims(answer))
        messages = judge_messages(claims, documents, question, language)
    return "\n".join(f"[{message.role.value}]\n{message.text}" for message in messages) + "\n"


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", ["hallucination_grader", "answer_grader", "relevance_grader"])
def test_the_prompt_reads_as_agreed(name, language):
    assert rendered(name, language) == (GOLDEN / f"{name}_{language}.txt").read_text(encoding="utf-8")
