"""One data folder for several processes: the one that has it open serves the others' calls over a local socket."""

import contextlib
import errno
import hmac
import inspect
import json
import os
import secrets
import socket
import socketserver
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

from filelock import FileLock, Timeout
from haystack import logging
from haystack.dataclasses import Document
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack.errors import FilterError

from shiguan import errors
from shiguan.errors import StoreError, StoreFullError, StoreLockedError
from shiguan.resources import read_json, text_hash, utc_time, write_json
from shiguan.stores.embedded.points import plain_meta
from shiguan.stores.embedded.reading import translate
from shiguan.text.passages import SharedDocument

logger = logging.getLogger(__name__)

OWNER_FILE = "owner.json"
"""The file in the data folder that names the process that has it open, and where it listens."""

OPENING_SECONDS = 20.0
"""How long a process that has just taken the folder may need until it answers."""
_CALL_SECONDS = 60.0
_CLOSING_SECONDS = 1.0
_MOST_OWNERS = 20
"""How many owners may end during one call."""
_TURN_SECONDS = 60.0
_ANNOUNCING_SECONDS = 1.0
_PLACE = "shiguan-"
# The settings of a store beside its folder.
_SETTINGS = ("embedding_dim", "embedding_model", "bm25_fields")

Method = TypeVar("Method", bound=Callable[..., Any])
_methods: dict[str, Callable[..., Any]] = {}
_ERRORS: dict[str, type[Exception]] = {
    known.__name__: known
    for known in (*vars(errors).values(), DuplicateDocumentError, FilterError, TypeError, ValueError)
    if isinstance(known, type) and issubclass(known, Exception)
}


class OwnerEndedError(Exception):
    """The process that had the folder open has ended; the call may or may not have been executed."""


def shared(method: Method) -> Method:
    """Run a store's method in the process that has the store's folder open, this or another."""
    signature = inspect.signature(method)
    _methods[method.__name__] = method

    @wraps(method)
    def run(self: Any, *arguments: Any, **words: Any) -> Any:
        for _ in range(_MOST_OWNERS):
            engine = self._open()
            if not isinstance(engine, EngineClient):
                return method(self, *arguments, **words)
            given = dict(signature.bind(self, *arguments, **words).arguments)
            del given["self"]
            try:
                result = engine.call(method.__name__, {name: getattr(self, name) for name in _SETTINGS}, given)
            except OwnerEndedError as error:
                # All other calls can be repeated.
                policy = given.get("policy", DuplicatePolicy.NONE)
                if method.__name__ == "write_documents" and policy in (DuplicatePolicy.NONE, DuplicatePolicy.FAIL):
                    raise StoreError(
                        f"{engine.owner} ended while it wrote for this process into `{engine.folder}`. What is written "
                        "is whole documents. See which are there before you write them again."
                    ) from error
                continue
            return _unpacked(result, signature.return_annotation)
        raise StoreLockedError(f"The data folder `{self.folder}` changed its owner {_MOST_OWNERS} times. Try again.")

    return cast("Method", run)


