"""
What the questions of one tenant cost while another one asks for work without end, and hangs up.

    python -m bench.speed.hostile [verify] [why]

Prints the 95th percentile of a tenant's questions before, during and after; what `/ready` answered; and how long the
server takes to end in the middle of it.
"""

import contextlib
import json
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

from tests.doubles.server_process import ServerProcess
from tests.doubles.stand_in_llm import Fault, Rule, StandInLlm

from shiguan.serving.keys import KeyFile

ANSWER = "Guo Ziyi retook Chang'an in 757 [1]."
BOOK = b"Guo Ziyi retook Chang'an in 757. He served four emperors of the Tang.\n"
QUESTIONS = 40
SECONDS_UNTIL_HANGING_UP = 8
VERIFY, WHY = 8, 24


def hostile_text() -> str:
    """Write some 50,000 short quotations and 1.3 million spaces in two megabytes."""
    return '"a" ' * 50_000 + " " * 1_300_000


def hung_up(url: str, key: str, path: str, body: dict[str, object], stack: contextlib.ExitStack) -> socket.socket:
    """Send a request and leave the connection open until the stack closes it."""
    place = urlsplit(url)
    data = json.dumps(body).encode()
    line = stack.enter_context(socket.create_connection((place.hostname or "", place.port or 0)))
    head = f"POST {path} HTTP/1.1\r\nHost: {place.netloc}\r\nAuthorization: Bearer {key}\r\n"
    line.sendall(f"{head}Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
    return line


def hostile(server: ServerProcess, key: str, kind: str, stack: contextlib.ExitStack) -> None:
    """Ask for eight checks of a text made to take long, or 24 times why, of a model that says nothing."""
    if kind == "verify":
        bodies: list[dict[str, object]] = [{"text": hostile_text()}] * VERIFY
    else:
        bodies = [{"query": f"SILENT {number}?", "expected": "Guo Ziyi retook"} for number in range(WHY)]
    for body in bodies:
        hung_up(server.url, key, f"/api/v1/{kind}", body, stack)


class Asked:
    """Questions of the other tenant, one after the other, and `/ready` beside them."""

    def __init__(self, server: ServerProcess, key: str) -> None:
        self.server, self.headers = server, {"Authorization": f"Bearer {key}"}

    def questions(self, count: int, name: str) -> None:
        """Ask so many questions and print how long they took."""
        seconds, states, ready = [], Counter[int](), Counter[int]()
        for number in range(count):
            began = time.perf_counter()
            body = {"query": f"When did Guo Ziyi retake Chang'an, {name} {number}?"}
            with contextlib.suppress(Exception):
                states[
                    self.server.post("/api/v1/rag/query", json=body, headers=self.headers, timeout=20).status_code
                ] += 1
            seconds.append(time.perf_counter() - began)
            with contextlib.suppress(Exception):
                ready[self.server.get("/ready", timeout=5).status_code] += 1
        p95 = statistics.quantiles(seconds, n=20)[-1]
        middle = statistics.median(seconds)
        times = f"p50 {middle * 1000:6.0f} ms  p95 {p95 * 1000:6.0f} ms"
        print(f"{name:<28} {times}  questions {dict(states)}  /ready {dict(ready)}", flush=True)


def main() -> None:
    """Measure against a server of its own for each kind of work."""
    with (
        tempfile.TemporaryDirectory() as name,
        StandInLlm([Rule("SILENT", fault=Fault(hang=True))], default=ANSWER) as llm,
    ):
        folder = Path(name)
        keys = KeyFile(folder / "keys.json")
        made = {tenant: keys.add(tenant, "write")[0] for tenant in ("acme", "beta")}
        reader = keys.add("acme", "read")[0]
        settings = {"OPENAI_BASE_URL": llm.url, "OPENAI_API_KEY": "sk-x", "SHIGUAN_KEYS_FILE": str(keys.path)}
        for kind in sys.argv[1:] or ("verify", "why"):
            server = ServerProcess(folder / kind, **settings).start()
            try:
                for key in made.values():
                    by = {"headers": {"Authorization": f"Bearer {key}"}}
                    server.wait_for_job(server.upload("guo.txt", BOOK, **by).json()["id"], **by)
                asked = Asked(server, made["beta"])
                asked.questions(5, "warm")
                asked.questions(QUESTIONS, f"{kind}: before")
                with contextlib.ExitStack() as lines:
                    hostile(server, reader, kind, lines)
                    threading.Event().wait(1)
                    asked.questions(5, f"{kind}: while connected")
                    threading.Event().wait(SECONDS_UNTIL_HANGING_UP)
                threading.Event().wait(2)
                asked.questions(QUESTIONS, f"{kind}: 2 s after hanging up")
                with contextlib.ExitStack() as lines:
                    hostile(server, reader, kind, lines)
                    threading.Event().wait(2)
                    began = time.perf_counter()
                    with contextlib.suppress(Exception):
                        code, after = server.stop(timeout=30), time.perf_counter() - began
                        print(f"{kind}: SIGTERM in the middle: code {code} after {after:.1f} s", flush=True)
            finally:
                if server.process.poll() is None:
                    server.kill()
                    print(f"{kind}: it had to be killed", flush=True)


if __name__ == "__main__":
    main()
