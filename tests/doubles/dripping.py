"""A service that begins to answer and then sends a byte at a time, for as long as anybody listens."""

import threading

from tests.doubles.local_server import LocalHandler, LocalServer


class Dripping(LocalServer):
    """
    The server; `held` counts the connections that it holds, `left` is set when one was closed.

    :param beginning: What it sends at once.
    """

    def __init__(self, beginning: bytes = b"HTTP/1.1 200 OK\r\nX-Slow: ") -> None:
        super().__init__(_Handler)
        self.beginning = beginning
        self.held = 0
        self.left = threading.Event()
        self.changed = threading.Condition()
        self.stopping = threading.Event()

    def hang_up(self) -> None:
        self.stopping.set()
        super().hang_up()

    def wait_until_holding(self, count: int, timeout: float = 30) -> bool:
        """Wait until so many connections are held at once."""
        with self.changed:
            return self.changed.wait_for(lambda: self.held >= count, timeout)

    def count(self, change: int) -> None:
        with self.changed:
            self.held += change
            self.changed.notify_all()


class _Handler(LocalHandler):
    server: Dripping

    def do_GET(self) -> None:
        self.close_connection = True
        self.server.count(1)
        try:
            self.wfile.write(self.server.beginning)
            while not self.server.stopping.wait(0.02):
                self.wfile.write(b"x")
        except OSError:
            self.server.left.set()
        finally:
            self.server.count(-1)

    do_POST = do_GET
