"""What books there are and what a chapter is about are answered in every mode, of the asking tenant's library only."""

import pytest
from tests.doubles.small_library import TENANT, own_library

MODES = ["simple", "advanced", "precise", "agent"]
BOOK = """---
title: The Salt War
author: Li Xi
---
# The Salt War

## Chapter 1. The monopoly

Salt was sold by the state from 758 on. Every well had its officer.

## Chapter 2. The smugglers

Wang Xianzhi dealt in salt without a licence and fled to the marshes. He had many friends there.

### The raid

In the spring his men burnt the office at Puzhou. The officer was drowned.

### The pardon

He waited. The court offered him a post in the guard, which he refused. His deputy was angry.
"""
SECRET = "---\ntitle: Secret\nauthor: Wei Zheng\n---\n# Secret\n\n## Chapter 2. Of tenant b\n\nNobody else reads this."
OUTLINE = [
    "Wang Xianzhi dealt in salt without a licence and fled to the marshes.",
    "In the spring his men burnt the office at Puzhou.",
    "He waited. The court offered him a post in the guard, which he refused.",
]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    mine = {"salt.md": BOOK, "poems.txt": "The moon is bright. The frost is white."}
    return own_library(tmp_path_factory.mktemp("salt"), **{TENANT: mine}, b={"secret.md": SECRET})


@pytest.fixture
def ask(opened):
    return lambda mode, question, tenant_id=TENANT: opened(mode).ask(question, tenant_id=tenant_id)


@pytest.mark.parametrize("mode", MODES)
def test_the_books_are_listed_without_a_search_in_every_mode(ask, mode):
    answer = ask(mode, "What books do you have?")
    assert (answer["status"], answer["citations"], answer["metadata"]["llm_calls"]) == ("unsearched", [], 0)
    assert answer["answer"].splitlines()[0] == "Books and documents in the library: 2"
    assert "salt.md" in answer["answer"]
    assert "poems.txt" in answer["answer"]
    assert "secret" not in answer["answer"]


@pytest.mark.parametrize("mode", MODES)
def test_who_wrote_a_book_is_what_its_file_says_of_the_asking_tenants_books(ask, mode):
    answer = ask(mode, "Who wrote The Salt War?")
    assert (answer["status"], answer["citations"], answer["metadata"]["llm_calls"]) == ("unsearched", [], 0)
    assert answer["answer"] == "The Salt War (salt.md) names Li Xi as its author. Nothing was looked up in its text."
    for question in ("Who wrote Secret?", "Who wrote poems?", "Who wrote The Salt War to the end?"):
        assert ask(mode, question)["status"] != "unsearched"


@pytest.mark.parametrize("mode", MODES)
def test_a_chapter_is_shown_by_the_beginning_under_each_heading(ask, mode):
    answer = ask(mode, "Summarise chapter 2")
    assert answer["status"] == "quoted"
    assert [citation["quote"] for citation in answer["citations"]] == OUTLINE
    assert answer["answer"].startswith("The beginning under each heading of the chapter")


def test_a_chapter_is_never_another_tenants(ask):
    answer = ask("simple", "第二章讲什么？", tenant_id="b")
    assert [citation["quote"] for citation in answer["citations"]] == ["Nobody else reads this."]


@pytest.mark.parametrize("question", ["Summarise chapter 7", "Summarise chapter 2 of The Annals"])
def test_a_chapter_that_is_not_there_is_not_replaced_by_another(ask, question):
    answer = ask("simple", question)
    assert "beginning under" not in answer["answer"]


@pytest.mark.parametrize("mode", ["simple", "precise"])
def test_with_a_model_the_chapter_is_summed_up_and_checked(ask, endpoint, mode):
    endpoint.default = f"{OUTLINE[0].rstrip('.')} [1]. He became emperor [1]."
    answer = ask(mode, "What is chapter 2 about?")
    (prompt,) = endpoint.prompts[-1:]
    assert "burnt the office at Puzhou" in prompt
    assert "Every well had its officer" not in prompt
    verdicts = {claim["text"]: claim["verdict"] for claim in answer["metadata"]["claims"]}
    assert verdicts.get("He became emperor.", "unsupported") == "unsupported"
