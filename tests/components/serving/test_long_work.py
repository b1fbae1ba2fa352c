"""Long work: each tenant's share of the threads, and what ends it."""

import asyncio
import threading

import pytest

from shiguan.errors import TimeLimitError
from shiguan.llm.run import CheckStoppedError, raise_if_cancelled
from shiguan.serving.error_replies import ApiError
from shiguan.serving.long_work import LongWork

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
