"""A reply that runs on costs little, and a check that nobody waits for ends."""

import asyncio
import random
import threading

import pytest
from haystack import Document
from haystack.dataclasses import ChatMessage
from tests.doubles.processor_time import seconds

from shiguan.answer.citation_extractor import CitationExtractor
from shiguan.claims.alignment import Alignment
from shiguan.claims.answer_check import AnswerCheck
from shiguan.llm.run import CheckStoppedError, Run, check_in_thread, raise_if_cancelled

WORDS = (
    "army river city governor tax salt horse winter rebel prince wall gate north south merchant road grain temple monk"
).split()


def long_reply(sentences):
    chance = random.Random(7)
    return " ".join(
        f"{' '.join(chance.choices(WORDS, k=8)).capitalize()} {chance.randint(600, 900)} [{chance.randint(1, 5)}]."
        for _ in range(sentences)
    )


DOCUMENTS = [
    Document(content=long_reply(25).replace("[", "(").replace("]", ")"), meta={"number": at}) for at in range(1, 6)
]


@pytest.fixture(scope="module", autouse=True)
def model_reads_once():
    """The embedder's time counts, too."""


@pytest.mark.slow
def test_three_thousand_sentences_cost_at_most_twice_what_eight_hundred_do():
    def check(text):
        stream = AnswerCheck(DOCUMENTS)
        for at in range(0, len(text), 20):
            if stream.add(text[at : at + 20]):
                stream.finished()
        stream.close()
        stream.finished()
        result = CitationExtractor().run([ChatMessage.from_assistant(text)], DOCUMENTS)
        assert any("too long" in warning for warning in result["warnings"])

    check(long_reply(800))
    assert seconds(check, long_reply(3_200), times=3) <= 2 * seconds(check, long_reply(800), times=3)


def test_the_same_reply_twice_as_long_is_split_no_more_often(monkeypatch):
    monkeypatch.setattr(Alignment, "best", lambda *_, **__: None)

    def looks(sentences):
        # How long each check takes does not matter: a passage of three words, and words alone, make it short.
        passage = Document(content="The army left.", meta={"number": 1})
        text, stream, count = long_reply(sentences), AnswerCheck([passage]), 0
        for at in range(0, len(text), 2_000):
            if stream.add(text[at : at + 2_000]):
                count += 1
                stream.finished()
        return count

    assert looks(500) <= looks(250)


async def test_a_cancelled_check_stops_at_its_next_claim():
    began, ended, release = threading.Event(), threading.Event(), threading.Event()

    def check():
        began.set()
        release.wait(10)
        try:
            raise_if_cancelled()
        except CheckStoppedError:
            ended.set()
            raise

    async def stage():
        with Run().stage("checks"):
            await check_in_thread(check)

    task = asyncio.create_task(stage())
    await asyncio.to_thread(began.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    release.set()
    assert await asyncio.to_thread(ended.wait, 10)


async def test_the_async_twin_gives_the_same_answer():
    reply = [ChatMessage.from_assistant(long_reply(3))]
    result = await CitationExtractor().run_async(reply, DOCUMENTS, query="What?")
    assert result["answers"][0].data == CitationExtractor().run(reply, DOCUMENTS, query="What?")["answers"][0].data
