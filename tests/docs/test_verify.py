"""The example of docs/verify.md is what its command prints."""

import re
from pathlib import Path

from shiguan.cli import main

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "verify.md").read_text(encoding="utf-8")


def test_the_example_is_what_the_command_prints(tmp_path, monkeypatch, capsys):
    (shown,) = re.findall(r"```text\n\$ shiguan verify draft.md\n\n(.*?)```", PAGE, re.DOTALL)
    draft, book = re.findall(r"```markdown\n(.*?)```", PAGE, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    Path("draft.md").write_text(draft, encoding="utf-8")
    Path("tang.md").write_text(book, encoding="utf-8")
    assert main(["ingest", "tang.md"]) == 0
    capsys.readouterr()
    assert main(["verify", "draft.md"]) == 0
    assert capsys.readouterr().out == shown
