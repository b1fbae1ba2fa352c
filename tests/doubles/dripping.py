"""A service that begins to answer and then sends a byte at a time, for as long as anybody listens."""

import socket
import threading
from typing import Self


class Dripping:
    """
    The server; `held` counts the connections that it holds, `left` is set when one was closed.

    :param beginning: What it sends at once.
    """

    def __init__(self, beginning: bytes = b"HTTP/1.1 200 OK\r\nX-Slow: ") -> None:
        self.beginning = beginning
        self.held = 0
        self.left = threading.Event()
        self.changed = threading.Condition()
        self._stopping = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listening.getsockname()[1]}/"

    def __enter__(self) -> Self:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for thread in self._threads:
            thread.join()

    def wait_until_holding(self, count: int, timeout: float = 30) -> bool:
        """Wait until so many connections are held at once."""
        with self.changed:
            return self.changed.wait_for(lambda: self.held >= count, timeout)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self._threads.append(threading.Thread(target=self._drip, args=(connection,), daemon=True))
            self._threads[-1].start()

    def _drip(self, connection: socket.socket) -> None:
        self._count(1)
        try:
            with connection:
                connection.recv(65536)
                connection.sendall(self.beginning)
                while not self._stopping.wait(0.02):
                    connection.sendall(b"x")
        except OSError:
            self.left.set()
        finally:
            self._count(-1)

    def _count(self, change: int) -> None:
        with self.changed:
            self.held += change
            self.changed.notify_all()
