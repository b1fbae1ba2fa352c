"""A hostile file neither holds nor fills the process that checks it."""

import json

import pytest
from haystack import component
from tests.security.hostile_files import SOUND
from tests.security.mutant_parts import PROMPT, part

from shiguan.checking.pipeline_check import check_in_process, check_pipeline
from shiguan.cli import main


def burn():
    while True:
        pass


WORK = {"time": burn, "memory": lambda: bytearray(1_000_000_000)}


@component
class Grows:
    """Never comes to an end, or takes a gigabyte, when it is made."""

    def __init__(self, what: str) -> None:
        self.taken = WORK[what]()

    @component.output_types(text=str)
    def run(self, text: str):
        return {"text": text}


def write(path, **components):
    data = {**SOUND, "components": {**SOUND["components"], **components}}
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "growing",
    [
        "{{ 'aaaaaaaaaa'" + "|replace('a','aaaaaaaaaa')" * 9 + " }}",
        "{{ 'a' * 9999 * 9999 * 99 }}",
        "{{ x ~ (['aaaaaaaaaa'" + "|replace('a', 'aaaaaaaaaa')" * 9 + "]|join) }}",
    ],
)
def test_a_template_whose_constants_grow_ends_the_check_and_not_the_process_that_asks(tmp_path, growing):
    prompt = part(PROMPT, template=growing)
    [finding] = check_in_process(write(tmp_path / "mine.yml", evil=prompt), "mine.yml").findings
    assert "memory" in finding.problem or "2 seconds of the processor" in finding.problem


@pytest.mark.parametrize(("what", "reason"), [("time", "2 seconds of the processor"), ("memory", "268 MB of memory")])
def test_a_class_that_takes_more_than_a_check_may_is_ended(tmp_path, capsys, what, reason):
    path = write(tmp_path / "mine.yml", evil=part(f"{__name__}.Grows", what=what))
    assert main(["check", str(path), "--allow-type", __name__, "--json"]) == 2
    (file,) = json.loads(capsys.readouterr().out)["files"]
    (finding,) = file["findings"]
    assert reason in finding["problem"]
    assert (finding["check"], finding["unsafe"]) == ("building", True)


def test_a_report_from_the_process_is_the_one_that_is_made_here(tmp_path):
    path = write(tmp_path / "mine.yml", evil={"type": "os.system"}, odd={"type": "shiguan.stores.nothing.Nothing"})
    there, here = check_in_process(path, "mine.yml"), check_pipeline(path, "mine.yml")
    assert there.findings == here.findings != []
    assert str(there.error) == str(here.error)
    assert there.notes == here.notes
