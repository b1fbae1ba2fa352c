"""What the stand-ins for Elasticsearch and Qdrant share: a real HTTP server on this machine that writes down requests."""

import contextlib
import json
import socket
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.doubles import specifications


@dataclass
class Request:
    method: str
    path: str
    query: dict[str, str]
    body: Any
    headers: dict[str, str]


@dataclass
class Reply:
    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


class RecordingServer:
    """
    Serves `answer` of a subclass over HTTP; `requests` holds everything that was asked, in order.

    `faults` is a list of functions from a request to a reply or None; the first that replies is used instead of the
    stand-in's own answer. `late` seconds pass before each answer. Use as a context manager.
    """

    headers: ClassVar[dict[str, str]] = {}
    kind: ClassVar[str]
    """Which server it stands for, `es` or `qdrant`."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.faults: list[Any] = []
        self.failures: list[Exception] = []
        self.api_key: str | None = None
        self.late = 0.0
        self.lock = threading.RLock()
        self._stopping = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        if self.failures:
            raise AssertionError("The stand-in itself failed.") from self.failures[0]
        wrong = specifications.wrong(self.kind, self.requests)
        assert not wrong, f"the server's own specification has these otherwise: {wrong}"

    def start_again(self) -> None:
        """Open the port again after `stop`; what was kept is there."""
        self._stopping.clear()
        self._server = _Server(self._server.server_address, _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def stop(self) -> None:
        """Close the port and every connection; a second call does nothing."""
        self._stopping.set()
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
            self._server.hang_up()
            self._server.server_close()

    def hang_up(self) -> None:
        """Reset every connection, as a server does that stops."""
        self._server.hang_up()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def sent(self, method: str, path: str) -> list[Request]:
        """The requests of a method to a path that ends so."""
        return [request for request in self.requests if request.method == method and request.path.endswith(path)]

    def answer(self, request: Request) -> Reply:
        raise NotImplementedError

    def reply(self, request: Request) -> Reply:
        if self.late:
            self._stopping.wait(self.late)
        with self.lock:
            self.requests.append(request)
            for fault in self.faults:
                reply = fault(request)
                if reply is not None:
                    return reply
            try:
                return self.answer(request)
            except Exception as error:
                self.failures.append(error)
                return Reply({"error": f"the stand-in failed: {error}"}, status=500)


class _Server(ThreadingHTTPServer):
    """One thread for each connection; clients keep theirs open, and stopping ends them."""

    daemon_threads = False  # with block_on_close: no thread outlives a test

    def __init__(self, *arguments: Any) -> None:
        self._open: set[socket.socket] = set()
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        for connection in list(self._open):
            with contextlib.suppress(OSError):  # the client was faster
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:  # a client that resets is part of the tests
        pass


def _handler(owner: RecordingServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *_: Any) -> None:
            pass

        def _serve(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            parts = urlsplit(self.path)
            if "ndjson" in (self.headers.get("Content-Type") or ""):
                body = [json.loads(line) for line in raw.splitlines() if line]
            else:
                body = json.loads(raw) if raw else None
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(self.command, unquote(parts.path), dict(parse_qsl(parts.query)), body, headers)
            reply = owner.reply(request)
            data = b"" if self.command == "HEAD" else json.dumps(reply.body, default=str).encode()
            self.send_response(reply.status)
            for name, value in {"Content-Type": "application/json", **owner.headers, **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _serve

    return Handler
