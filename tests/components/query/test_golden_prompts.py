"""What a model is sent by the stages that help and grade, byte for byte."""

from pathlib import Path

import pytest

from shiguan.llm.prompts import render_prompt

GOLDEN = Path(__file__).parent / "golden"
HISTORY = [{"role": "user", "text": "A?"}, {"role": "assistant", "text": "B."}]
CASES = {
    "answer_grader": ("answer_grader", {"context": "<sources>\n</sources>", "answer": "He rose.", "claims": ["He rose."]}),
    "hyde_embedder": ("hyde_embedder", {}),
    "context_builder": ("context_builder", {"context": "<sources>\n</sources>"}),
    "goal_restater": ("goal_restater", {"summary": "", "history": HISTORY}),
} | {
    f"query_rewriter_{method}": (
        "query_rewriter",
        {"method": method, "count": 3, "history": history, "languages": [], "examples": []},
    )
    for method, history in {
        "multi_query": [], "step_back": [], "decompose": HISTORY, "expand": [], "contextualize": HISTORY
    }.items()
}  # fmt: skip


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("file", CASES)
def test_a_prompt_is_the_golden_one(file, language):
    name, variables = CASES[file]
    asked = {"question" if name == "answer_grader" else "query": "Q?"}
    messages = render_prompt(name, language=language, **asked, **variables)
    text = "".join(f"=== {message.role.value}\n{message.text}\n" for message in messages)
    assert text == (GOLDEN / f"{file}_{language}.txt").read_text(encoding="utf-8")
