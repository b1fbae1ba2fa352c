"""The demonstration runs to its end, and ends with lines that can be typed as they stand."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def demo(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    spec = importlib.util.spec_from_file_location("demo", ROOT / "examples" / "demo.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_ends_with_the_lines_that_let_the_reader_go_on(demo, monkeypatch, capsys, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "activate").write_text("ACTIVE=yes\n", encoding="utf-8")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(demo, "main", lambda arguments: int(demo.UNANSWERED in arguments))
    assert demo.demo() == 0
    lines = capsys.readouterr().out.rstrip().splitlines()[-3:]
    assert lines[-1].split() == ["shiguan", "ask", "who", "was", "Guo", "Ziyi"]
    typed = "; ".join(lines[:2]) + '; echo "$ACTIVE $SHIGUAN_DATA_DIR"'
    done = subprocess.run(["bash", "-ec", typed], capture_output=True, text=True, check=True, cwd=os.sep)
    assert done.stdout.split() == ["yes", str(ROOT / ".data" / "demo")]


def test_a_command_that_fails_ends_it_with_its_code_and_so_does_an_answer_that_the_book_has_not(
    demo, monkeypatch, capsys
):
    for code, ended in ((3, 3), (0, 1)):
        monkeypatch.setattr(demo, "main", lambda arguments, code=code: code)
        assert demo.demo() == ended
        assert code == 0 or "export" not in capsys.readouterr().out


@pytest.mark.slow
def test_it_runs_to_its_end(tmp_path):
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("SHIGUAN_", "OPENAI_"))}
    how = {"capture_output": True, "text": True, "cwd": tmp_path}
    environment["PYTHONPATH"] = str(ROOT / "components")
    done = subprocess.run([sys.executable, "examples/demo.py"], check=False, env=environment, **how)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "The sources do not answer this question." in done.stdout
    assert done.stdout.rstrip().endswith("shiguan ask who was Guo Ziyi")


def test_the_server_of_the_makefile_listens_where_it_is_told():
    told = subprocess.run(["make", "-n", "serve", "PORT=1999"], capture_output=True, text=True, check=True, cwd=ROOT)
    assert "serve --open --port 1999 --data-dir .data/demo" in told.stdout
    told = subprocess.run(["make", "-n", "serve"], capture_output=True, text=True, check=True, cwd=ROOT)
    assert "--port 1416" in told.stdout
