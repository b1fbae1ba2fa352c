"""`shiguan keys`: make, list and revoke the API keys of the server."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shiguan.commands import AddCommand
from shiguan.commands.options import positive, tell
from shiguan.errors import ConfigurationError, RefusedError

if TYPE_CHECKING:
    from shiguan.serving.keys import KeyFile, KeyRecord


def register(add: AddCommand) -> None:
    new = _command(add, "keys add", _add, "make a key for a tenant")
    new.add_argument("--tenant", default="", help="whose library it opens; not for the role metrics")
    new.add_argument(
        "--role", choices=("read", "write", "metrics"), required=True,
        help="read asks and lists, write also uploads and deletes, metrics reads /metrics and nothing else",
    )  # fmt: skip
    new.add_argument("--name", default="", help="a note for people")
    new.add_argument("--days", type=positive, metavar="N", help="for how many days it is valid (default: for good)")
    new.add_argument(
        "--print-hash", action="store_true", help="write no file: print the entry for SHIGUAN_API_KEYS beside the key"
    )
    _command(add, "keys list", _list, "list the keys, without what would let anybody in")
    _command(add, "keys revoke", _revoke, "revoke a key").add_argument("id", metavar="ID", help="as `keys list` shows")


def _command(add: AddCommand, name: str, run: Any, text: str) -> argparse.ArgumentParser:
    parser = add(name, run, text, deployment=False, library=False)
    parser.add_argument(
        "--keys-file", type=Path, help="the file (default: $SHIGUAN_KEYS_FILE, else keys.json in the data folder)"
    )
    return parser


def _add(options: argparse.Namespace) -> int:
    file = _file(options)
    if not options.tenant and options.role != "metrics":
        raise RefusedError("`--tenant` is missing. Say whose library the key opens: `--tenant NAME`.")
    if options.print_hash and options.days:
        raise RefusedError("An entry of SHIGUAN_API_KEYS cannot end by itself. Leave out `--days` or `--print-hash`.")
    from shiguan.serving.keys import new_key, shown

    if options.print_hash:
        key, record = new_key(options.tenant, options.role, options.name, days=options.days)
    else:
        key, record = file.add(options.tenant, options.role, options.name, days=options.days)
        _audit("key add", record)
    entry = f"{record.tenant}:{record.role}:{record.hash}"
    line = f"Key {record.id} ({record.role}, tenant {record.tenant}) is in {file.path}. It is shown only now."
    if options.print_hash:
        line = f"Entry for SHIGUAN_API_KEYS: {entry}"
    tell(options, {"key": key, **shown(record), **({"entry": entry} if options.print_hash else {})}, key, line)
    return 0


def _list(options: argparse.Namespace) -> int:
    from shiguan.serving.keys import last_used, shown, used_path

    file = _file(options)
    records, used = file.read(), last_used(used_path(file.path))
    lines = []
    for record in records:
        state = f"revoked {record.revoked}" if record.revoked else f"made {record.created}"
        state += f", expire{'d' if record.expired else 's'} {record.expires}" if record.expires else ""
        state += f", last used {used[record.id]}" if record.id in used else ""
        name = f"  {record.name}" if record.name else ""
        lines.append(f"{record.id}  {record.prefix}...  {record.role:<7}  {record.tenant}  {state}{name}")
    told = {"keys": [{**shown(record), "last_used": used.get(record.id)} for record in records]}
    tell(options, told, *(lines or ["There are no keys. Make one with `shiguan keys add --tenant NAME --role write`."]))
    return 0


def _revoke(options: argparse.Namespace) -> int:
    from shiguan.serving.keys import shown

    record = _file(options).revoke(options.id)
    _audit("key revoke", record)
    line = f"Revoked {record.id} ({record.role}, tenant {record.tenant}). A running server knows at its next request."
    tell(options, shown(record), line)
    return 0


def _audit(action: str, record: "KeyRecord") -> None:
    from shiguan.serving.keys import audit
    from shiguan.serving.settings import ServingSettings

    told = {"tenant": record.tenant, "key": record.id, "role": record.role, "expires": record.expires}
    audit(ServingSettings.from_environment().folder, action, **told)


def _file(options: argparse.Namespace) -> "KeyFile":
    try:
        from shiguan.serving.keys import KeyFile
        from shiguan.serving.settings import ServingSettings
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f'Keys need `{error.name}`, which is not installed. Install it with: pip install "shiguan[serve]"'
        ) from error
    return KeyFile(options.keys_file or ServingSettings.from_environment().keys_path)
