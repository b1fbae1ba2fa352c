"""Files into documents, in a process of its own that ends at a limit of time and memory."""

import json
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import Future
from functools import lru_cache
from multiprocessing import util
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from loky import get_reusable_executor
from loky.process_executor import TerminatedWorkerError

if TYPE_CHECKING:
    from haystack.dataclasses import ByteStream

# For each file, and for each megabyte of it: seconds of one processor, and bytes of memory. The slowest honest books
# take a tenth of either.
_SECONDS, _SECONDS_PER_MB = 8, 10
_MEMORY, _MEMORY_PER_BYTE = 1024**3, 16
# What comes back is held by the library's own process: 30 times a book's bytes is much.
_ANSWER, _ANSWER_PER_BYTE = 32 * 1024**2, 64
# What waits, for a disk or for other processes, takes no processor and ends, too.
_WAITING_FACTOR = 6
_LOOK_SECONDS = 0.2
# An idle process goes after so long.
_IDLE_SECONDS = 60
_NEXT_STEP = "Check where the file comes from; if it is an honest one, split it, or report the fault"


class Conversion:
    """
    Reads files with the converters of an index, where a hostile one neither stops nor fills the library's process.

    Every thread has one such process, used again for its next file. It reads the file itself and sends back JSON:
    texts, plain meta, and what the converters say. It is no sandbox: it has the rights of the library's process.
    """

    def __init__(self, definition: dict[str, Any]) -> None:
        """Start the process; `definition` is a pipeline with `sources` in its inputs and `documents` in its outputs."""
        self._definition = json.dumps(definition)
        _process().submit(_pipeline, self._definition)

    def convert(self, source: "Path | ByteStream", waiting: Callable[[], None]) -> dict[str, Any]:
        """Convert a file; `waiting` is called all the while, and ends the work by raising."""
        size = _size(source)
        limits = {
            "seconds": _SECONDS + _SECONDS_PER_MB * size / 1_000_000,
            "memory": _MEMORY + _MEMORY_PER_BYTE * size,
            "answer": _ANSWER + _ANSWER_PER_BYTE * size,
        }
        process = _process()
        try:
            future = process.submit(_converted, self._definition, source, str(Path.cwd()), limits)
            answer: dict[str, Any] = json.loads(_awaited(future, waiting, limits["seconds"] * _WAITING_FACTOR))
        except TerminatedWorkerError as error:
            if "SIGPROF" in str(error):
                return _failed(f"reading it took more than {limits['seconds']:.0f} seconds of the processor")
            return _failed("the process that read it broke down, perhaps for want of memory")
        except BaseException as error:
            process.shutdown(kill_workers=True)
            if isinstance(error, TimeoutError):
                return _failed(f"reading it took longer than {limits['seconds'] * _WAITING_FACTOR:.0f} seconds")
            raise
        return answer


def _process() -> Any:
    # One thread of a numeric library: each takes memory, and there is nothing to compute.
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    process = get_reusable_executor(
        1, timeout=_IDLE_SECONDS, initializer=_prepare, initargs=(os.getpid(),), env=threads
    )
    _started.add(process)
    return process


_started: "WeakSet[Any]" = WeakSet()
# Where `psutil` and `pgrep` are missing, it kills the process alone, which has no others.
warnings.filterwarnings("ignore", message="Failed to kill subprocesses")


def end_all() -> None:
    """End the processes of all threads, whatever they read; for a program that is about to end."""
    for process in list(_started):
        process.shutdown(kill_workers=True)
    # A process that ends at once runs no finalizers: their semaphores would be told as leaked, on three lines.
    util._run_finalizers(0)  # type: ignore[attr-defined]


def _awaited(future: "Future[bytes]", waiting: Callable[[], None], seconds: float) -> bytes:
    end = time.monotonic() + seconds
    while True:
        try:
            return future.result(_LOOK_SECONDS)
        except TimeoutError:
            if time.monotonic() > end:
                raise
            waiting()


def _size(source: "Path | ByteStream") -> int:
    if not isinstance(source, Path):
        return len(source.data)
    try:
        return source.stat().st_size
    except (OSError, ValueError):
        return 0  # the inspector says what is wrong with it


def _failed(cause: str, stage: str = "") -> dict[str, Any]:
    fault = {"cause": cause, "next_step": _NEXT_STEP}
    return {"documents": [], "skipped": [fault | ({"stage": stage} if stage else {})], "warnings": []}


# ---- what follows runs in the other process --------------------------------------------------------------------------


def _prepare(parent: int) -> None:
    """Make the process ready: it dies with its parent, says nothing, and imports no more than it needs."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_SECONDS)
        os._exit(1)

    # A Ctrl-C reaches both processes; this one has nothing to say about it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=watch, daemon=True).start()
    # Haystack imports torch wherever it is installed, three seconds and 150 MB that reading files does not need.
    sys.modules.setdefault("torch", None)  # type: ignore[arg-type]


@lru_cache(maxsize=1)
def _pipeline(definition: str) -> Any:
    import logging  # noqa: PLC0415

    from haystack import Pipeline  # noqa: PLC0415

    # What converters have to say of a file comes back with its documents.
    logging.disable(logging.ERROR)
    return Pipeline.from_dict(json.loads(definition))


def _converted(definition: str, source: "Path | ByteStream", folder: str, limits: dict[str, float]) -> bytes:
    os.chdir(folder)
    _limit(limits["seconds"], int(limits["memory"]))
    try:
        answer = json.dumps(_answer(_pipeline(definition), source)).encode()
        if len(answer) <= limits["answer"]:
            return answer
        failed = _failed(f"it holds more than {limits['answer'] / 1_000_000:,.0f} MB of text and structure")
    except Exception as error:
        reason = error.__cause__ or error
        stage = getattr(error, "component_name", None) or "conversion"
        failed = _failed(f"the stage `{stage}` failed: {type(reason).__name__}: {reason}", stage)
        if isinstance(reason, MemoryError):
            failed = _failed(f"reading it took more than {limits['memory'] / 1_000_000:,.0f} MB of memory")
    finally:
        _limit(0, None)
    return json.dumps(failed).encode()


def _answer(pipeline: Any, source: "Path | ByteStream") -> dict[str, list[Any]]:
    data: dict[str, dict[str, Any]] = {}
    for target in pipeline.metadata["inputs"]["sources"]:
        component, socket = target.split(".")
        data.setdefault(component, {})[socket] = [source]
    sender, socket = pipeline.metadata["outputs"]["documents"].split(".")
    results = pipeline.run(data, include_outputs_from=set(pipeline.graph.nodes))
    return {
        "documents": [
            (document.id, document.content, document.meta) for document in results.get(sender, {}).get(socket, [])
        ],
        **{
            told: [entry for stage in results.values() for entry in stage.get(told, [])]
            for told in ("skipped", "warnings")
        },
    }


def _limit(seconds: float, memory: int | None) -> None:
    """Let the system end this process after so much of the processor, and give it no more memory than this."""
    if not hasattr(signal, "setitimer"):
        return  # Windows knows neither; there the parent ends what takes too long
    import resource  # noqa: PLC0415

    signal.setitimer(signal.ITIMER_PROF, seconds)
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (hard if memory is None else memory, hard))
