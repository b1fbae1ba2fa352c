"""`shiguan keys`: make, list and revoke the API keys of the server."""

import argparse

from shiguan.commands.options import tell
from shiguan.errors import RefusedError
from shiguan.serving.keys import KeyFile, KeyRecord, audit, last_used, new_key, shown, used_path
from shiguan.serving.settings import ServingSettings


def add_key(options: argparse.Namespace) -> int:
    file = _file(options)
    if not options.tenant and options.role != "metrics":
        raise RefusedError("`--tenant` is missing. Say whose library the key opens: `--tenant NAME`.")
    if options.print_hash and options.days:
        raise RefusedError("An entry of SHIGUAN_API_KEYS cannot end by itself. Leave out `--days` or `--print-hash`.")
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


def list_keys(options: argparse.Namespace) -> int:
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


def revoke_key(options: argparse.Namespace) -> int:
    record = _file(options).revoke(options.id)
    _audit("key revoke", record)
    line = f"Revoked {record.id} ({record.role}, tenant {record.tenant}). A running server knows at its next request."
    tell(options, shown(record), line)
    return 0


def _audit(action: str, record: KeyRecord) -> None:
    told = {"tenant": record.tenant, "key": record.id, "role": record.role, "expires": record.expires}
    audit(ServingSettings.from_environment().folder, action, **told)


def _file(options: argparse.Namespace) -> KeyFile:
    return KeyFile(options.keys_file or ServingSettings.from_environment().keys_path)
