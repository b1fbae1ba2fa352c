"""
The commands of `shiguan`, a file for each subject.

Each file has `register(add)`, which declares its arguments, and the function that runs. Heavy imports stay inside that
function: `shiguan --help` must not wait for a model library.
"""

from argparse import ArgumentParser
from collections.abc import Callable

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


AddCommand = Callable[..., ArgumentParser]
"""Adds a command by name, function and text; `deployment` and `library` say whether it has the options of these."""
