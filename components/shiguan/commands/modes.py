"""`shiguan modes`: list deployments and modes, and what each costs."""

import argparse

from shiguan.commands import AddCommand
from shiguan.commands.printing import print_json


def register(add: AddCommand) -> None:
    """
    Declare the command.

    :param add: Adds it to the program.
    """
    add("modes", _modes, "list deployments and modes, and what each costs", library=False)


def _modes(options: argparse.Namespace) -> int:
    from shiguan.loading import describe_mode, list_modes
    from shiguan.terminal import print_modes

    modes = {
        deployment: {mode: describe_mode(deployment, mode) for mode in names}
        for deployment, names in list_modes().items()
    }
    if options.json:
        print_json({"deployments": modes})
    else:
        print_modes(modes)
    return 0
