"""The prompt of the grader, word for word, in both languages."""

from pathlib import Path

import pytest
from haystack import Document
from haystack.dataclasses import ChatMessage

from shiguan.grading.answer_grader import check_answer, grade_messages

GOLDEN = Path(__file__).parent / "golden"
CASES = {
    "en": ("When did An Lushan rise?", "He rose in 755 [1]. He had <three> eyes [2].", "An Lushan rose in 755."),
    "zh": ("安禄山何时起兵？", "他于755年起兵[1]。他有三只眼[2]。", "天宝十四载，安禄山反于范阳。"),
}


def rendered(language):
    question, answer, passage = CASES[language]
    documents = [Document(content=passage, meta={"number": 1, "source": "tang.epub"})]
    checked = check_answer(ChatMessage.from_assistant(answer), documents, question, language)
    messages = grade_messages(checked)
    return "\n".join(f"[{message.role.value}]\n{message.text}" for message in messages) + "\n"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_prompt_reads_as_agreed(language):
    assert rendered(language) == (GOLDEN / f"answer_grader_{language}.txt").read_text(encoding="utf-8")
