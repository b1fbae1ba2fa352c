"""The processes of the load benchmark: a stand-in LLM, our server, a plain Hayhooks; each measured from outside."""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import yaml
from bench.speed.synthetic import TENANTS

KEY = "the-load-benchmark"
START_SECONDS = 300.0
"""How long a server may take until it is ready; the plain one writes its library anew at every start."""

# Twenty tokens as the stand-in counts them, with the mark that every mode looks for.
_ANSWER = "The river rose in the spring of that year and the village was moved up the hill [1]."
_REWORDED = ["who lived in the village by the river", "when did the people move up the hill"]
_LOOKED_UP = {"name": "search_library", "arguments": {"query": _REWORDED[0]}}
_ROOT = Path(__file__).resolve().parents[2]


class ServerProcess:
    """A server in a process of its own."""

    def __init__(self, arguments: list[str], *, url: str, ready: str, environment: dict[str, str]) -> None:
        self.url = url
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=_ROOT,
            env={**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", **environment},
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        self._measured = psutil.Process(self._process.pid)
        self._wait(url + ready)

    def _wait(self, url: str) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                if httpx.get(url, timeout=5, trust_env=False).status_code == 200:
                    return
            except httpx.HTTPError:
                pass
            time.sleep(0.2)
        self._log.seek(0)
        told = self._log.read().decode(errors="replace")[-3000:]
        self.stop()
        raise RuntimeError(f"The server at {url} did not start:\n{told}")

    def cpu_seconds(self) -> float:
        """Give the CPU time that the process has used so far, all threads."""
        times = self._measured.cpu_times()
        return float(times.user + times.system)

    def memory_mib(self) -> float:
        """Give the memory that the process holds now."""
        return float(self._measured.memory_info().rss) / 2**20

    def stop(self) -> None:
        """End the process."""
        self._process.terminate()
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()


@contextmanager
def stand_in_llm(port: int, *, first_token: float, per_token: float, answer: str = _ANSWER) -> Iterator[ServerProcess]:
    """Start the LLM."""
    settings: dict[str, Any] = {
        "time_to_first_token": first_token,
        "time_per_token": per_token,
        "default": answer,
        "rules": [
            {"match": '"queries": \\[', "reply": {"queries": _REWORDED}},
            # The agent looks once further: what a tool found has the numbers after the five passages found at first.
            {"match": '\\A(?!.*number="6").*Toolbox:', "reply": {"tool_calls": [_LOOKED_UP]}},
        ],
    }
    with tempfile.TemporaryDirectory() as folder:
        rules = Path(folder) / "rules.yml"
        rules.write_text(yaml.safe_dump(settings, allow_unicode=True), encoding="utf-8")
        server = ServerProcess(
            ["-m", "tests.doubles.stand_in_llm", "--port", str(port), "--rules", str(rules)],
            url=f"http://127.0.0.1:{port}",
            ready="/v1/models",
            environment={},
        )
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def our_server(port: int, *, data_dir: Path, llm_url: str) -> Iterator[ServerProcess]:
    """Start `shiguan serve` over a library, with the modes of `embedded`."""
    hashed = hashlib.sha256(KEY.encode()).hexdigest()
    keys = data_dir.with_name(f"{data_dir.name}-keys.json")
    record = {"id": hashed[:12], "hash": hashed, "tenant": TENANTS[0][0], "role": "read"}
    keys.write_text(json.dumps({"keys": [record]}), encoding="utf-8")
    server = ServerProcess(
        ["-m", "shiguan.cli", "serve", "--host", "127.0.0.1", "--port", str(port), "--data-dir", str(data_dir)],
        url=f"http://127.0.0.1:{port}",
        ready="/health",
        environment={
            "SHIGUAN_KEYS_FILE": str(keys),
            # All clients are one tenant here, which may have half.
            "SHIGUAN_MAX_IN_FLIGHT": "400",
            **llm_environment(llm_url),
        },
    )
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def plain_server(port: int, *, children: int, llm_url: str) -> Iterator[ServerProcess]:
    """Start Hayhooks with one YAML file."""
    server = ServerProcess(
        ["-m", "bench.speed.plain_hayhooks", "--port", str(port), "--children", str(children)],
        url=f"http://127.0.0.1:{port}",
        ready="/status/simple",
        environment=llm_environment(llm_url),
    )
    try:
        yield server
    finally:
        server.stop()


def llm_environment(url: str) -> dict[str, str]:
    """Give the variables that name an LLM."""
    return {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "any", "HAYSTACK_TELEMETRY_ENABLED": "False"}
