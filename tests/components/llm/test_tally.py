import asyncio
import threading
from contextvars import copy_context

from shiguan.llm.tally import LlmTally, note_llm_call, tallied_llm_calls

USAGE = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12, "details": {"cached_tokens": 5}}


def test_calls_and_tokens_are_added_up():
    with tallied_llm_calls() as tally:
        note_llm_call(USAGE)
        note_llm_call({"prompt_tokens": 1})
        note_llm_call(None)
    assert tally == LlmTally(3, {"prompt_tokens": 11, "completion_tokens": 2, "total_tokens": 12})


def test_a_call_outside_the_block_is_not_counted():
    with tallied_llm_calls() as tally:
        pass
    note_llm_call(USAGE)
    assert tally.calls == 0


def test_a_call_in_a_thread_that_shares_the_context_is_counted():
    with tallied_llm_calls() as tally:
        thread = threading.Thread(target=copy_context().run, args=(note_llm_call, USAGE))
        thread.start()
        thread.join()
    assert tally.calls == 1


async def test_overlapping_runs_do_not_mix():
    async def run(calls):
        with tallied_llm_calls() as tally:
            for _ in range(calls):
                await asyncio.sleep(0)
                note_llm_call({})
            return tally.calls

    assert await asyncio.gather(run(1), run(3)) == [1, 3]
