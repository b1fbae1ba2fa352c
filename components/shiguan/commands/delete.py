"""`shiguan delete`: take a source out of the library."""

import argparse

from shiguan.commands import AddCommand
from shiguan.commands.options import tenant
from shiguan.commands.printing import print_json, say
from shiguan.errors import RefusedError


def register(add: AddCommand) -> None:
    """Declare the command."""
    parser = add("delete", _delete, "take a source out of the library")
    parser.add_argument("source", metavar="SOURCE", help="its name as `shiguan sources` shows it")


def _delete(options: argparse.Namespace) -> int:
    from shiguan.engine.library import Library

    library = Library(options.deployment, data_dir=options.data_dir)
    deleted = library.delete(options.source, tenant_id=tenant(options))
    if not deleted:
        raise RefusedError(
            f"There is no source `{options.source}` in the library. `shiguan sources` lists what there is."
        )
    if options.json:
        print_json({"source": options.source, "deleted": deleted})
    else:
        say(f"Took {options.source} out of the library: {deleted:,} passage{'' if deleted == 1 else 's'}.")
    return 0
