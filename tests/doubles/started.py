"""Processes of Python that a test starts, which find the packages and the tests."""

import os
import subprocess
import sys
from pathlib import Path

from tests.doubles import fork_server

ROOT = Path(__file__).resolve().parents[2]


class Started:
    """A process that ends with the block; `fresh` where it may have imported nothing."""

    def __init__(self, *command, fresh=sys.platform != "linux", environment=os.environ):
        environment = {**environment, "PYTHONPATH": os.pathsep.join([str(ROOT / "components"), str(ROOT)])}
        command = [*map(str, command)]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        if fresh:
            self.process = subprocess.Popen([sys.executable, *command], env=environment, text=True, **pipes)
        else:
            self.process = fork_server.start(command, environment)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def finished(self, seconds=300):
        """Wait for its end."""
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
