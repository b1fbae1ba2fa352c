"""What docs/promises.md names exists: tests, targets of the Makefile, modules that print their help, and commands."""

import importlib
import re
from pathlib import Path

import pytest

from shiguan.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
SHOWN_BY = re.findall(r"^- .+: `([^`]+)`$", PAGE, re.MULTILINE)
ROWS = [line for line in PAGE.splitlines() if line.startswith(("- ", "| "))]


def test_every_promise_has_what_shows_it():
    assert len(SHOWN_BY) == len(ROWS) > 80
    assert len(set(SHOWN_BY)) == len(SHOWN_BY)


def prints_help(module, capsys):
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr("sys.argv", [module, "--help"])
        importlib.import_module(module).main()
    return ended.value.code == 0 and "usage:" in capsys.readouterr().out


def exists(what, capsys):
    kind, _, rest = what.partition(" ")
    if kind == "make":
        return re.search(rf"^{re.escape(rest)}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    if kind == "python":
        module = rest.removeprefix("-m ")
        return (ROOT / f"{module.replace('.', '/')}.py").is_file() and prints_help(module, capsys)
    if kind == "shiguan":
        with pytest.raises(SystemExit) as ended:
            main([*rest.split(), "--help"])
        return ended.value.code == 0 and f"usage: shiguan {rest}" in capsys.readouterr().out
    file, _, name = what.partition("::")
    return re.search(rf"^(async )?def {name}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("what", SHOWN_BY)
def test_what_shows_a_promise_exists(what, capsys):
    assert exists(what, capsys), what


def test_every_page_is_among_those_whose_promises_are_listed():
    generated = {"promises.md"}
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - generated
    assert pages == set(re.findall(r"\]\((\w+\.md)\)", PAGE))
