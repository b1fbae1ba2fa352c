"""The examples of components and of docs/ run as they stand, and print what they say."""

import re
import sys
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples" / "components").glob("*.py"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_what_it_says(path, tmp_path, monkeypatch, capsys):
    _, text, code = path.read_text(encoding="utf-8").split('"""', 2)
    printed = dedent(text.partition("It prints:\n\n")[2])
    assert printed.strip()
    monkeypatch.chdir(tmp_path)
    # A module of its own, where Haystack looks up the types of its components' sockets.
    module = ModuleType(f"example_{path.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(code, path, "exec"), module.__dict__)
    assert capsys.readouterr().out == printed


def test_every_example_of_a_component_is_listed():
    listed = (ROOT / "docs" / "components" / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"examples/components/(\w+\.py)\)", listed)) == {path.name for path in EXAMPLES}
