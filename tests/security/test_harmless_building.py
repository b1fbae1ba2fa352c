"""The check builds what it judges; building reads and decides, and does nothing else."""

import socket
import subprocess
import sys
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


def test_the_watch_is_silent_when_python_ends_and_modules_have_lost_their_names():
    ended = "import os; from shiguan.checking import building; building._building = None; open(os.devnull)"
    assert subprocess.run([sys.executable, "-c", ended], capture_output=True, text=True, check=True).stderr == ""
