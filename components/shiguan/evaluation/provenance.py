"""What is needed to repeat a run, and to tell whether two runs measured the same thing."""

import json
import os
import platform
import re
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from shiguan import __version__
from shiguan.engine.library import Library, Progress
from shiguan.engine.loading import INGESTING, mappings, pipeline_path, read_definition
from shiguan.errors import RefusedError
from shiguan.evaluation.json_lines import fingerprint
from shiguan.llm.model_settings import DEFAULT_MODEL, is_endpoint_configured
from shiguan.llm.prompts import own_prompts
from shiguan.resources import file_hash, resource_folder, write_json

_PACKAGE = Path(__file__).resolve().parents[1]
_PACKAGES = ("haystack-ai", "qdrant-edge-py", "onnxruntime", "sentence-transformers", "transformers", "torch", "numpy")
TENANT = "evaluation"  # the tenant of an ingested corpus
_INGESTED = "ingested.json"
_MODEL_FIELDS = ("model", "tokenizer", "embedding_model")


def stamp(deployment: str, *modes: str | Path) -> dict[str, Any]:
    """Describe everything of Shiguan that passages and answers depend on."""
    definitions = {name: read_definition(deployment, name) for name in modes}
    return {
        "shiguan": __version__,
        "code": code_hash(),
        "packages": fingerprint(_versions({*_PACKAGES, *_required()})),
        "deployment": deployment,
        "pipelines": {path.name: file_hash(path)[:16] for path in (pipeline_path(deployment, n) for n in definitions)},
        "prompts": fingerprint(prompt_hashes()),
        "models": sorted(
            {node[name] for node in mappings(definitions) for name in _MODEL_FIELDS if isinstance(node.get(name), str)}
        ),
    }


def describe_configuration(
    deployment: str, mode: str | Path, *, data: dict[str, str], options: dict[str, Any]
) -> dict[str, Any]:
    """Describe everything that the numbers of a run depend on."""
    llm: dict[str, Any] = {"model": "none"}
    if is_endpoint_configured():
        address = urlsplit(os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1")
        # Host and port only: an address may carry a password.
        llm = {"model": os.environ.get("OPENAI_MODEL") or DEFAULT_MODEL, "host": address.netloc.rpartition("@")[2]}
    name = mode.stem if isinstance(mode, Path) else mode
    return {**stamp(deployment, *INGESTING, mode), "mode": name, "llm": llm, "data": data, "options": options}


def corpus_stamp(files: list[Path], deployment: str) -> dict[str, Any]:
    """Describe everything that an ingested corpus depends on."""
    return {"corpus": {file.name: file_hash(file) for file in files}, **stamp(deployment, *INGESTING)}


def ingest_corpus(files: list[Path], deployment: str, data_dir: Path, progress: Progress | None = None) -> list[str]:
    """Ingest the corpus into a data folder, unless an earlier run did; return what was skipped or warned of."""
    now, state = corpus_stamp(files, deployment), data_dir / _INGESTED
    earlier: dict[str, Any] = {}
    with suppress(FileNotFoundError, ValueError, TypeError):  # a broken one is that of a library of somebody else
        earlier = dict(json.loads(state.read_text(encoding="utf-8")))
    changed = ", ".join(key for key in now if earlier.get(key) != now[key])
    if not changed and "notes" in earlier:  # written last
        return list(earlier["notes"])
    if changed and data_dir.is_dir() and any(data_dir.iterdir()):
        raise RefusedError(
            f"{data_dir} holds a library that was not made by an evaluation, or with another {changed}; its documents "
            "would be found too. Name an empty `--data-dir`, leave it out, or remove the folder."
        )
    data_dir.mkdir(parents=True, exist_ok=True)
    write_json(state, now)
    library = Library(deployment, data_dir=data_dir)
    notes: list[str] = []
    for result in library.ingest(files, tenant_id=TENANT, progress=progress):
        notes += [f"{entry['source']}: {entry['cause']}" for entry in result.skipped]
        notes += result.warnings
    if not library.count(tenant_id=TENANT):
        raise RefusedError(f"Nothing could be ingested from {files[0]}: {'; '.join(notes[:3]) or 'it has no text'}.")
    for store in library.stores.values():
        store.close()
    write_json(state, {**now, "notes": notes})
    return notes


def describe_circumstances() -> dict[str, Any]:
    """Describe what a run was made with and should not depend on: commit, versions, machine."""
    cpu = platform.processor() or platform.machine()
    machine = {"cpu": cpu, "cores": os.cpu_count(), "system": platform.system(), "python": platform.python_version()}
    return {"commit": commit(), "versions": _versions(_PACKAGES), "machine": machine}


def code_hash() -> str:
    """Fingerprint the installed package, its tables and templates too."""
    return fingerprint(_hashes(_PACKAGE))


def prompt_hashes() -> dict[str, str]:
    own = own_prompts()
    return {**_hashes(resource_folder("prompts")), **(_hashes(own) if own is not None else {})}


def commit() -> str | None:
    """Name the commit of a checkout, and whether files of it were changed."""
    root = _PACKAGE.parents[1]
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--exclude=*", "--abbrev=40", "--dirty=+changes"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)  # noqa: S603 - no shell
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _hashes(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix(): file_hash(path)[:16] for path in files}


def _required() -> set[str]:
    """List the packages that Shiguan requires: another PDF reader gives other passages."""
    with suppress(PackageNotFoundError):  # a checkout that was never installed
        return {re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in requires("shiguan") or []}
    return set()


def _versions(packages: Iterable[str]) -> dict[str, str]:
    found = {}
    for package in packages:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found
