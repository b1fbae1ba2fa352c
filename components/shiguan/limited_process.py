"""
Work that a hostile file could make endless or huge, in a process of its own that ends at a limit of time and memory.

Every thread has one such process, used again for its next piece of work. It is no sandbox: it has the rights of this
process. What it is given and what it gives back is plain data.
"""

import gc
import json
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import util
from pathlib import Path
from typing import Any
from weakref import WeakSet

from shiguan.errors import error_behind

# What waits, for a disk or for other processes, takes no processor and ends, too.
_WAITING_FACTOR = 6
# A process that is not ready after so long has something wrong with it.
_STARTING_SECONDS = 600.0
_LOOK_SECONDS = 0.2
# An idle process goes after so long.
_IDLE_SECONDS = 60
# One that keeps more than it had when it was ready, perhaps for a leak in a library, is replaced by a new one.
_MOST_KEPT = 500_000_000


@dataclass(frozen=True)
class Limits:
    """Seconds of one processor, bytes of memory beyond what the process has when it is ready, bytes of the answer."""

    seconds: float
    memory: int
    answer: int


class LimitError(Exception):
    """The work reached a limit; the message is a clause about it, such as `took more than 500 MB of memory`."""


def start_process(prepare: Callable[..., object], *arguments: str) -> None:
    """Start this thread's process, and let it load what it needs while the caller goes on."""
    _process().submit(_prepared, prepare, arguments)


def run_limited(
    task: Callable[..., Any],
    *arguments: Any,
    limits: Limits,
    prepare: tuple[Callable[..., object], str],
    waiting: Callable[[], object] = lambda: None,
) -> Any:
    """
    Run a function in this thread's process and return its result, which must be data that JSON knows.

    The limits begin after `prepare`, a function with its argument, has loaded what the work needs. `waiting` is called
    all the while, and ends the work by raising.
    """
    from loky.process_executor import TerminatedWorkerError  # noqa: PLC0415

    process, clock = _process(), limits.seconds * _WAITING_FACTOR
    try:
        _awaited(process.submit(_prepared, prepare[0], prepare[1:]), waiting, _STARTING_SECONDS)
        future = process.submit(_limited, task, arguments, str(Path.cwd()), limits, clock)
        # The process ends itself in time, and knows what does not count; a stopped one does nothing.
        longest = clock + _STARTING_SECONDS * hasattr(signal, "setitimer")
        answer = json.loads(_awaited(future, waiting, longest))
    except TerminatedWorkerError as error:
        if "SIGPROF" in str(error):
            raise LimitError(f"took more than {limits.seconds:.0f} seconds of the processor") from None
        if "SIGALRM" in str(error):
            raise LimitError(f"took longer than {clock:.0f} seconds") from None
        raise LimitError("ended the process that did it, perhaps for want of memory") from None
    except BaseException as error:
        process.shutdown(kill_workers=True)
        if isinstance(error, TimeoutError):
            raise LimitError(f"took longer than {clock:.0f} seconds") from None
        raise
    if answer["kept"] > _MOST_KEPT:
        process.shutdown(kill_workers=True)
    if "limit" in answer:
        raise LimitError(answer["limit"])
    return answer["result"]


def _process() -> Any:
    # Imported here: who asks reads no file, and would wait for what takes a twentieth of its start.
    from loky import get_reusable_executor  # noqa: PLC0415

    # One thread of a numeric library: each takes memory, and there is nothing to compute.
    variables = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    # loky replaces a process that has grown, with a warning, between what prepares the work and the work.
    variables |= {"LOKY_MAX_MEMORY_LEAK_SIZE": "1e18"}
    process = get_reusable_executor(
        1, timeout=_IDLE_SECONDS, initializer=_begin, initargs=(os.getpid(),), env=variables
    )
    _started.add(process)
    return process


_started: "WeakSet[Any]" = WeakSet()
_RARELY = (100_000, 50, 100)
"""Python's thresholds of garbage collection in such a process."""
# Where `psutil` and `pgrep` are missing, it kills the process alone, which has no others.
warnings.filterwarnings("ignore", message="Failed to kill subprocesses")


