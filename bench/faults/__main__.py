"""
Seeds faults in a copy of the package, one at a time, and says which of them the tests catch.

    python -m bench.faults                   # all of faults.toml
    python -m bench.faults --only NAME ...   # some of them
    python -m bench.faults --tests claims    # those whose tests are in a folder of this name

Ends with 1 where a fault escapes.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_LEFT_BEHIND = shutil.ignore_patterns(".*", "__pycache__", "node_modules", "docs", "results")
# A fault may make a test wait for ever, which is noticed as well.
_SECONDS = 300
_FAST = "not slow and not integration and not transformers and not browser"
_PASSED, _FAILED = 0, 1


@dataclass(frozen=True)
class Fault:
    """A line of a file of the package, what stands in its place, and the tests that should fail then."""

    name: str
    file: str
    line: str
    fault: str
    tests: list[str]

    def seeded(self, text: str) -> str:
        """Write the fault into the text of its file; indentation stays."""
        lines = text.splitlines(keepends=True)
        places = [at for at, line in enumerate(lines) if line.strip() == self.line]
        if len(places) != 1:
            raise SystemExit(
                f"`{self.name}`: {self.file} has the line `{self.line}` {len(places)} times, expected once. Write the "
                "line as it is now into bench/faults/faults.toml, or another fault of the same kind."
            )
        lines[places[0]] = lines[places[0]].replace(self.line, self.fault)
        return "".join(lines)


def read_faults() -> list[Fault]:
    """Read the faults that are kept beside this file."""
    return [Fault(**fault) for fault in tomllib.loads(Path(__file__).with_name("faults.toml").read_text())["fault"]]


def verdict(fault: Fault, copy: Path) -> str:
    """Run the tests of a fault in a copy that has it."""
    file = copy / "components/shiguan" / fault.file
    whole = file.read_text(encoding="utf-8")
    try:
        _write(file, fault.seeded(whole))
        try:
            ended = subprocess.run(
                _pytest(fault), check=False, cwd=copy, env=_environment(copy), capture_output=True, timeout=_SECONDS
            )
        except subprocess.TimeoutExpired:
            return "caught"
    finally:
        _write(file, whole)
    if ended.returncode not in (_PASSED, _FAILED):
        raise SystemExit(f"`{fault.name}`: its tests could not be run.\n{ended.stdout.decode()[-2000:]}")
    return "caught" if ended.returncode == _FAILED else "escaped"


def _write(file: Path, text: str) -> None:
    """Write a source file; byte code of the same second and size would count as its own."""
    file.write_text(text, encoding="utf-8")
    for old in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
        old.unlink()


def _pytest(fault: Fault) -> list[str]:
    return [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", "-m", _FAST, *fault.tests]


def _environment(copy: Path) -> dict[str, str]:
    """Set the path of the copy, which goes before that of an editable installation."""
    return {**os.environ, "PYTHONPATH": str(copy / "components"), "PYTHONDONTWRITEBYTECODE": "", "OMP_NUM_THREADS": "1"}


def main() -> int:
    """Seed the chosen faults, one after the other."""
    parser = argparse.ArgumentParser(description="Seed faults and say which of them the tests catch.")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="the faults of these names")
    parser.add_argument("--tests", metavar="FOLDER", help="those whose tests are in a folder of this name")
    options = parser.parse_args()
    chosen = read_faults()
    if unknown := {*(options.only or ())} - {fault.name for fault in chosen}:
        parser.error(f"faults.toml has no fault `{min(unknown)}`")
    chosen = [fault for fault in chosen if not options.only or fault.name in options.only]
    if options.tests:
        chosen = [fault for fault in chosen if any(options.tests in Path(test).parts for test in fault.tests)]
    escaped = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(ROOT, copy, ignore=_LEFT_BEHIND)
        for fault in chosen:
            began = time.monotonic()
            found = verdict(fault, copy)
            escaped += found == "escaped"
            print(f"{found:<8} {time.monotonic() - began:4.0f} s  {fault.name}  ({fault.file})", flush=True)
    print(f"{len(chosen) - escaped} of {len(chosen)} faults were caught.")
    return 1 if escaped else 0


if __name__ == "__main__":
    sys.exit(main())
