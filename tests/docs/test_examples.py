"""The examples of docs/: each block of Python runs as it stands, and prints what the block behind it says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
_EXAMPLE = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
PAGES = sorted([*(DOCS / "components").glob("*.md"), DOCS / "your_own_mode.md"])


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "```python" in page.read_text(encoding="utf-8")], ids=lambda page: page.stem
)
def test_an_example_prints_what_the_page_says(page, tmp_path):
    examples = _EXAMPLE.findall(page.read_text(encoding="utf-8"))
    assert examples
    for code, printed in examples:
        run = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
        )
        assert run.returncode == 0, run.stderr
        assert run.stdout == printed


def test_every_page_of_a_component_is_listed():
    listed = (DOCS / "components" / "README.md").read_text(encoding="utf-8")
    assert all(f"({page.name})" in listed for page in (DOCS / "components").glob("*.md") if page.name != "README.md")
