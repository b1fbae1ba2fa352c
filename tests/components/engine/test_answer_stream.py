"""The three modes told event by event, with a model over real HTTP and without one."""

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache

import pytest
from tests.doubles.stand_in_llm import Fault, StandInLlm

from shiguan.claims.checker import ClaimChecker
from shiguan.engine.answer_stream import EVENTS
from shiguan.engine.runner import Runner
from shiguan.errors import RefusedError, TimeLimitError
from shiguan.llm.run import TimeLimits

QUESTION = "Who proposed the two-tax reform?"
GOOD = "Yang Yan proposed the two-tax reform in 780. [1] It was collected in summer and autumn [1]."
BAD = "Empress Wu invented the two-tax reform in Rome in 12 BC. [1]"
FOLLOW_UP = "What did it pay by 780?"
HISTORY = [
    {"role": "user", "content": "Who set up the salt monopoly?"},
    {"role": "assistant", "content": "Diwu Qi set up the salt monopoly in 758."},
]


@pytest.fixture(scope="module")
def endpoint():
    with StandInLlm() as llm:
        yield llm


@pytest.fixture(scope="module")
def runners(library):
    """Warm runners by mode: of a language model, and of none."""
    with ExitStack() as opened:

        @cache
        def runner(mode, model):
            runner = opened.enter_context(Runner("embedded", mode, data_dir=library))
            # In a thread, since a fixture of an asynchronous test is set up inside its event loop.
            with ThreadPoolExecutor(1) as pool:
                pool.submit(runner.ask, QUESTION, tenant_id="a").result()
            return runner

        yield runner


