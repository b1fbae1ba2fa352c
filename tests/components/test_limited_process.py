"""Work in a process of its own, which ends at each of its limits while the caller goes on."""

import os
import threading
from pathlib import Path

import pytest

from shiguan import limited_process
from shiguan.limited_process import LimitError, Limits, run_limited, start_process, without_limits

PLENTY = Limits(seconds=20, memory=500_000_000, answer=1_000_000)


def nothing(_: str) -> None:
    """Prepare nothing."""


def broken(_: str) -> None:
    raise RuntimeError("what the work needs is not there")


def burn(seconds: float) -> None:
    import time

    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def burn_before(_: str) -> None:
    burn(1.0)


def process_id() -> int:
    return os.getpid()


def end_process() -> None:
    os._exit(1)


def fill(count: int) -> int:
    return len(bytearray(count))


def fail() -> None:
    raise ValueError("odd")


def fail_for_memory() -> None:
    try:
        bytearray(10**12)
    except MemoryError as error:
        raise ValueError("wrapped") from error


KEPT: list[object] = []


def get_ready(_: str) -> None:
    KEPT[:1] = ["ready"]


def keep(count: int) -> tuple[int, list[object]]:
    KEPT[1:] = [b"x" * count]
    return os.getpid(), KEPT[:1]


def letters(count: int) -> str:
    return "x" * count


def burn_outside(seconds: float) -> str:
    with without_limits():
        burn(seconds)
        assert len(bytearray(200_000_000)) == 200_000_000
    return "done"


def burn_after_outside() -> None:
    with without_limits():
        burn(0.1)
    burn(20)


def fill_after_outside() -> None:
    with without_limits():
        pass
    bytearray(200_000_000)


def wait(seconds: float) -> str:
    threading.Event().wait(seconds)
    return "done"


def wait_outside(seconds: float) -> str:
    """As the import of a large package does on a slow disk."""
    with without_limits():
        return wait(seconds)


def run(task, *arguments, limits=PLENTY, prepare=nothing, waiting=lambda: None):
    return run_limited(task, *arguments, limits=limits, prepare=(prepare, ""), waiting=waiting)


def test_what_it_returns_comes_back_from_another_process_which_is_used_again():
    first = run(process_id)
    assert first != os.getpid()
    assert run(process_id) == first


def test_what_it_prepares_counts_for_no_limit():
    limits = Limits(seconds=0.5, memory=10_000_000, answer=100)
    assert isinstance(run(process_id, limits=limits, prepare=burn_before), int)


@pytest.mark.parametrize(
    ("task", "arguments", "limits", "reason"),
    [
        (burn, (20,), Limits(0.6, 500_000_000, 100), "took more than 1 seconds of the processor"),
        (fill, (200_000_000,), Limits(20, 100_000_000, 100), "took more than 100 MB of memory"),
        (fail_for_memory, (), Limits(20, 100_000_000, 100), "took more than 100 MB of memory"),
        (letters, (5_000_000,), Limits(20, 100_000_000, 1_000_000), "gave more than 1 MB of text and structure"),
        (end_process, (), PLENTY, "ended the process that did it, perhaps for want of memory"),
        (fail, (), PLENTY, r"failed \(ValueError: odd\)"),
        (wait, (600,), Limits(0.2, 500_000_000, 100), "took longer than 1 seconds"),
        (burn_after_outside, (), Limits(0.6, 500_000_000, 100), "took more than 1 seconds of the processor"),
        (fill_after_outside, (), Limits(20, 100_000_000, 100), "took more than 100 MB of memory"),
    ],
)
def test_each_limit_ends_the_work_with_its_reason_and_the_next_work_is_done(
    monkeypatch, task, arguments, limits, reason
):
    if task is not wait:  # on a busy machine the time by the clock would be over before that of the processor
        monkeypatch.setattr(limited_process, "_WAITING_FACTOR", 1_000)
    with pytest.raises(LimitError, match=f"^{reason}$"):
        run(task, *arguments, limits=limits)
    assert run(letters, 3) == "xxx"


def test_what_is_left_out_of_the_limits_may_take_what_it_needs():
    assert run(burn_outside, 0.6, limits=Limits(0.4, 100_000_000, 100)) == "done"
    assert run(wait_outside, 0.7, limits=Limits(0.1, 100_000_000, 100)) == "done"


def test_without_a_process_there_is_no_limit_to_leave():
    assert burn_outside(0.0) == "done"


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only Linux says how much memory a process has")
def test_a_process_that_keeps_much_memory_is_replaced_by_one_that_is_ready(monkeypatch):
    monkeypatch.setattr(limited_process, "_MOST_KEPT", 40_000_000)
    (first, _), (second, ready), (third, _) = (run(keep, count, prepare=get_ready) for count in (50_000_000, 1, 1))
    assert first != second == third
    assert ready == ["ready"]


def test_who_waits_can_end_the_work():
    class Stopped(Exception):
        pass

    def stop():
        raise Stopped

    with pytest.raises(Stopped):
        run(burn, 600, limits=Limits(900, 500_000_000, 100), waiting=stop)
    assert run(letters, 1) == "x"


def test_a_preparation_that_fails_is_left_to_the_work():
    start_process(broken, "")
    assert run(letters, 2, prepare=broken) == "xx"


@pytest.mark.usefixtures("a_process_for_each_thread")
def test_each_thread_has_a_process_of_its_own():
    found = []
    thread = threading.Thread(target=lambda: found.append(run(process_id)))
    thread.start()
    thread.join()
    assert found != [run(process_id)]
