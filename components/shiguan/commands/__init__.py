"""
The commands of `shiguan`, a file for each subject.

Each file has `register(add)`, which declares its arguments, and the function that runs. Heavy imports stay inside that
function: `shiguan --help` must not wait for a model library.
"""

import argparse
from collections.abc import Callable
from typing import Protocol

COMMANDS = (
    "library",
    "ask",
    "conversations",
    "models",
    "serve",
    "mcp",
    "keys",
    "check",
    "stores",
    "why",
    "replay",
    "feedback",
    "eval_run",
    "eval_compare",
)
"""The files of this folder that hold commands, in the order of `shiguan --help`."""


GROUPS = {
    "conversations": "list, export and delete what was asked under an id",
    "feedback": "say what is right or wrong about an answer, and read what was said",
    "keys": "say who may ask the server",
    "stores": "prepare and inspect the servers of a deployment",
    "eval": "measure retrieval and answers, and compare two runs",
}
"""Commands of two words, by their first, and what the second ones do."""


class AddCommand(Protocol):
    """Adds a command to the program, with the options that every command shares."""

    def __call__(
        self,
        name: str,
        command: Callable[[argparse.Namespace], int],
        text: str,
        *,
        deployment: bool = True,
        library: bool = True,
    ) -> argparse.ArgumentParser:
        """Add a command; `--json` always comes with it."""
