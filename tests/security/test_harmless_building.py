"""The check builds what it judges; building reads and decides, and does nothing else."""

import json
import socket
from pathlib import Path

import pytest
from haystack import component

from shiguan.checking.pipeline_check import check_pipeline

ATTEMPTED: list[str] = []


@component
class Writes:
    """Makes a folder and a file when it is made."""

    def __init__(self, folder: str) -> None:
        ATTEMPTED.append("folder")
        Path(folder).mkdir()

    @component.output_types(text=str)
    def run(self, text: str):
        return {"text": text}


@component
class Opens:
    """Writes a file when it is made."""

    def __init__(self, folder: str) -> None:
        ATTEMPTED.append("file")
        Path(folder).write_text("x", encoding="utf-8")

    @component.output_types(text=str)
    def run(self, text: str):
        return {"text": text}


@component
class Calls:
    """Takes a port when it is made."""

    def __init__(self, folder: str) -> None:
        ATTEMPTED.append("port")
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))

    @component.output_types(text=str)
    def run(self, text: str):
        return {"text": text}


@pytest.mark.parametrize(("kind", "event"), [(Writes, "os.mkdir"), (Opens, "open"), (Calls, "socket.bind")])
def test_a_class_that_does_more_is_stopped_and_judged_by_what_it_says_of_itself(tmp_path, kind, event):
    made, path = tmp_path / "made", tmp_path / "mine.yml"
    eager = {"type": f"{__name__}.{kind.__name__}", "init_parameters": {"folder": str(made)}}
    data = {"components": {"eager": eager}, "inputs": {"text": ["eager.text"]}, "outputs": {"text": "eager.text"}}
    path.write_text(json.dumps(data), encoding="utf-8")
    ATTEMPTED.clear()
    report = check_pipeline(path, "mine.yml", allow_types=[__name__])
    assert report.findings == []
    assert f"`eager` was not built, so its parameters and types were not checked: it asks for more than its parameters while it is built (`{event}`)." in report.notes  # fmt: skip
    assert len(ATTEMPTED) == 1
    assert not made.exists()
    data["inputs"]["text"] = ["eager.nothing"]
    path.write_text(json.dumps(data), encoding="utf-8")
    problems = [finding.problem for finding in check_pipeline(path, "mine.yml", allow_types=[__name__]).findings]
    assert "`eager` has no input `nothing`." in problems
