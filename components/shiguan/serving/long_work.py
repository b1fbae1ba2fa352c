"""Work that may take long, in threads of its own, of which each tenant has a share."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from typing import TypeVar
from weakref import WeakSet, WeakValueDictionary

from shiguan.errors import TimeLimitError
from shiguan.llm.run import CheckStoppedError, Run, Stage
from shiguan.serving.error_replies import ApiError

Result = TypeVar("Result")

# All threads share one processor in Python; a tenant's second thread is for what is short while a long one runs.
_THREADS, _SHARE = 4, 2


class LongWork:
    """Runs in threads what takes seconds; loops of such work call `raise_if_cancelled`, and end with their stage."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="long-work")
        self._shares: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._stages: WeakSet[Stage] = WeakSet()

    async def run(self, tenant_id: str, name: str, work: Callable[[], Result]) -> Result:
        """Run a function in a thread; a `TimeLimitError` where it takes longer than `seconds`."""
        share = self._shares.setdefault(tenant_id, asyncio.Semaphore(_SHARE))
        loop, run, timer = asyncio.get_running_loop(), Run(tenant_id=tenant_id), asyncio.timeout(self.seconds)

        def give_back(_: Future[Result]) -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(share.release)

        try:
            async with timer:
                with run.entered(), run.stage(name) as stage:
                    self._stages.add(stage)
                    await share.acquire()
                    done = self._pool.submit(copy_context().run, work)
                    done.add_done_callback(give_back)  # when the thread has come to its end, whoever still waits
                    return await asyncio.wrap_future(done)
        except CheckStoppedError:
            raise ApiError("shutting_down") from None  # nothing else ends it while it is awaited
        except TimeoutError:
            if not timer.expired():
                raise
            raise TimeLimitError(f"It took longer than {self.seconds:g} s. Ask for less.", stage=name) from None

    def stop(self) -> None:
        """End all work at its next step."""
        for stage in list(self._stages):
            stage.ended = True
