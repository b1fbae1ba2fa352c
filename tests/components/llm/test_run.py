import asyncio
import gc
import threading
import weakref

import pytest

from shiguan.llm.run import Run, current_run


async def test_what_is_under_way_is_cancelled_and_nothing_else_begins():
    run = Run()
    ended = []

    async def stage(name, begin):
        await begin.wait()
        with run.stage(name):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                ended.append(name)
                raise

    now, later = asyncio.Event(), asyncio.Event()
    first, second = asyncio.create_task(stage("first", now)), asyncio.create_task(stage("second", later))
    now.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert run.running == ["first"]
    await run.stop()
    later.set()
    with pytest.raises(asyncio.CancelledError, match="before `second` began"):
        await second
    assert first.cancelled()
    assert (ended, run.running) == (["first"], [])


async def test_the_task_that_drives_the_run_is_not_cancelled_by_it():
    run = Run()
    with run.stage("alone"):
        await run.stop()
    await asyncio.sleep(0)
    assert run.visits["alone"] == 1


async def test_a_failure_that_nobody_awaits_is_not_reported_as_lost():
    run, complaints = Run(), []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))

    async def stage():
        with run.stage("s"):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise RuntimeError("on the way out") from None

    task = asyncio.create_task(stage())
    await asyncio.sleep(0)
    await run.stop()
    del task
    await asyncio.sleep(0)
    assert complaints == []


def test_it_works_without_an_event_loop_and_reaches_threads():
    run, seen = Run(), []
    with run.entered():
        assert current_run() is run
        with run.stage("s"):
            thread = threading.Thread(target=lambda: seen.append(current_run()))
            thread.start()
            thread.join()
    assert (seen, current_run()) == ([None], None)  # a thread of its own has a context of its own
    assert run.times["s"] >= 0


def test_what_a_question_held_is_freed_without_a_garbage_collection():
    async def question():
        run = Run()

        async def part():
            with run.stage("part"):
                await asyncio.sleep(0)

        with run.entered():
            await asyncio.create_task(part())
        return weakref.ref(run)

    gc.disable()
    try:
        assert asyncio.run(question())() is None
    finally:
        gc.enable()
