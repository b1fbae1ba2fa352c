"""Processes of Python that a test starts, which find the packages and the tests."""

import os
import subprocess
import sys
from pathlib import Path

from tests.doubles import fork_server

ROOT = Path(__file__).resolve().parents[2]


def python(*command, environment=os.environ, fresh=False, imported=()):
    """Start Python; it has imported much already unless it is `fresh`."""
    environment = {**environment, "PYTHONPATH": os.pathsep.join([str(ROOT / "components"), str(ROOT)])}
    command = [*map(str, command)]
    if not fresh and sys.platform == "linux":
        return fork_server.start(command, environment, imported)
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen([sys.executable, *command], env=environment, text=True, **pipes)


class Started:
    """A process that ends with the block; `fresh` where it may have imported nothing."""

    def __init__(self, *command, **how):
        self.process = python(*command, **how)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def finished(self, seconds=300):
        with self:
            said, errors = self.process.communicate(timeout=seconds)
        return subprocess.CompletedProcess(self.process.args, self.process.returncode, said, errors)

    def line(self):
        line = self.process.stdout.readline().strip()
        assert line, self.process.stderr.read()
        return line

    def kill(self):
        self.process.kill()
        self.process.wait()
