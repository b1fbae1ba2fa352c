"""Everything that is needed to repeat a run, and to tell whether two runs are of the same thing."""

import hashlib
import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from shiguan import __version__
from shiguan.evaluation.json_lines import file_hash
from shiguan.evaluation.run_store import fingerprint
from shiguan.llm.endpoint import DEFAULT_MODEL, is_endpoint_configured
from shiguan.loading import pipeline_path, read_definition
from shiguan.resources import resource_folder

_PACKAGE = Path(__file__).resolve().parents[1]
_PACKAGES = ("haystack-ai", "qdrant-edge-py", "sentence-transformers", "transformers", "torch", "numpy", "scipy")
_MODEL_FIELDS = ("model", "tokenizer", "embedding_model")


def describe_configuration(
    deployment: str, mode: str | Path, *, data: dict[str, str], options: dict[str, Any]
) -> dict[str, Any]:
    """
    Name what the numbers of a run hang on; two runs with the same description measure the same thing.

    :param deployment: A folder of `pipelines/`.
    :param mode: A file of that folder, or a pipeline file of one's own.
    :param data: File name to SHA-256 of what is measured on.
    :param options: What else was asked for, such as the number of questions and the seed.
    :returns: JSON: the hashes of code, pipelines and prompts, the models, the data and the options.
    """
    definitions = {name: read_definition(deployment, name) for name in ("index", mode)}
    llm: dict[str, Any] = {"model": "extractive"}
    if is_endpoint_configured():
        address = urlsplit(os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1")
        # Host and port only: an address may carry a password.
        llm = {"model": os.environ.get("OPENAI_MODEL") or DEFAULT_MODEL, "host": address.netloc.rpartition("@")[2]}
    return {
        "shiguan": __version__,
        "code": code_hash(),
        "deployment": deployment,
        "mode": mode.stem if isinstance(mode, Path) else mode,
        "pipelines": {path.name: file_hash(path)[:16] for path in (pipeline_path(deployment, n) for n in definitions)},
        "prompts": {"all": fingerprint(prompt_hashes()), "files": prompt_hashes()},
        "models": {str(path): value for definition in definitions.values() for path, value in _models(definition, "")},
        "llm": llm,
        "data": data,
        "options": options,
    }


def describe_circumstances() -> dict[str, Any]:
    """
    Name what a run was made with and should not hang on: commit, versions, machine.

    :returns: JSON; nothing in it names the computer or its user.
    """
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {"commit": commit(), "versions": versions, "machine": machine()}


def code_hash(*folders: str) -> str:
    """
    Fingerprint the installed source code of Shiguan.

    :param folders: Only these folders of the package; none for all of it.
    :returns: 16 hexadecimal digits.
    """
    roots = [_PACKAGE / folder for folder in folders] or [_PACKAGE]
    digest = hashlib.sha256()
    for path in sorted(path for root in roots for path in root.rglob("*.py")):
        digest.update(f"{path.relative_to(_PACKAGE).as_posix()} {file_hash(path)}\n".encode())
    return digest.hexdigest()[:16]


def prompt_hashes() -> dict[str, str]:
    """
    Fingerprint every prompt file.

    :returns: Path below `prompts/` to the first 16 digits of its SHA-256.
    """
    folder = resource_folder("prompts")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): file_hash(path)[:16] for path in files}


def commit() -> str | None:
    """
    Name the commit of the checkout that this code runs from.

    :returns: The commit, with `+changes` behind it where engine, pipelines or prompts differ from it; None where this
        is no checkout or there is no git.
    """
    root = _PACKAGE.parents[1]
    if not (root / ".git").exists():
        return None
    head = _git(root, "rev-parse", "HEAD")
    changed = _git(root, "status", "--porcelain", "--", "components", "pipelines", "prompts")
    return f"{head}+changes" if head and changed else head


def machine() -> dict[str, Any]:
    """
    Describe the machine, for whoever reads a latency.

    :returns: Processor, cores, memory in GiB, system and Python.
    """
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line]
        cpu = names[0] if names else cpu
    memory = None
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30)
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "memory_gib": memory,
        "system": platform.system(),
        "python": platform.python_version(),
    }


@cache
def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603 - fixed words, no shell
            ["git", "-C", str(root), *arguments],  # noqa: S607
            capture_output=True,
            text=True,
            check=True,
            timeout=20,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _models(node: Any, place: str) -> list[tuple[str, str]]:
    """Find every model that a pipeline names, with the place where it stands."""
    found: list[tuple[str, str]] = []
    if isinstance(node, dict):
        for key, value in node.items():
            if key in _MODEL_FIELDS and isinstance(value, str):
                found.append((place.removeprefix("components."), value))
            elif not str(key).startswith("x-"):
                found += _models(value, place if key == "init_parameters" else f"{place}.{key}".lstrip("."))
    return found
