"""Long work: each tenant's share of the threads, and what ends it."""

import asyncio
import threading

import pytest
from haystack import Document
from haystack.dataclasses import ByteStream

from shiguan import limited_process
from shiguan.claims.checker import checker_of
from shiguan.claims.claims import split_claims
from shiguan.conversations import Conversation, Turn
from shiguan.engine.conversations import export_markdown
from shiguan.engine.library import Library, read_file
from shiguan.engine.places import PlaceFinder
from shiguan.engine.timeline import timeline
from shiguan.engine.why import ExpectedPassages
from shiguan.errors import TimeLimitError
from shiguan.llm.run import CheckStoppedError, Run, raise_if_cancelled
from shiguan.serving.error_replies import ApiError
from shiguan.serving.long_work import LongWork
from shiguan.verify.quotations import QuotationSearch
from shiguan.verify.reading import read_text

ENDLESS = 60.0


class Endless:
    """Work that ends only where it is told to; `begun` when it has begun, `ended` when it has been told."""

    def __init__(self):
        self.begun, self.ended = threading.Event(), threading.Event()

    def __call__(self):
        self.begun.set()
        for _ in iter(int, 1):
            try:
                raise_if_cancelled()
            except CheckStoppedError:
                self.ended.set()
                raise


async def happens(event):
    assert await asyncio.to_thread(event.wait, ENDLESS)


async def started(long, tenant_id):
    work = Endless()
    task = asyncio.create_task(long.run(tenant_id, "verify", work))
    await happens(work.begun)
    return work, task


async def test_a_tenant_with_two_works_waits_for_its_third_and_another_does_not():
    long = LongWork(ENDLESS)
    (first, task), (second, other) = await started(long, "acme"), await started(long, "acme")
    third = asyncio.create_task(long.run("acme", "verify", lambda: "third"))
    assert await long.run("beta", "export", lambda: "other") == "other"
    assert not third.done()
    task.cancel()
    assert await third == "third"
    await happens(first.ended)
    assert not second.ended.is_set()
    other.cancel()
    await happens(second.ended)


async def test_work_that_takes_too_long_is_told_and_ends():
    long = LongWork(0.05)
    work = Endless()
    with pytest.raises(TimeLimitError, match=r"took longer than 0\.05 s"):
        await long.run("acme", "verify", work)
    if work.begun.is_set():
        await happens(work.ended)


async def test_a_server_that_stops_ends_all_work():
    long = LongWork(ENDLESS)
    works = [await started(long, tenant) for tenant in ("acme", "beta")]
    long.stop()
    for work, task in works:
        await happens(work.ended)
        with pytest.raises(ApiError) as caught:
            await task
        assert caught.value.body() == ApiError("shutting_down").body()


META = {"source": "x.txt", "source_id": "s", "section": [], "position": 0, "tenant_id": "a"}
PASSAGE = Document(id="p", content="The wall was pulled down in 904.", meta=META)


class Shelf:
    """Both stores of a library of one passage."""

    def filter_documents(self, filters):
        return [PASSAGE]

    def list_meta(self, filters, fields):
        return [{"id": "p", "source_id": "s", "position": 0, "when": []}]


def timeline_of_one():
    library = Library.__new__(Library)
    library.stores = {"children": Shelf()}
    timeline(library, tenant_id="a")


# So long that it is still being read when somebody looks.
LONG = ByteStream(b"The wall was pulled down. " * 40_000, meta={"file_name": "x.txt"})
EVERY = {
    "a file is read": lambda: read_file(LONG, "embedded"),
    "a text is read": lambda: read_text('"The wall was pulled down."'),
    "claims are checked": lambda: checker_of({1: PASSAGE}).check(split_claims("The wall was pulled down [1].")),
    "quotations are looked for": lambda: QuotationSearch({"parents": Shelf(), "children": Shelf()}, "a").check(
        "was pulled down in 904", ""
    ),
    "why": lambda: ExpectedPassages({"parents": Shelf()}, "a").find("was pulled down"),
    "places": lambda: PlaceFinder([PASSAGE]).find(
        {"quote": "was pulled up", "selector": {"exact": "was pulled up", "prefix": "", "suffix": ""}}
    ),
    "export": lambda: export_markdown(Conversation("c", "T", 0.0, 0.0, 1, "b"), [Turn("Who?", "He.", number=1)]),
    "timeline": timeline_of_one,
}


@pytest.mark.parametrize("kind", EVERY)
def test_every_kind_of_work_looks_whether_it_is_still_wanted(kind, monkeypatch):
    monkeypatch.setattr(limited_process, "_LOOK_SECONDS", 0.0)
    with Run().entered() as run, run.stage("work") as stage:
        stage.ended = True
        with pytest.raises(CheckStoppedError):
            EVERY[kind]()
