"""The check builds what it judges; building reads and decides, and does nothing else."""

import logging
import socket
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest
from haystack import component
from tests.security.mutant_parts import checked, part

ATTEMPTED: list[str] = []


def take_a_port(_):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))


WORK = {
    "os.mkdir": lambda path: Path(path).mkdir(),
    "open": lambda path: Path(path).write_text("x", encoding="utf-8"),
    "socket.bind": take_a_port,
}


@component
class Eager:
    """Works when it is made."""

    def __init__(self, event: str, path: str) -> None:
        ATTEMPTED.append(event)
        WORK[event](path)

    @component.output_types(text=str)
    def run(self, text: str):
        return {"text": text}


@pytest.mark.parametrize("event", WORK)
def test_a_class_that_does_more_is_stopped_and_judged_by_what_it_says_of_itself(tmp_path, event):
    made = tmp_path / "made"
    eager = part(f"{__name__}.Eager", event=event, path=str(made))
    data = {"components": {"eager": eager}, "inputs": {"text": ["eager.text"]}, "outputs": {"text": "eager.text"}}
    ATTEMPTED.clear()
    report = checked(data, tmp_path, allow_types=[__name__])
    assert report.findings == []
    assert f"`eager` was not built, so its parameters and types were not checked: it asks for more than its parameters while it is built (`{event}`)." in report.notes  # fmt: skip
    assert [event] == ATTEMPTED
    assert not made.exists()
    data["inputs"]["text"] = ["eager.nothing"]
    problems = [finding.problem for finding in checked(data, tmp_path, allow_types=[__name__]).findings]
    assert "`eager` has no input `nothing`." in problems


ENTERED, LEAVE = ({name: threading.Event() for name in ("first", "second")} for _ in range(2))


@component
class Waits:
    """Is made in its own time."""

    def __init__(self, name: str) -> None:
        ENTERED[name].set()
        LEAVE[name].wait(10)

    @component.output_types(text=str)
    def run(self, text: str):
        return {"text": text}


def test_checks_in_several_threads_leave_the_log_and_the_warnings_as_they_were(tmp_path):
    def check(name):
        (tmp_path / name).mkdir()
        data = {"components": {"waits": part(f"{__name__}.Waits", name=name)}, "inputs": {"text": ["waits.text"]}}
        checked({**data, "outputs": {"text": "waits.text"}}, tmp_path / name, allow_types=[__name__])

    before = logging.getLogger("haystack").level, list(warnings.filters)
    threads = {name: threading.Thread(target=check, args=(name,)) for name in ENTERED}
    for name, thread in threads.items():
        thread.start()
        assert ENTERED[name].wait(10)
    for name, thread in threads.items():  # the first is done while the second is still at work
        LEAVE[name].set()
        thread.join()
    assert (logging.getLogger("haystack").level, list(warnings.filters)) == before


def test_the_watch_is_silent_when_python_ends_and_modules_have_lost_their_names():
    ended = "import os; from shiguan.checking import building; building._building = None; open(os.devnull)"
    assert subprocess.run([sys.executable, "-c", ended], capture_output=True, text=True, check=True).stderr == ""
