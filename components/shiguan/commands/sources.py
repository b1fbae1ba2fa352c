"""`shiguan sources`: list what is in the library."""

import argparse

from shiguan.commands import AddCommand
from shiguan.commands.options import tenant
from shiguan.commands.printing import print_json


def register(add: AddCommand) -> None:
    """Declare the command."""
    add("sources", _sources, "list what is in the library")


def _sources(options: argparse.Namespace) -> int:
    from shiguan.commands.terminal import print_sources
    from shiguan.engine.library import Library

    sources = Library(options.deployment, data_dir=options.data_dir).sources(tenant_id=tenant(options))
    if options.json:
        print_json({"sources": sources})
    else:
        print_sources(sources)
    return 0
