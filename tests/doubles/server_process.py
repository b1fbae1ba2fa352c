"""The real server in a process of its own, on a free port of this machine."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
from collections import deque
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import httpx
from tests.doubles.started import python

ROOT = Path(__file__).resolve().parents[2]
IMPORTED = ("shiguan.commands.serve", "shiguan.serving.mcp_tools", "tests.doubles.loaded_modes")
"""What takes a server half of its start; Hayhooks is not among it, which reads its settings when it is imported."""


class ServerProcess:
    """
    `shiguan serve` with a data folder.

        with ServerProcess(tmp_path) as server:
            assert server.get("/ready").status_code == 200

    :param data_dir: Its data folder.
    :param command: What to start instead, with `{port}` in place of a free one; it answers at `ready`.
    :param ready: An address of it that answers 200 once it has started.
    :param port: The port; 0 for a free one.
    :param environment: Further variables.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        command: list[str] | None = None,
        ready: str = "/ready",
        port: int = 0,
        **environment: str,
    ) -> None:
        self.port = port
        self.data_dir = data_dir
        self.command = command
        self.ready = ready
        self.environment = environment
        self.url = ""
        self.client = httpx.Client(timeout=30)
        self.log: deque[str] = deque(maxlen=500)

    def start(self) -> Self:
        """Start and wait until it answers."""
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI_", "SHIGUAN_", "HAYHOOKS_"))}
        environment = {
            **inherited, "PYTHONPATH": str(ROOT / "components"), "SHIGUAN_DATA_DIR": str(self.data_dir),
            "OMP_NUM_THREADS": "1", "HAYSTACK_TELEMETRY_ENABLED": "False", **self.environment,
        }  # fmt: skip
        if self.command:
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
            command = [part.format(port=port) for part in self.command]
            self.url = f"http://127.0.0.1:{port}"
            self.process = subprocess.Popen(
                command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment
            )
        else:
            command = ["-m", "shiguan.cli", "serve", "--port", str(self.port), "--json"]
            self.process = python(*command, environment=environment, imported=IMPORTED)
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()
        started = self._answers() if self.command else self._says_where()
        if not started:
            self.process.kill()
            self.process.wait(10)
            self._reader.join(5)
            raise AssertionError(f"The server did not start ({self.process.returncode}):\n{self.errors}")
        return self

    def _says_where(self) -> bool:
        line = self.process.stdout.readline()
        if line:
            self.url = json.loads(line)["url"]
        else:
            self.process.wait(10)
        return bool(line)

    def _answers(self) -> bool:
        pause = threading.Event()
        for _ in range(1200):
            with contextlib.suppress(httpx.ConnectError):
                return self.get(self.ready).status_code == 200
            if self.process.poll() is not None:
                break
            pause.wait(0.05)
        return False

    def _read_log(self) -> None:
        for line in self.process.stderr:
            self.log.append(line)

    @property
    def errors(self) -> str:
        return "".join(self.log)

    def kill(self) -> None:
        """End it as a crash would."""
        self.process.kill()
        self._end()

    def stop(self, timeout: float = 20) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        finally:
            self._end()
        return self.process.returncode

    def _end(self) -> None:
        self.process.wait()
        self._reader.join(5)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe:
                pipe.close()
        self.client.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.client.get(self.url + path, **more)

    def post(self, path: str, **more: Any) -> httpx.Response:
        return self.client.post(self.url + path, **more)

    def send(self, path: str, body: Any, **headers: str) -> socket.socket:
        """Send a request whose reply nobody reads, over a connection that the caller closes."""
        place, data = urlsplit(self.url), json.dumps(body).encode()
        connection = socket.create_connection((place.hostname, place.port))
        head = {"Host": place.netloc, "Content-Type": "application/json", "Content-Length": str(len(data)), **headers}
        lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in head.items()), "", ""]
        connection.sendall("\r\n".join(lines).encode() + data)
        return connection

    def delete(self, path: str, **more: Any) -> httpx.Response:
        return self.client.delete(self.url + path, **more)

    def upload(self, name: str, content: bytes, **more: Any) -> httpx.Response:
        return self.post("/api/v1/documents", files={"file": (name, content)}, **more)

    def wait_for_job(self, job_id: str, *, seconds: float = 30, **more: Any) -> dict[str, Any]:
        """Ask for a job until it is over."""
        pause = threading.Event()
        for _ in range(int(seconds / 0.05)):
            job = self.get(f"/api/v1/documents/jobs/{job_id}", **more).json()
            if job.get("state") not in ("queued", "running"):
                return job
            pause.wait(0.05)
        raise AssertionError(f"The job is not over after {seconds} seconds: {job}")
