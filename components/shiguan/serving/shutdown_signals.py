"""Hears that the process should end, before the server that runs it waits for its open requests."""

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextlib.contextmanager
def on_shutdown_signal(begin: Callable[[], None]) -> Iterator[None]:
    """
    Call something on the event loop as soon as the process is told to end.

    ASGI tells an application of a shutdown only when its last request is over. A request that waits for a slow model
    would hold the process for as long as that takes; told by the signal itself, the application can cut it off.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # a test's server in a thread has no signals
        return
    loop = asyncio.get_running_loop()
    before: dict[signal.Signals, Any] = {number: signal.getsignal(number) for number in _SIGNALS}

    def handle(number: int, frame: FrameType | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop may be closed already
            loop.call_soon_threadsafe(begin)
        previous = before[signal.Signals(number)]
        if callable(previous):
            previous(number, frame)

    for number in _SIGNALS:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)
