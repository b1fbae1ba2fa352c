"""The examples of components and of docs/ run as they stand, and print what they say."""

import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples" / "components").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_what_it_says(path, tmp_path):
    _, text, code = path.read_text(encoding="utf-8").split('"""', 2)
    printed = dedent(text.partition("It prints:\n\n")[2])
    assert printed.strip()
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == printed


def test_every_example_of_a_component_is_listed():
    listed = (ROOT / "docs" / "components" / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"examples/components/(\w+\.py)\)", listed)) == {path.name for path in EXAMPLES}
