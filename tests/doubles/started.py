"""Processes of Python that a test starts, which find the packages and the tests."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Started:
    """A process that ends with the block."""

    def __init__(self, *command):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "components"), str(ROOT)])}
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self.process = subprocess.Popen([sys.executable, *map(str, command)], env=environment, text=True, **pipes)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def line(self):
        line = self.process.stdout.readline().strip()
        assert line, self.process.stderr.read()
        return line

    def kill(self):
        self.process.kill()
        self.process.wait()
