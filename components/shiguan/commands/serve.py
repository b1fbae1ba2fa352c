"""`shiguan serve` and `keys`: answer questions over HTTP, and manage the keys of callers."""

import argparse
import logging
import os
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable
from functools import partial
from runpy import run_path
from typing import Any

import uvicorn

from shiguan.commands.library import release_all
from shiguan.commands.models import awaited_models
from shiguan.commands.options import print_line, print_result
from shiguan.engine.loading import list_modes
from shiguan.errors import ConfigurationError, RefusedError
from shiguan.resources import resource_folder
from shiguan.serving.authentication import KeyRing, check_keys_file, check_open_host
from shiguan.serving.gate import MOST_HEAD_BYTES, Connection
from shiguan.serving.keys import KeyFile, KeyRecord, audit
from shiguan.serving.settings import ServingSettings

# Proxies drop an idle connection after 60 s (nginx). If the server were first, a question sent meanwhile would be lost.
_IDLE_SECONDS = 75
_GRACE_SECONDS, _LAST_SECONDS = 3, 7


def serve(options: argparse.Namespace) -> int:
    if not os.environ.get("SHIGUAN_LOG_LEVEL", "").strip():
        # An operator of a server needs more than the user of a command.
        logging.getLogger("shiguan").setLevel(logging.WARNING)
    _set_data_dir(options)
    os.environ["SHIGUAN_DEPLOYMENT"] = options.deployment
    settings = ServingSettings.from_environment()
    check_keys_file(settings)
    keyless = KeyRing(settings).keyless
    check_open_host(options.host, keyless=keyless)
    with _bound(options.host, options.port) as listening:
        _print_loading(options, settings)
        on_ready = partial(_print_ready, options, settings.deployment, _address(listening), keyless=keyless)
        served = run_path(str(resource_folder("hayhooks") / "app.py"))
        server = _Server(_config(served["create"](settings)), on_ready)
        server.run(sockets=[listening])
    return 0 if server.started else 1


def _set_data_dir(options: argparse.Namespace) -> None:
    """Make the option hold for every part, also for stores in YAML."""
    if options.data_dir is not None:
        os.environ["SHIGUAN_DATA_DIR"] = str(options.data_dir)


class _Server(uvicorn.Server):
    """Reports the address once the server can answer, and ends whatever does not end."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self.on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # A call that says nothing, a disk that hangs: no thread can be ended from outside. What was taken is on disk.
        last = threading.Timer(_LAST_SECONDS, _end_process)
        last.daemon = True
        last.start()
        await super().shutdown(sockets)
        release_all()


def _end_process() -> None:
    print_line(f"Some work did not end within {_LAST_SECONDS} seconds; the server ends without it.", error=True)
    sys.stderr.flush()
    os._exit(1)


def _config(application: Any) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        http=Connection,
        h11_max_incomplete_event_size=MOST_HEAD_BYTES,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _bound(host: str, port: int) -> socket.socket:
    """Listen before models are loaded: callers wait, and another server finds the address taken."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except OSError as error:
        raise ConfigurationError(
            f"`{host}` is not an address of this machine: {error.strerror}. Correct it."
        ) from error
    try:
        both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        return socket.create_server(address, family=family, dualstack_ipv6=both)
    except OSError as error:
        raise ConfigurationError(
            f"{host}:{port} cannot be used: {os.strerror(error.errno or 0)}. Choose another with `--host` and "
            "`--port`, or stop the program that uses it."
        ) from error


def _print_loading(options: argparse.Namespace, settings: ServingSettings) -> None:
    if not options.json:
        modes = ", ".join(list_modes().get(settings.deployment, []))
        print_line(f"Loading {settings.deployment} ({modes}) with the library in {settings.folder} ...")
        for sentence in awaited_models(settings.deployment):
            print_line(f"First start: {sentence}")


def _print_ready(options: argparse.Namespace, deployment: str, url: str, *, keyless: bool) -> None:
    if options.open:
        # In a thread, because a browser in the terminal would block the server.
        threading.Thread(target=webbrowser.open, args=(f"{url}/",), daemon=True).start()
    lines = [f"Serving {deployment}. The page: {url}/   The interface: {url}/docs   Stop with Ctrl-C."]
    if keyless:
        lines += [
            "No API keys: only this machine may ask. Make one with `shiguan keys add --tenant NAME --role write`."
        ]
    print_result(options, {"url": url, "deployment": deployment, "keyless": keyless}, *lines)


def add_key(options: argparse.Namespace) -> int:
    file = _key_file(options)
    if not options.tenant and options.role != "metrics":
        raise RefusedError("`--tenant` is missing. Say whose library the key opens: `--tenant NAME`.")
    key, record = file.add(options.tenant, options.role, options.name, days=options.days)
    _audit("key add", record)
    line = f"Key {record.id} ({record.role}, tenant {record.tenant}) is in {file.path}. It is shown only now."
    print_result(options, {"key": key, **record.shown()}, key, line)
    return 0


def list_keys(options: argparse.Namespace) -> int:
    records = _key_file(options).read()
    lines = []
    for record in records:
        state = f"revoked {record.revoked}" if record.revoked else f"made {record.created}"
        state += f", expire{'d' if record.expired else 's'} {record.expires}" if record.expires else ""
        name = f"  {record.name}" if record.name else ""
        lines.append(f"{record.id}  {record.prefix}...  {record.role:<7}  {record.tenant}  {state}{name}")
    listed = {"keys": [record.shown() for record in records]}
    none = "There are no keys. Make one with `shiguan keys add --tenant NAME --role write`."
    print_result(options, listed, *(lines or [none]))
    return 0


def revoke_key(options: argparse.Namespace) -> int:
    record = _key_file(options).revoke(options.id)
    _audit("key revoke", record)
    line = f"Revoked {record.id} ({record.role}, tenant {record.tenant}). It is refused from the next request on."
    print_result(options, record.shown(), line)
    return 0


def _audit(action: str, record: KeyRecord) -> None:
    details = {"tenant": record.tenant, "key": record.id, "role": record.role, "expires": record.expires}
    audit(ServingSettings.from_environment().folder, action, **details)


def _key_file(options: argparse.Namespace) -> KeyFile:
    _set_data_dir(options)
    return KeyFile(ServingSettings.from_environment().keys_path)
