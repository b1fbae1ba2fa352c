"""The modules of the page work in current browsers: a linter knows their lists of syntax and interfaces."""

import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).with_name("lint")
ESLINT = FOLDER / "node_modules" / "eslint" / "bin" / "eslint.js"
MODULES = sorted((ROOT / "hayhooks" / "ui").glob("*.js"))


def lint(*files, **more):
    node = shutil.which("node")
    if node is None or not ESLINT.exists():
        pytest.skip("no node, or no linter: `make test-browser` installs it with npm")
    command = [node, str(ESLINT), "--no-config-lookup", "--config", str(FOLDER / "eslint.config.mjs"), *map(str, files)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False, **more)


def test_the_modules_need_nothing_that_a_current_browser_lacks():
    assert len(MODULES) > 10
    done = lint(*MODULES)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(("text", "said"), [
    ("export const a = new BarcodeDetector();", "BarcodeDetector is not supported in Firefox"),
    ("using a = open();", "Parsing error"),
    ("export const a = undeclared;", "'undeclared' is not defined"),
])  # fmt: skip
def test_the_linter_finds_what_one_of_them_lacks(text, said):
    done = lint("--stdin", "--stdin-filename", "hayhooks/ui/canary.js", input=text)
    assert done.returncode == 1
    assert said in done.stdout
