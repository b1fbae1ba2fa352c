"""What every test gets: no network, a clean environment, and the folder of public data where there is one."""

import gc
import hashlib
import ipaddress
import os
import shutil
import socket
import ssl
import threading
from copy import deepcopy
from dataclasses import replace
from functools import cache, lru_cache
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from loky import reusable_executor

from shiguan import limited_process
from shiguan.engine import loading
from shiguan.models.engine import E5Encoder

# How long an example takes is the machine's matter and no property.
settings.register_profile("any machine", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
# Where Haystack 3 loads a file without our loader, it is told what it may import: the line of docs/migrating.md.
os.environ.setdefault("HAYSTACK_DESERIALIZATION_ALLOWLIST", "shiguan,tests")

ROOT = Path(__file__).resolve().parents[1]
# Stores flush what they write to the disk, which takes no time where that is memory: if the machine has enough of it.
if (memory := Path("/dev/shm")).is_dir() and shutil.disk_usage(memory).free > 4 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))
_PLACES = ("SHIGUAN_DATA_DIR", "SHIGUAN_ELASTICSEARCH_URL", "SHIGUAN_QDRANT_URL")
_CLEARED = ("OPENAI_", "SHIGUAN_", "HAYSTACK_UNSAFE", "TIKTOKEN_")
_real_connect = socket.socket.connect
_real_getaddrinfo = socket.getaddrinfo


# What is collected stays until the end: nine thousand tests need not be looked through each time garbage is.
gc.disable()


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


def _is_local(host: object) -> bool:
    if isinstance(host, bytes):
        host = host.decode()
    if host in (None, "", "localhost"):
        return True
    try:
        return ipaddress.ip_address(str(host)).is_loopback
    except ValueError:
        return False


@pytest.fixture(autouse=True)
def no_network(request, monkeypatch):
    """Let a test reach this machine only, unless it is marked as an integration test."""
    if request.node.get_closest_marker("integration"):
        return

    def connect(self, address):
        if isinstance(address, tuple) and not _is_local(address[0]):
            raise RuntimeError(f"This test tried to reach {address}; only tests marked `integration` may.")
        return _real_connect(self, address)

    def getaddrinfo(host, *args, **kwargs):
        if not _is_local(host):
            raise RuntimeError(f"This test tried to look up {host!r}; only tests marked `integration` may.")
        return _real_getaddrinfo(host, *args, **kwargs)

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


@pytest.fixture(scope="session")
def data_folders(tmp_path_factory):
    """Name a data folder for each test, which is made where one writes to it: most tests use no file."""
    folder = tmp_path_factory.mktemp("shiguan-data")
    return (folder / str(number) for number in count())


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch, data_folders):
    """Keep keys and data folders of the person running the tests out of them."""
    for name in list(os.environ):
        if name.startswith(_CLEARED):
            monkeypatch.delenv(name)
    monkeypatch.setenv("SHIGUAN_DATA_DIR", str(next(data_folders)))


@pytest.fixture(scope="session", autouse=True)
def certificates_read_once():
    """Let the clients share what each would read anew, 20 ms every time: a mode that is opened makes up to twenty."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", cache(ssl.create_default_context))
        yield


@pytest.fixture(scope="session", autouse=True)
def shipped_files_checked_once():
    """Let the loader check the files of a deployment once, half of what opening a mode takes."""
    check, fine = loading.check_pipeline, {}

    def checked(path, name, **options):
        if path.parent.name not in ("embedded", "elasticsearch_qdrant"):
            return check(path, name, **options)
        # Only whether there is a model counts, not the port of its stand-in.
        given = {one: value if one.startswith("SHIGUAN_") else "" for one, value in os.environ.items()}
        given = {one: value for one, value in given.items() if one.startswith(_CLEARED) and one not in _PLACES}
        key = (path.read_bytes(), name, *options.items(), *sorted(given.items()))
        if key not in fine:
            report = check(path, name, **options)
            if report.findings:
                return report
            fine[key] = report
        return replace(fine[key], content=deepcopy(fine[key].content))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "check_pipeline", checked)
        yield


@pytest.fixture(scope="session", autouse=True)
def one_process_reads_files():
    """Let all threads of the tests read files in the same process: to start one takes a second or two."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reusable_executor, "_executor_storage", SimpleNamespace(executor=None, executor_kwargs=None))
        patch.setattr(limited_process, "_IDLE_SECONDS", 600)
        yield
        limited_process.end_all()


@pytest.fixture
def a_process_for_each_thread(monkeypatch):
    """As it is outside of the tests."""
    monkeypatch.setattr(reusable_executor, "_executor_storage", reusable_executor._ExecutorStorage())
    yield
    limited_process.end_all()


@pytest.fixture(scope="session")
def public_data() -> Path:
    """The folder of public evaluation data; tests that need it are skipped where it is absent."""
    folder = Path(os.environ.get("SHIGUAN_PUBLIC_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no public data at {folder}; see bench/quality/README.md")
    return folder


@pytest.fixture(scope="module", autouse=True)
def model_reads_once(tmp_path_factory):
    """
    Let the embedder read each window once: the tests check and embed the same passages again and again.

    Vectors of windows are kept for all processes of a run, those of their tokens, which take more, for this one. A
    module that looks at the embedder's work itself has a fixture of this name that does nothing.
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "vectors"
    folder.mkdir(exist_ok=True)

    def kept_sum(encoder, window):
        place = folder / hashlib.sha256(repr(window).encode()).hexdigest()
        if not place.exists():
            made = folder / f"{place.name}-{os.getpid()}-{threading.get_ident()}"
            made.write_bytes(_add_up(encoder, window).tobytes())
            made.replace(place)
        return np.frombuffer(place.read_bytes(), np.float32)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(E5Encoder, "_read", lambda encoder, window: _read_once(encoder, tuple(window)))
        patch.setattr(E5Encoder, "_sum", kept_sum)
        yield


_read, _add_up = E5Encoder._read, E5Encoder._sum


@lru_cache(1_000)
def _read_once(encoder, window):
    tokens = _read(encoder, list(window))
    tokens.setflags(write=False)
    return tokens


@pytest.fixture
def endpoint(stand_in_llm, monkeypatch):
    """The scripted model, named by the environment."""
    monkeypatch.setenv("OPENAI_BASE_URL", stand_in_llm.url)
    return stand_in_llm


@pytest.fixture
def stand_in_llm():
    """An LLM that answers by rules over real HTTP; set `.rules`, `.default` and its knobs in the test."""
    from tests.doubles.stand_in_llm import StandInLlm

    with StandInLlm() as llm:
        yield llm


@pytest.fixture
def services():
    """CBDB and Wikipedia over real HTTP on this machine."""
    from tests.doubles.stand_in_services import StandInServices

    with StandInServices() as services:
        yield services


@pytest.fixture(scope="module")
def reading():
    """What reads a file into parents, as the embedded ingest does."""
    from shiguan.ingest.conversion import Conversion

    definition, _ = loading.load_ingest("embedded", outputs=["parents"])
    return Conversion(definition)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The folder of a library of four short texts, for the tests of a module."""
    from tests.doubles.small_library import small_library

    return small_library(tmp_path_factory.mktemp("library"))
