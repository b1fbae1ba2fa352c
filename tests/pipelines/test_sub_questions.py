"""`advanced` takes a question of several hops apart: what is searched, asked, streamed and answered, over real HTTP."""

import asyncio
import threading

import pytest
from tests.doubles.small_library import own_library

TEXTS = {
    "caizhou.txt": "Caizhou was taken on a snowy night in 817 by the general Li Su.",
    "lisu.txt": "Li Su was born in the prefecture of Lintao. He died in Luoyang in 821.",
    "salt.txt": "The salt monopoly was set up by Diwu Qi in 758.",
    "tax.txt": "The two-tax reform was proposed by Yang Yan in 780.",
}
HOPS = "Where was the general who took Caizhou in the snow born?"
HALVES = "Who set up the salt monopoly of the Tang, and who proposed the tax reform that followed it?"
FIRST, SECOND = "Who took Caizhou in the snow?", "Where was {1} born?"


def plan(*questions):
    return {"questions": [{"text": text, "needs": needs} for text, needs in questions]}


def asks(question):
    """Match the call that asks a sub-question, the last words of its prompt."""
    return lambda call: (
        "You answer one part of a larger question" in call.prompt
        and f"<question>\n{question}\n</question>" in call.prompt
    )


def cites(name, text, key):
    """Answer with the number that the passage with this file has in the call's own prompt."""

    def reply(call):
        number = call.prompt.split(f' file="{name}"')[0].rpartition('number="')[2].rstrip('"')
        return {"answer": f"{text} [{number}].", "key": key}

    return reply


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return own_library(tmp_path_factory.mktemp("library"), a=TEXTS)


@pytest.fixture
def llm(endpoint):
    endpoint.default = "Caizhou was taken by the general Li Su. Li Su was born in the prefecture of Lintao."
    return endpoint


@pytest.fixture
def two_hops(llm):
    llm.rule("You reword questions", plan((FIRST, []), (SECOND, [1])))
    llm.rule(asks(FIRST), cites("caizhou.txt", "Caizhou was taken by the general Li Su", "Li Su"))
    llm.rule(asks("Where was Li Su born?"), cites("lisu.txt", "Li Su was born in Lintao", "Lintao"))
    return llm


@pytest.fixture
def half_answered(two_hops):
    two_hops.rule(asks("Where was Li Su born?"), {"answer": "", "key": ""})
    two_hops.default = "Caizhou was taken by the general Li Su."
    return two_hops


def test_the_second_hop_is_searched_and_asked_with_the_first_answer(opened, two_hops):
    answer = opened("advanced").ask(HOPS, tenant_id="a")
    first, second = answer["metadata"]["sub_questions"]
    assert (first["question"], first["status"], first["needs"]) == (FIRST, "answered", [])
    assert (second["question"], second["needs"]) == ("Where was Li Su born?", [1])
    assert "Li Su" not in HOPS
    (asked,) = [prompt for prompt in two_hops.prompts if "<question>\nWhere was Li Su born?" in prompt]
    number = first["numbers"][0]
    pair = f"Question: {FIRST}\nAnswer: Caizhou was taken by the general Li Su [{number}]."
    assert f"<background>\n{pair}\n</background>" in asked
    last = two_hops.prompts[-1]
    assert f"{pair}\n---\nQuestion: Where was Li Su born?\nAnswer: Li Su was born in Lintao [" in last
    assert two_hops.calls == answer["metadata"]["llm_calls"] == 2 + 2
    assert answer["status"] == "answered"
    assert [citation["source"] for citation in answer["citations"]] == ["caizhou.txt", "lisu.txt"]


def test_independent_parts_are_asked_side_by_side(opened, llm):
    both = threading.Barrier(2, timeout=20)  # broken, and the reply an error, if one waits for the other

    def together(name, text, key):
        def reply(call):
            both.wait()
            return cites(name, text, key)(call)

        return reply

    halves = ("Who set up the salt monopoly?", "Who proposed the two-tax reform?")
    llm.rule("You reword questions", plan(*((text, []) for text in halves)))
    llm.rule(asks(halves[0]), together("salt.txt", "Diwu Qi set it up", "Diwu Qi"))
    llm.rule(asks(halves[1]), together("tax.txt", "Yang Yan proposed it", "Yang Yan"))
    answer = opened("advanced").ask(HALVES, tenant_id="a")
    assert [sub["status"] for sub in answer["metadata"]["sub_questions"]] == ["answered", "answered"]
    assert llm.max_in_flight == 2
    assert f"Question 1: {halves[0]}\nAnswer 1: Diwu Qi set it up [" in llm.prompts[-1]
    assert f"\n---\nQuestion 2: {halves[1]}\nAnswer 2: Yang Yan proposed it [" in llm.prompts[-1]
    assert llm.calls == 2 + 2


@pytest.mark.usefixtures("half_answered")
def test_a_part_that_the_engine_names_as_missing_is_the_last_token_too(opened):
    async def told():
        stream = opened("advanced").stream(HOPS, tenant_id="a")
        return [event.data["text"] async for event in stream if event.name == "token"]

    missing = "The sources do not say: Where was Li Su born?"
    assert "".join(asyncio.run(told())) == f"Caizhou was taken by the general Li Su. [1]\n\n{missing}"
