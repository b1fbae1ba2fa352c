"""`shiguan modes`: list deployments and modes, and what each costs."""

import argparse

from shiguan.commands import AddCommand
from shiguan.commands.printing import print_json


def register(add: AddCommand) -> None:
    """Declare the command."""
    add("modes", _modes, "list deployments and modes, and what each costs", library=False)


def _modes(options: argparse.Namespace) -> int:
    from shiguan.commands.terminal import print_modes
    from shiguan.engine.loading import describe_mode, list_modes

    modes = {
        deployment: {mode: describe_mode(deployment, mode) for mode in names}
        for deployment, names in list_modes().items()
    }
    if options.json:
        print_json({"deployments": modes})
    else:
        print_modes(modes)
    return 0
