"""Conversations over the embedded deployment, whole: real stores, the real embedder, an LLM over real HTTP or none."""

import threading

import pytest
from tests.doubles.small_library import TENANT

from shiguan.errors import AnswerError

TOPIC = "Who proposed the two-tax reform?"
FOLLOW_UP = "And when was it collected?"
ABOUT = "What have we talked about so far?"
# What no source says, said by the model all the same.
FALSE = "It was collected in 1672."


@pytest.fixture(params=["simple", "advanced", "precise"])
def mode(request):
    return request.param


@pytest.fixture
def conversation(request):
    """An id of the test's own."""
    return f"c{abs(hash(request.node.nodeid))}"


def turns(runner, conversation, tenant=TENANT):
    return runner.conversations.store.turns(tenant, conversation)


def test_a_follow_up_finds_its_passage_by_the_id_alone(opened, mode, conversation):
    runner = opened(mode)
    first = runner.ask(TOPIC, tenant_id=TENANT, conversation_id=conversation)
    second = runner.ask("And when?", tenant_id=TENANT, conversation_id=conversation)
    assert first["conversation_id"] == second["conversation_id"] == conversation
    assert (second["query"], second["documents"][0]["source"]) == ("And when?", "tax.txt")
    assert [turn.question for turn in turns(runner, conversation)] == [TOPIC, "And when?"]


def test_the_three_sources(opened, mode, conversation):
    runner = opened(mode)
    asked = [
        runner.ask(question, tenant_id=TENANT, conversation_id=conversation, explain=True)
        for question in (TOPIC, FOLLOW_UP, ABOUT)
    ]
    assert [answer["metadata"]["explain"]["source"] for answer in asked] == ["database", "both", "history"]
    assert [turn.source for turn in turns(runner, conversation)] == ["database", "both", "history"]
    assert (asked[2]["status"], asked[2]["citations"], asked[2]["documents"]) == ("recalled", [], [])
    assert f"> {TOPIC}" in asked[2]["answer"]
    assert f"> {FOLLOW_UP}" in asked[2]["answer"]


def test_a_question_refused_by_its_threshold_does_not_end_its_conversation(opened, mode, conversation):
    runner = opened(mode)
    refused = runner.ask(TOPIC, tenant_id=TENANT, conversation_id=conversation, confidence_threshold=1.0)
    assert refused["status"] == "not_found"
    for question in (FOLLOW_UP, TOPIC):
        assert runner.ask(question, tenant_id=TENANT, conversation_id=conversation)["query"] == question
    assert [turn.meta["thread"]["read"] for turn in turns(runner, conversation)[:1]] == [[]]


def test_what_was_said_wrongly_does_not_come_back_as_a_fact(llm, opened, conversation):
    llm.default = FALSE
    runner = opened("simple")
    runner.ask(TOPIC, tenant_id=TENANT, conversation_id=conversation)
    llm.default = f"{FALSE} [1]"
    answer = runner.ask(FOLLOW_UP, tenant_id=TENANT, conversation_id=conversation)
    (prompt,) = [call.prompt for call in llm.requests if FOLLOW_UP in call.prompt and "<sources>" in call.prompt]
    messages = next(call.body["messages"] for call in llm.requests if call.prompt == prompt)
    assert "earlier questions and answers, was said earlier in this conversation; it is neither" in prompt
    assert "Where the two disagree, the facts from the sources stand; memory is never cited." in prompt
    assert [message["role"] for message in messages if "1672" in message["content"]] == ["assistant"]
    assert answer["citations"] == []
    assert {claim["verdict"] for claim in answer["metadata"]["claims"]} <= {"unsupported", "contradicted"}
    assert "⚠" in answer["answer"]


def test_the_answer_comes_before_its_summary_is_written(llm, opened, conversation):
    go = threading.Event()
    llm.rule("summary", lambda call: '{"summary": "The two-tax reform."}' if go.wait(30) else "")
    runner = opened("simple")
    answer = runner.ask(TOPIC, tenant_id=TENANT, conversation_id=conversation)
    assert answer["status"] == "answered"
    store = runner.conversations.store
    assert (len(store.turns(TENANT, conversation)), store.nodes(TENANT, conversation)) == (1, [])
    go.set()
    for thread in runner.conversations._threads:
        thread.shutdown(wait=True)
    assert [node.level for node in store.nodes(TENANT, conversation)] == [0]


def test_a_search_by_the_id_finds_what_the_turns_from_the_caller_find(llm, opened, conversation):
    runner = opened("simple")
    first = runner.ask(TOPIC, tenant_id=TENANT, conversation_id=conversation)
    history = [{"role": "user", "content": TOPIC}, {"role": "assistant", "content": first["answer"]}]
    seen = []
    for more in ({"history": history}, {"conversation_id": conversation}, {}):
        asked = {"tenant_id": TENANT, "outputs": ["conversation.query"], **more}
        documents, _ = runner.search(FOLLOW_UP, tenant_id=TENANT, **more)
        seen.append((runner.trace(FOLLOW_UP, **asked)["outputs"]["conversation.query"], [one.id for one in documents]))
    assert seen[0] == seen[1]
    assert seen[1][0].startswith(f"{FOLLOW_UP} ")
    assert seen[2][0] == FOLLOW_UP
    assert len(turns(runner, conversation)) == 1


def test_without_an_id_and_after_an_error_nothing_is_kept(llm, opened, conversation):
    runner = opened("simple")
    before = runner.conversations.store.conversations(TENANT)
    assert "conversation_id" not in runner.ask(TOPIC, tenant_id=TENANT)
    assert runner.conversations.store.conversations(TENANT) == before
    llm.next(times=9, status=400)
    with pytest.raises(AnswerError):
        runner.ask(TOPIC, tenant_id=TENANT, conversation_id=conversation)
    assert turns(runner, conversation) == []


async def test_a_stream_keeps_its_turn_before_it_ends(opened, conversation):
    runner = opened("simple")
    async for event in runner.stream(TOPIC, tenant_id=TENANT, conversation_id=conversation):
        if event.is_terminal:
            assert event.data["conversation_id"] == conversation
            assert [turn.question for turn in turns(runner, conversation)] == [TOPIC]
