"""What the README shows of commands is what they print."""

import re
import shlex
from pathlib import Path

import pytest
from examples.build_book import build_book

from shiguan.cli import main

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
SAMPLE = re.compile(r"```text\n(\$ shiguan .*?)```", re.DOTALL)


def samples(text):
    """The commands of a README's samples, each with what is shown below it."""
    for block in SAMPLE.findall(text):
        for one in re.split(r"^\$ shiguan ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = one.partition("\n")
            yield command, shown.strip("\n")


def timeless(text):
    return re.sub(r"\d+\.\d+ s\b", "N s", text)


@pytest.mark.slow
def test_every_sample_is_what_its_command_prints(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".data").mkdir()
    build_book(tmp_path / ".data" / "an-lushan-rebellion.epub")
    found = list(samples(README.read_text(encoding="utf-8")))
    assert len(found) >= 3
    for command, shown in found:
        assert main(shlex.split(command)) in (0, 1)  # 1 where the sources do not answer
        assert timeless(capsys.readouterr().out.strip("\n")) == timeless(shown), command


def test_the_heart_of_a_mode_is_what_its_file_has():
    (heart,) = re.findall(r"```yaml\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    file = (ROOT / "pipelines" / "embedded" / "simple.yml").read_text(encoding="utf-8").splitlines()
    places = [file.index(line) for line in heart.splitlines()]
    assert places == sorted(places)
    assert len(places) <= 20