def end_all() -> None:
    """End the processes of all threads, whatever they do; for a program that is about to end."""
    for process in list(_started):
        process.shutdown(kill_workers=True)
    # A process that ends at once runs no finalizers: their semaphores would be reported as leaked, on three lines.
    util._run_finalizers(0)  # type: ignore[attr-defined]


def _awaited(future: "Future[Any]", waiting: Callable[[], object], seconds: float) -> Any:
    end = time.monotonic() + seconds
    while True:
        try:
            return future.result(_LOOK_SECONDS)
        except TimeoutError:
            if time.monotonic() > end:
                raise
            waiting()


# ---- what follows runs in the other process --------------------------------------------------------------------------


def _begin(parent: int) -> None:
    """Make the process ready: it dies with its parent, and says nothing."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_SECONDS)
        os._exit(1)

    # What a file is read into lives until its end: to look through it again and again took a quarter of the time.
    gc.set_threshold(*_RARELY)
    # A Ctrl-C reaches both processes; this one has nothing to say about it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=watch, daemon=True).start()


def _prepared(prepare: Callable[..., object], arguments: tuple[str, ...]) -> None:
    global _memory_when_ready  # noqa: PLW0603
    with suppress(Exception):  # the work meets the same error, and reports it
        prepare(*arguments)
    _memory_when_ready = _memory_when_ready or _memory(_RESIDENT)


def _limited(task: Callable[..., Any], arguments: tuple[Any, ...], folder: str, limits: Limits, clock: float) -> bytes:
    os.chdir(folder)
    _set_limits((limits.seconds, max(clock, _LEAST_SECONDS)), limits.memory)
    try:
        result = task(*arguments)
        answer = json.dumps({"result": result, "kept": _kept()}).encode()
        if len(answer) <= limits.answer:
            return answer
        reached = f"gave more than {limits.answer / 1_000_000:,.0f} MB of text and structure"
    except Exception as error:
        reached = f"failed ({type(error).__name__}: {error})"
        if error_behind(error, MemoryError):
            reached = f"took more than {limits.memory / 1_000_000:,.0f} MB of memory"
    finally:
        _set_limits(_NO_SECONDS, None)
    return json.dumps({"limit": reached, "kept": _kept()}).encode()


_NO_SECONDS, _LEAST_SECONDS = (0.0, 0.0), 0.001
_RESERVED, _RESIDENT = 0, 1
_allowed_memory: int | None = None
_memory_when_ready = 0


def _kept() -> int:
    return _memory(_RESIDENT) - _memory_when_ready


@contextmanager
def without_limits() -> Iterator[None]:
    """Let what happens inside count for nothing, such as the import of a package; where no limit is set, do nothing."""
    memory = _allowed_memory
    if memory is None:
        yield
        return
    seconds = _set_limits(_NO_SECONDS, None)
    try:
        yield
    finally:
        _set_limits(seconds, memory)


def _set_limits(seconds: tuple[float, float], memory: int | None) -> tuple[float, float]:
    """
    Let the system end this process after so much of the processor, of time and of memory.

    Takes seconds of the processor and of the clock, 0 for no limit, and returns those that were left.
    """
    global _allowed_memory  # noqa: PLW0603
    _allowed_memory = memory
    if not hasattr(signal, "setitimer"):
        return _NO_SECONDS  # Windows knows neither; there the parent ends what takes too long
    import resource  # noqa: PLC0415

    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (hard if memory is None else _memory(_RESERVED) + memory, hard))
    processor, clock = (
        signal.setitimer(timer, left)[0]
        for timer, left in zip((signal.ITIMER_PROF, signal.ITIMER_REAL), seconds, strict=True)
    )
    return processor, clock


def _memory(kind: int) -> int:
    """How much memory this process has, of a kind; 0 where the system does not say, and does not limit it either."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[kind])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
