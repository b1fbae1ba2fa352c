"""docs/serving.md, command by command, as a person follows it."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECONDS = 240

# What each block must have printed, in the order of the page; a block that is not listed must only succeed.
EXPECTED = {
    2: ["the history department", "history"],
    4: ['"source":"book.epub"', '"state":"done"', '"passages":'],
    5: ['"verdict":"quoted"', '"status":"quoted"'],
    6: ['{"receipt":{"version":1,', '"tenant_id":"history"', '"stale":false}'],
    7: ["event: documents_retrieved", "边令诚", "event: generation_complete", "data: [DONE]"],
    8: ["Nan Jiyun", '"error"'],
    9: ['"passages":[{"id":', '"before":[', '"sections":['],
    10: ["shiguan-precise", "758", "salt monopoly"],
    11: ["ok", '"status":"ready"', "shiguan_requests_total"],
    12: ["simple.yml: fine", "military governors", '"number":3'],
}


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def typed(language: str, text: str) -> str:
    """Give a block of a page as a person runs it in a shell."""
    return text if language == "bash" else f"python - <<'PYTHON'\n{text}PYTHON\n"


def strangers_environment(home: Path, **more: str) -> dict[str, str]:
    """Give what a stranger has set, which is nothing: what this test run has set would answer for the page."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("SHIGUAN_", "OPENAI_"))}
    programs = f"{_programs(home)}:{os.environ['PATH']}"
    places = {"HOME": str(home), "PATH": programs, "PYTHONPATH": str(ROOT / "components")}
    return {**environment, **places, "OMP_NUM_THREADS": "1", **more}


def _script(page: str, port: int) -> str:
    parts = ["set -eo pipefail"]
    for number, block in enumerate(BLOCK.findall(page)):
        if "make .venv" not in block[1]:  # the tests run in the environment that it makes
            parts.append(f"echo; echo '=== {number}'\n{typed(*block)}")
    return "\n".join(parts).replace("1416", str(port))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="the page's commands need curl")
def test_every_command_of_the_page_does_what_the_page_says(tmp_path):
    page = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    assert len(BLOCK.findall(page)) == max(EXPECTED) + 1
    for name in ("pipelines", "examples", "prompts"):
        (tmp_path / name).symlink_to(ROOT / name)
    models = os.environ.get("HF_HOME", str(Path.home() / ".cache" / "huggingface"))
    environment = strangers_environment(tmp_path, HF_HOME=models)
    process = subprocess.Popen(
        ["bash", "-c", _script(page, _free_port())],
        cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=SECONDS)
    finally:
        _end(process.pid)
    assert process.returncode == 0, output[-3000:]
    printed = dict(re.findall(r"^=== (\d+)$(.*?)(?=^=== |\Z)", output, re.MULTILINE | re.DOTALL))
    for number, texts in EXPECTED.items():
        missing = [text for text in texts if text not in printed[str(number)]]
        assert not missing, f"block {number} printed no {missing}: {printed[str(number)][-2000:]}"
    # The file of one's own reads three passages, the packaged one ten.
    assert '"number":4' in printed["8"]
    assert '"number":4' not in printed["11"]


def _programs(folder: Path) -> Path:
    """Give a folder with `python` and `shiguan` of this environment, wherever the package is run from."""
    programs = folder / "bin"
    programs.mkdir()
    for name, arguments in (("python", ""), ("shiguan", " -m shiguan.cli")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}"{arguments} "$@"\n')
        program.chmod(0o755)
    return programs


def _end(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
