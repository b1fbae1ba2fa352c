"""
A process that has imported what other processes need, and becomes one of them on request: two seconds less for each.

What it becomes is a child of whoever asked for it, with that one's pipes, environment and folder.
"""

import atexit
import ctypes
import importlib
import json
import os
import random
import runpy
import socket
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_ADOPTS = 36
"""`PR_SET_CHILD_SUBREAPER`: a process that loses its parent becomes a child of the one that has this set."""
_ONE_AT_A_TIME = threading.Lock()


class Forked(subprocess.Popen):
    """A process that is there already."""

    def __init__(self, pid, arguments, stdin, stdout, stderr):
        self.pid, self.args, self.returncode = pid, arguments, None
        self.stdin, self.stdout, self.stderr = os.fdopen(stdin, "w"), os.fdopen(stdout), os.fdopen(stderr)
        self.text_mode, self._child_created = True, True
        self._input, self._communication_started = None, False
        self._waitpid_lock, self._sigint_wait_secs = threading.Lock(), 0.25


@cache
def _server(*imported):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    path = os.pathsep.join([str(ROOT / "components"), str(ROOT)])
    command = [sys.executable, "-m", __name__, str(theirs.fileno()), *imported]
    server = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, pass_fds=[theirs.fileno()])
    theirs.close()
    atexit.register(server.wait)
    atexit.register(ours.close)  # runs first, and ends it
    return ours


def start(arguments, environment, imported=()):
    """
    Start Python with arguments of its command line: `-c` with a text, `-m` with a module, or a file.

    :param imported: Further modules that the process finds imported. It is made by a server of its own: some of these
        modules read the environment when they are imported.
    """
    adopts = ctypes.CDLL(None).prctl
    (stdin, to), (out, stdout), (err, stderr) = (os.pipe() for _ in range(3))
    asked = json.dumps([arguments, environment, str(Path.cwd())]).encode()
    with _ONE_AT_A_TIME:
        server = _server(*imported)
        adopts(_ADOPTS, 1)
        socket.send_fds(server, [asked], [stdin, stdout, stderr])
        pid = int(server.recv(100))
        adopts(_ADOPTS, 0)
    for end in (stdin, stdout, stderr):
        os.close(end)
    return Forked(pid, arguments, to, out, err)


def _asked(server):
    """Wait for requests, and go on as what one asks for: forked twice, so that whoever asked adopts it."""
    while True:
        given, pipes, *_ = socket.recv_fds(server, 1_000_000, 3)
        if not given:
            os._exit(0)
        told, telling = os.pipe()
        between = os.fork()
        if not between:
            made = os.fork()
            if not made:
                break
            os.write(telling, b"%d" % made)
            os._exit(0)
        os.waitpid(between, 0)
        server.send(os.read(told, 100))
        for end in (told, telling, *pipes):
            os.close(end)
    for end in (told, telling):
        os.close(end)
    server.close()
    for place, pipe in enumerate(pipes):
        os.dup2(pipe, place)
        os.close(pipe)
    return json.loads(given)


def _become(arguments, environment, folder):
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    random.seed()
    kind, rest = arguments[0], arguments[1:]
    if kind == "-c":
        sys.argv = ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__", "__builtins__": __builtins__})
    elif kind == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        runpy.run_path(kind, run_name="__main__")


if __name__ == "__main__":
    from shiguan.engine import library  # noqa: F401
    from shiguan.ingest import vector_writer  # noqa: F401
    from shiguan.stores.embedded import qdrant_edge_document_store  # noqa: F401

    for name in sys.argv[2:]:
        importlib.import_module(name)
    with socket.socket(fileno=int(sys.argv[1])) as asking:
        asked_for = _asked(asking)
    _become(*asked_for)
