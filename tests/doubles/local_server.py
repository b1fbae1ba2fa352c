"""An HTTP server on this machine, for tests and stand-ins: a thread for each connection, and none that outlives it."""

import contextlib
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class LocalHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # the parts of a stream must leave one by one

    def log_message(self, *_: Any) -> None:
        pass


class LocalServer(ThreadingHTTPServer):
    """Serves while it is entered; clients keep their connections open, and stopping ends them."""

    daemon_threads = False  # with block_on_close: stopping waits for the calls
    request_queue_size = 256

    def __init__(self, handler: type[BaseHTTPRequestHandler], address: Any = ("127.0.0.1", 0)) -> None:
        self._open: set[socket.socket] = set()
        super().__init__(address, handler)
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.005}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Close the port and every connection; a second call does nothing."""
        if self._thread.is_alive():
            self.shutdown()
            self._thread.join()
            self.hang_up()
            self.server_close()

    def hang_up(self) -> None:
        """Reset every connection, as a server does that stops."""
        for connection in list(self._open):
            with contextlib.suppress(OSError):  # the client was faster
                connection.shutdown(socket.SHUT_RDWR)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # a client that resets is part of the tests
        pass