@pytest.fixture
def llm(endpoint, runners, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    endpoint.rules, endpoint.default = [], GOOD
    endpoint.time_to_first_token = endpoint.time_per_token = 0.0
    for mode in ("simple", "advanced", "precise"):
        runners(mode, "llm")
    endpoint.reset()
    return endpoint


@pytest.fixture
def runner(llm, runners):
    return lambda mode: runners(mode, "llm")


async def told(runner, query=QUESTION, **options):
    return [event async for event in runner.stream(query, tenant_id="a", **options)]


def named(events, name):
    return [event.data for event in events if event.name == name]


def shown(events):
    return "".join(token["text"] for token in named(events, "token"))


def names(events):
    """The names in order, repetitions once."""
    order = [event.name for event in events]
    return [name for place, name in enumerate(order) if place == 0 or order[place - 1] != name]


def without(found, *left_out):
    return {name: value for name, value in found.items() if name not in left_out}


@pytest.mark.parametrize("mode", ["simple", "advanced", "precise"])
async def test_every_mode_tells_its_story_and_ends_once(mode, runner):
    events = await told(runner(mode))
    assert [event.id for event in events] == list(range(1, len(events) + 1))
    assert [event.name for event in events if event.is_terminal] == ["generation_complete"]
    assert names(events)[:3] == ["query_rewritten", "documents_retrieved", "generation_start"]
    assert {event.name for event in events} <= EVENTS.keys()
    done = events[-1].data
    assert done["answer"].startswith("Yang Yan")
    assert named(events, "query_rewritten")[0]["queries"] == [QUESTION]
    assert named(events, "documents_retrieved")[-1]["documents"] == [
        without(one, "content") for one in done["documents"]
    ]
    # The same sentences with the same verdicts, places and spans as in the finished answer.
    claims = named(events, "claim")
    assert [without(claim, "index", "citations") for claim in claims] == done["metadata"]["claims"]
    assert [claim["index"] for claim in claims] == list(range(len(claims)))
    late = ("confidence", "citation_num", "source_id", "chunk_id", "content", "score")
    assert [citation for claim in claims for citation in claim["citations"]] == [
        without(citation, *late) for citation in done["citations"]
    ]
    assert done["metadata"]["time_to_first_token_ms"] > 0


async def test_tokens_are_the_checked_sentences_and_claims_come_between_them(runner, llm):
    llm.time_per_token = 0.01
    events = await told(runner("simple"))
    assert shown(events) == events[-1].data["answer"]
    assert [token["text"].strip() for token in named(events, "token")] == [
        "Yang Yan proposed the two-tax reform in 780. [1]", "It was collected in summer and autumn [1]."
    ]  # fmt: skip
    order = [event.name for event in events]
    assert order.index("claim") < max(place for place, name in enumerate(order) if name == "token")
    usage = events[-1].data["metadata"]["usage"]
    assert usage["completion_tokens"] > 10
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


async def test_what_was_judged_while_it_was_written_is_not_judged_again(runner, llm, monkeypatch):
    judged, judge = Counter(), ClaimChecker._judged

    def counted(checker, evidence, stated):
        judged[stated, evidence.texts] += 1
        return judge(checker, evidence, stated)

    monkeypatch.setattr(ClaimChecker, "_judged", counted)
    llm.time_per_token = 0.01
    (done,) = named(await told(runner("simple")), "generation_complete")
    assert {stated for stated, _ in judged} >= {"Yang Yan proposed the two-tax reform in 780."}
    assert len(done["metadata"]["claims"]) == 2
    assert set(judged.values()) == {1}


@pytest.mark.parametrize("mode", ["simple", "advanced", "precise"])
async def test_without_a_model_the_quotations_are_the_tokens(runners, mode):
    events = await told(runners(mode, "none"))
    done = events[-1].data
    assert names(events)[:2] == ["query_rewritten", "documents_retrieved"]
    assert (done["status"], named(events, "claim"), named(events, "generation_start")) == ("quoted", [], [])
    assert shown(events) == done["answer"]
    assert len(named(events, "token")) == len(done["citations"])


async def test_nothing_of_a_rejected_draft_is_a_token(runner, llm):
    llm.rule(lambda call: "</sources>" in call.prompt, BAD, times=1)
    events = await told(runner("precise"))
    (rejected,) = named(events, "draft_rejected")
    assert rejected["attempt"] == 1
    assert rejected["verdicts"]["unsupported"] + rejected["verdicts"]["contradicted"] == 1
    assert "Rome" in rejected["feedback"]
    assert rejected["queries"]
    assert [start["attempt"] for start in named(events, "generation_start")] == [1, 2]
    assert shown(events) == events[-1].data["answer"]
    assert "Rome" not in shown(events)


async def test_an_answer_that_is_refused_at_last_says_why(runner, llm):
    llm.default = BAD
    events = await told(runner("precise"))
    assert [rejected["attempt"] for rejected in named(events, "draft_rejected")] == [1, 2, 3]
    assert named(events, "draft_rejected")[-1]["queries"] == []
    assert events[-1].data["status"] == "refused"
    assert "Rome" not in shown(events)


async def test_a_follow_up_is_told_as_it_is_searched_for(runner, llm):
    llm.rule("You reword questions", {"query": "What did the salt monopoly pay by 780?"})
    events = await told(runner("advanced"), FOLLOW_UP, history=HISTORY)
    assert [one["query"] for one in named(events, "query_rewritten")] == ["What did the salt monopoly pay by 780?"]


async def test_a_stream_that_breaks_in_the_middle_is_an_error_after_its_tokens(runner, llm):
    llm.default, llm.time_per_token = GOOD + " " + GOOD, 0.01
    llm.next(truncate_after=25)
    events = await told(runner("simple"))
    assert named(events, "token")[0]["text"] == "Yang Yan proposed the two-tax reform in 780. [1]"
    assert events[-1].name == "error"


async def test_a_filter_that_no_store_understands_is_refused(runners):
    odd = {"field": "meta.source", "operator": ">", "value": "a"}
    with pytest.raises(RefusedError, match="Correct them"):
        await runners("simple", "none").ask_async(QUESTION, tenant_id="a", filters=odd)


async def test_what_a_question_comes_with_reaches_the_model(runner, llm):
    for mode in ("simple", "advanced", "precise"):
        await told(runner(mode), temperature=1.25, task="compare", profile="history", language="zh")
        call = llm.requests[-1]
        assert call.body["temperature"] == 1.25
        assert "逐点写明" in call.prompt, mode
        assert "纪年、月、日照资料书写" in call.prompt, mode


FOLLOWS = {"query": FOLLOW_UP, "history": HISTORY}  # the goal is restated while it is reworded


@pytest.mark.parametrize(("mode", "streams", "asked", "calls"), [
    ("simple", True, {"query": QUESTION}, 1), ("simple", False, {"query": QUESTION}, 1), ("advanced", False, FOLLOWS, 2),
])  # fmt: skip
async def test_whoever_goes_away_ends_the_calls_of_the_model(runner, llm, mode, streams, asked, calls):
    llm.time_to_first_token = 30
    work = told(runner(mode), **asked) if streams else runner(mode).ask_async(**asked, tenant_id="a")
    asking = asyncio.create_task(work)
    assert await asyncio.to_thread(llm.wait_for, lambda llm: llm.in_flight == calls)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert await asyncio.to_thread(llm.wait_for, lambda llm: llm.disconnects == calls, 20)
    assert llm.calls == calls


async def test_closing_a_stream_in_the_middle_ends_the_call_of_the_model(runner, llm):
    llm.default, llm.time_per_token = f"{GOOD} {GOOD * 20}", 0.02
    stream = runner("simple").stream(QUESTION, tenant_id="a")
    async for event in stream:
        if event.name == "token":
            break
    await stream.aclose()
    assert await asyncio.to_thread(llm.wait_for, lambda llm: llm.disconnects == 1, 5)


@pytest.mark.parametrize("mode", ["simple", "precise"])
async def test_a_model_that_hangs_is_given_up_at_its_limit_and_the_sources_are_quoted(mode, runner, llm):
    llm.rule(lambda call: "</sources>" in call.prompt, fault=Fault(hang=True))
    answer = await runner(mode).ask_async(QUESTION, tenant_id="a", limits=TimeLimits(llm=0.5))
    assert (answer["status"], answer["citations"][0]["source"]) == ("quoted", "tax.txt")
    (warning,) = [text for text in answer["metadata"]["warnings"] if text.startswith("No model answered: ")]
    assert "sent nothing for 0.5 s" in warning
    assert await asyncio.to_thread(llm.wait_for, lambda llm: llm.disconnects == 1, 20)


async def test_a_slow_stream_that_lives_is_not_given_up(runner, llm):
    llm.time_per_token = 0.05
    events = await told(runner("simple"), limits=TimeLimits(llm=0.6))
    assert events[-1].name == "generation_complete"
    assert events[-1].data["metadata"]["timings_ms"]["generator"] > 600


async def test_a_rewriting_that_takes_too_long_is_left_out(runner, llm):
    llm.rule("You reword questions", fault=Fault(hang=True))
    options = {"history": HISTORY, "limits": TimeLimits(helper=0.2)}
    answer = await runner("advanced").ask_async(FOLLOW_UP, tenant_id="a", **options)
    assert answer["status"] == "answered"
    assert any("did not answer within 0.2 s" in warning for warning in answer["metadata"]["warnings"])


async def test_a_question_that_takes_too_long_says_what_was_at_work(runner, llm):
    llm.next(times=2, hang=True)
    limits = TimeLimits(request=1)
    with pytest.raises(TimeLimitError, match="longer than 1 s while `generator` was at work"):
        await runner("simple").ask_async(QUESTION, tenant_id="a", limits=limits)
    last = (await told(runner("simple"), limits=limits))[-1]
    assert (last.name, type(last.error), last.error.stage) == ("error", TimeLimitError, "generator")
    assert await asyncio.to_thread(llm.wait_for, lambda llm: llm.disconnects == 2, 5)
