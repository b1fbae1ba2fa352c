"""What the stand-ins for Elasticsearch and Qdrant share: a real HTTP server on this machine that writes down requests."""

import json
import threading
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.doubles import specifications
from tests.doubles.local_server import LocalHandler, LocalServer


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


class RecordingServer(LocalServer):
    """
    Serves `answer` of a subclass over HTTP; `requests` holds everything that was asked, in order.

    `faults` is a list of functions from a request to a reply or None; the first that replies is used instead of the
    stand-in's own answer. `late` seconds pass before each answer. Use as a context manager.
    """

    headers: ClassVar[dict[str, str]] = {}
    kind: ClassVar[str]
    """Which server it stands for, `es` or `qdrant`."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.requests: list[Request] = []
        self.faults: list[Any] = []
        self.failures: list[Exception] = []
        self.api_key: str | None = None
        self.late = 0.0
        self.lock = threading.RLock()
        self._stopping = threading.Event()

    def __exit__(self, *_: object) -> None:
        self.stop()
        if self.failures:
            raise AssertionError("The stand-in itself failed.") from self.failures[0]
        wrong = specifications.wrong(self.kind, self.requests)
        assert not wrong, f"the server's own specification has these otherwise: {wrong}"

    def start_again(self) -> None:
        """Open the port again after `stop`; what was kept is there."""
        self._stopping.clear()
        LocalServer.__init__(self, _Handler, self.server_address)
        self.__enter__()

    def stop(self) -> None:
        self._stopping.set()
        super().stop()

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


class _Handler(LocalHandler):
    server: RecordingServer

    def _serve(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        parts = urlsplit(self.path)
        if "ndjson" in (self.headers.get("Content-Type") or ""):
            body = [json.loads(line) for line in raw.splitlines() if line]
        else:
            body = json.loads(raw) if raw else None
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, unquote(parts.path), dict(parse_qsl(parts.query)), body, headers)
        reply = self.server.reply(request)
        data = b"" if self.command == "HEAD" else json.dumps(reply.body, default=str).encode()
        self.send_response(reply.status)
        for name, value in {"Content-Type": "application/json", **self.server.headers, **reply.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _serve
