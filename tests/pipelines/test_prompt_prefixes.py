"""The prompts of a conversation, read off the wire: each begins like the one before it and only adds to it."""

import re
from itertools import pairwise, product, takewhile

import pytest
from tests.doubles.small_library import TENANT, own_library

THEMES = ("salt", "tea", "iron", "copper", "grain", "canal", "horse", "silk")
QUESTIONS = [
    "What did Liu Yan do about the salt tax of the canal office?",
    "How did Liu Yan pay for the canal boats and the grain?",
    "What did Liu Yan say about the copper coins and the salt tax?",
    "Which offices of the canal did Liu Yan leave to others?",
    "How did Liu Yan keep the price of grain and salt even?",
]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Eight chapters on one man's office, each longer than two hundred tokens."""
    memorial = "Liu Yan wrote in memorial {} that the {} of the canal office be {} before the {} tax."
    about = list(enumerate(product(("bought", "sold"), THEMES), start=1))
    chapters = [
        f"# Of {theme}\n\n" + " ".join(memorial.format(at, theme, verb, other) for at, (verb, other) in about)
        for theme in THEMES
    ]
    return own_library(tmp_path_factory.mktemp("office"), **{TENANT: {"office.md": "\n\n".join(chapters)}})


@pytest.fixture
def llm(llm):
    llm.default = "Liu Yan wrote that the salt of the canal office be stored. [1]"
    return llm


def prompts(llm):
    """What the answering model was sent, as the roles and texts of a request's messages one after the other."""
    sent = [call.body["messages"] for call in llm.requests if "<sources>\n" in call.prompt]
    return ["".join(f"\0{one['role']}\0{one['content']}" for one in messages) for messages in sent]


def same(before, now):
    """How many characters two prompts have in common from the beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, now, strict=False)))


def headers(prompt):
    return re.findall(r'^<source number="(\d+)"(?! shown)[^>]*section="([^"]*)"', prompt, re.MULTILINE)


@pytest.mark.parametrize("mode", ["simple", "advanced"])
def test_five_turns_on_one_topic_reuse_most_of_the_prompt_before(opened, llm, mode):
    runner = opened(mode)
    for question in QUESTIONS:
        runner.ask(question, tenant_id=TENANT, conversation_id=f"topic-{mode}")
    sent = prompts(llm)[-5:]
    shares = [same(before, now) / len(now) for before, now in pairwise(sent)]
    assert len(shares) == 4
    assert sum(shares) / 4 >= 0.7
    # The request before, up to its sources, is the beginning of this one.
    for before, now in pairwise(sent):
        assert now.startswith(before[: before.rindex("</sources>") + len("</sources>")])
    # A passage stands in a prompt once, and under one number.
    found = headers(sent[-1])
    assert len({number for number, _ in found}) == len(found)
    assert 'shown="above"' in sent[-1]


def test_turns_are_messages_of_their_roles_and_marks_go_on_counting(opened, llm):
    runner = opened("simple")
    runner.ask(QUESTIONS[0], tenant_id=TENANT, conversation_id="roles", top_k=1)
    llm.default += " He wrote of the tea of the office. [2]"
    answer = runner.ask("What did Liu Yan write of the tea?", tenant_id=TENANT, conversation_id="roles", top_k=1)
    messages = llm.requests[-1].body["messages"]
    while "<sources>\n" not in messages[-1]["content"]:  # a summary that was written meanwhile
        llm.requests.pop()
        messages = llm.requests[-1].body["messages"]
    assert [one["role"] for one in messages] == ["system", "user", "assistant", "user"]
    assert messages[2]["content"] == "Liu Yan wrote that the salt of the canal office be stored. [1]"
    assert [re.findall(r'<source number="(\d)"', messages[at]["content"]) for at in (1, 3)] == [["1"], ["2"]]
    assert [document["number"] for document in answer["documents"]] == [1, 2]
    assert {citation["number"] for citation in answer["citations"]} == {1, 2}


@pytest.mark.parametrize("mode", ["simple", "advanced", "precise", "agent"])
def test_the_goal_of_a_follow_up_stands_last_in_every_mode(opened, llm, mode):
    goal = "The person wants to know how Liu Yan paid for the boats."
    llm.rule('"goal"', f'{{"goal": "{goal}"}}')
    runner = opened(mode)
    asked = {"tenant_id": TENANT, "conversation_id": f"goal-{mode}"}
    runner.ask(QUESTIONS[1], **asked)
    runner.ask("And how did he pay for them?", **asked)
    prompt = next(one for one in prompts(llm) if "And how did he pay" in one or "how did he pay for them" in one)
    last = prompt.rpartition("</question>")[2].split("\0")[0].strip()
    own = f'And how did he pay for them? (going on from "{QUESTIONS[1]}")'
    assert last == "What the answer is for: " + (own if mode in ("simple", "agent") else goal)


def test_what_a_provider_had_cached_is_in_the_usage(opened, llm):
    llm.cached_tokens = 512
    answer = opened("simple").ask(QUESTIONS[0], tenant_id=TENANT)
    assert answer["metadata"]["usage"]["cached_tokens"] == 512
    assert answer["metadata"]["calls"][0]["tokens"]["cached_tokens"] == 512