class _Listener(socketserver.ThreadingMixIn, getattr(socketserver, "UnixStreamServer", socketserver.TCPServer)):  # type: ignore[misc]  # as below
    request_queue_size = 64
    engine: "EngineServer"

    def verify_request(self, request: Any, client_address: Any) -> bool:  # noqa: ARG002
        """Drop what arrives when the folder closes: Python starts no thread once it exits (since 3.12)."""
        return not self.engine.closing

    def process_request(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # Python exits, and another process closes the call; a thread that never ran has no end
            self._threads.reap()
            raise

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        logger.debug("A call of another process broke off: {error}", error=repr(sys.exception()))


class _Call(socketserver.StreamRequestHandler):
    """One call of another process, in its own connection and thread: a line with the key, the call, the reply."""

    timeout = 5.0

    def handle(self) -> None:
        engine: EngineServer = self.server.engine  # type: ignore[attr-defined]
        key = engine.key.encode() + b"\n"
        if hmac.compare_digest(self.rfile.readline(len(key)), key):
            self.wfile.write(engine.reply(self.rfile.readline()) + b"\n")


class EngineServer:
    """Answers the calls of other processes in the one that has a folder open."""

    def __init__(
        self, folder: Path, answer: Callable[[Callable[..., Any], dict[str, Any], dict[str, Any]], Any]
    ) -> None:
        self.key = secrets.token_hex(16)
        self._answer = answer
        self._file = folder / OWNER_FILE
        self.closing = False
        if not hasattr(socketserver, "UnixStreamServer"):
            raise OSError("Python has no Unix sockets on this system")
        _remove_place(read_owner(folder).get("address"))
        # In the data folder its path could be too long for the system, and a copy of the folder would stumble over it.
        self._listener = _Listener(str(Path(tempfile.mkdtemp(prefix=_PLACE)) / "engine"), _Call)
        self._listener.engine = self
        self._thread = threading.Thread(target=self._listen, name="shiguan-engine", daemon=True)
        self._thread.start()
        where = {"folder": str(folder), "address": self._listener.server_address, "key": self.key}
        try:
            write_json(self._file, this_process() | where, mode=0o600)
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Finish the running calls, and accept no others."""
        self.closing = True
        with contextlib.suppress(OSError):
            self._file.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            _connect(self._listener.server_address).close()  # wakes the thread
        self._thread.join(_CLOSING_SECONDS)
        self._listener.server_close()
        _remove_place(self._listener.server_address)

    def abandon(self) -> None:
        """Stop listening in a forked child; the parent goes on."""
        self._listener.socket.close()

    def _listen(self) -> None:
        while not self.closing:
            self._listener.handle_request()

    def reply(self, request: bytes) -> bytes:
        """Carry out a call."""
        try:
            name, settings, arguments = json.loads(request)
            result = self._answer(_methods[name], settings, _arguments(arguments))
            return json.dumps({"result": result}, default=_plain).encode()
        except Exception as error:
            return json.dumps({"error": [type(error).__name__, str(error)]}).encode()


class EngineClient:
    """Sends calls to the process that has a folder open; `closed` when that one has ended."""

    def __init__(self, folder: Path, owner: dict[str, Any]) -> None:
        self.folder = folder
        self.owner = described(owner)
        self.closed = False
        self._address, self._key = owner["address"], owner["key"]
        _connect(self._address).close()

    def close(self) -> None:
        self.closed = True

    def call(self, name: str, settings: dict[str, Any], arguments: dict[str, Any]) -> Any:
        """Call one of the store's methods."""
        _check(arguments)
        request = json.dumps([name, settings, arguments], default=_plain)
        # A write waits for others, and quantizing a large store takes minutes.
        seconds = _CALL_SECONDS * (10 if name.startswith(("write_", "delete_", "drop_")) else 1)
        try:
            with _connect(self._address) as connection, connection.makefile("rb") as replies:
                connection.sendall(f"{self._key}\n{request}\n".encode())
                connection.settimeout(seconds)
                line = replies.readline()
        except TimeoutError as error:
            raise StoreLockedError(
                f"The data folder `{self.folder}` is open in {self.owner}, which has not answered for "
                f"{seconds:g} seconds. If it was stopped (Ctrl-Z), continue it with `fg` or end it."
            ) from error
        except OSError:
            line = b""
        if not line.endswith(b"\n"):
            self.closed = True
            raise OwnerEndedError(self.owner)
        reply = json.loads(line)
        if "error" in reply:
            kind, message = reply["error"]
            raise _ERRORS.get(kind, StoreError)(message)
        return reply["result"]


def _connect(address: Any) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(_CALL_SECONDS)
        connection.connect(address)
    except BaseException:
        connection.close()
        raise
    return connection


def connect(folder: Path) -> EngineClient | None:
    """Connect to the process that has a folder open; None if it does not listen, or not yet."""
    try:
        return EngineClient(folder, read_owner(folder))
    except (OSError, KeyError):
        return None


def read_owner(folder: Path) -> dict[str, Any]:
    """Read which process has a folder open; it may have been killed meanwhile."""
    owner = read_json(folder / OWNER_FILE)
    # A copied folder has the file of the original.
    return owner if owner.get("folder") == str(folder) else {}


def this_process() -> dict[str, Any]:
    """Describe this process for others."""
    words = [Path(sys.argv[0]).name, *sys.argv[1:2]] if sys.argv and sys.argv[0] else ["python"]
    return {"pid": os.getpid(), "command": " ".join(words), "since": utc_time()}


def described(process: dict[str, Any]) -> str:
    """Name a process for people."""
    if process.get("pid") == os.getpid():
        return "this process"
    if "pid" not in process:
        return "another Shiguan process"
    return f"another Shiguan process, {process['pid']} (`{process.get('command')}`, since {process.get('since')})"


def _remove_place(address: object) -> None:
    """Remove what a process listened at."""
    place = Path(str(address)).parent
    if place.name.startswith(_PLACE) and place.parent == Path(tempfile.gettempdir()):
        with contextlib.suppress(OSError):
            (place / "engine").unlink(missing_ok=True)
            place.rmdir()


@contextlib.contextmanager
def turn(folder: Path, tenant_id: str, source: str, waiting: Callable[[str], object] | None) -> Iterator[None]:
    """Let one process at a time write or delete a source; `waiting` is told each second which; else none waits."""
    name = text_hash(json.dumps([tenant_id, source]))[:32]
    holder = folder / f"{name}.json"
    lock = FileLock(folder / f"{name}.lock", mode=0o600, thread_local=False)
    deadline = time.monotonic() + _TURN_SECONDS
    while not lock.is_locked:
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock.acquire(timeout=_ANNOUNCING_SECONDS if waiting else 0)
        except Timeout:
            process = described(read_json(holder))
            if waiting is None or time.monotonic() > deadline:
                raise StoreLockedError(
                    f"`{source}` is being written by {process}. Nothing was changed. Run the same again when that one "
                    "is done."
                ) from None
            waiting(process)
        except OSError as error:
            kind = StoreFullError if error.errno == errno.ENOSPC else StoreError
            raise kind(
                f"`{folder}` cannot be written: {error}. Free space or make it writable, then try again."
            ) from error
    try:
        with contextlib.suppress(OSError):
            holder.write_text(json.dumps(this_process()), encoding="utf-8")
        yield
    finally:
        with contextlib.suppress(OSError):  # in a folder that may no longer be written
            holder.unlink(missing_ok=True)
        lock.release()


def _check(arguments: dict[str, Any]) -> None:
    """Refuse what the store itself would refuse, before JSON does it in other words."""
    documents = arguments.get("documents", [])
    if not isinstance(documents, list) or not all(isinstance(each, Document) for each in documents):
        raise ValueError("`documents` must be a list of Documents.")
    for each in documents:
        plain_meta(each)
    translate(arguments.get("filters"))


def _plain(value: Any) -> Any:
    """Write what JSON does not have: documents, policies, the numbers of NumPy, sets and tuples."""
    if isinstance(value, Document):
        return [value.id, value.content, value.meta, value.embedding, value.score]
    if isinstance(value, DuplicatePolicy):
        return value.value
    return value.tolist() if hasattr(value, "tolist") else list(value)


def _arguments(packed: dict[str, Any]) -> dict[str, Any]:
    if "policy" in packed:
        packed["policy"] = DuplicatePolicy(packed["policy"])
    if "documents" in packed:
        packed["documents"] = _unpacked(packed["documents"], list[Document])
    return packed


def _unpacked(value: Any, kind: Any) -> Any:
    """Restore what JSON does not have: documents, sets and tuples."""
    if kind == list[Document]:
        return [
            (Document if score is None else SharedDocument)(
                id=name, content=content, meta=meta, embedding=embedding, score=score
            )
            for name, content, meta, embedding, score in value
        ]
    if kind == set[str]:
        return set(value)
    if kind == dict[str, tuple[int, int]]:
        return {name: (first, second) for name, (first, second) in value.items()}
    return value
