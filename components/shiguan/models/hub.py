"""Weights that pipeline files name and the Hugging Face hub has: where they are, fetching and checking them."""

import hashlib
import re
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from shiguan.errors import ShiguanError

if TYPE_CHECKING:
    from huggingface_hub.hf_api import RepoSibling

HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
"""What the hub calls a model: an owner and a name."""

# The model itself and its modules (`1_Pooling/`); copies for other engines, pictures and code lie in other folders.
_OWN_FILE = re.compile(r"(?:\d+_[^/]+/)?[^/]+")
_DESCRIPTIONS = (".json", ".txt", ".model")


def local_folder(name: str) -> Path | None:
    """Return the folder in the hub's cache that has a model's weights whole; None where there is none."""
    revision = _revision_file(name)
    repository = revision.parents[1]
    try:
        folder = repository / "snapshots" / revision.read_text(encoding="utf-8").strip()
    except OSError:
        return None
    whole = not any(repository.glob("blobs/*.incomplete"))
    return folder if whole and any(_is_weights(file.name) and file.exists() for file in folder.glob("*")) else None


def _revision_file(name: str) -> Path:
    """Return the file of the hub's cache that says which snapshot a model's name stands for."""
    from huggingface_hub import constants  # noqa: PLC0415  # its client takes a while

    return Path(constants.HF_HUB_CACHE) / f"models--{name.replace('/', '--')}" / "refs" / "main"


def folder_size(folder: Path) -> int:
    """Return the bytes of all files in a folder; links count as what they point to."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def fetch_model(name: str) -> Path:
    """
    Download a model into the hub's cache, compare every file with the hub's own checksum, and give its folder.

    What a file of another checksum would run as is not known: it is deleted, and the model counts as missing.
    """
    from huggingface_hub import HfApi, constants, snapshot_download  # noqa: PLC0415

    try:
        info = HfApi().model_info(name, files_metadata=True)
        wanted = _wanted(info.siblings or [])
        folder = Path(snapshot_download(name, allow_patterns=[file.rfilename for file in wanted]))
    except Exception as error:  # the client raises what its HTTP library, the disk or the hub has for it
        reason = (str(error).strip().splitlines() or [""])[0]
        raise ShiguanError(
            f"The weights of `{name}` could not be fetched from {constants.ENDPOINT} ({type(error).__name__}: "
            f"{reason}). Check the name, the network and the room in {constants.HF_HUB_CACHE}, and run the same "
            "command again: what has arrived is kept. Without a network, copy that folder from a machine that has it."
        ) from error
    if not any(_is_weights(file.rfilename) for file in wanted):
        raise ShiguanError(
            f"`{name}` has no weights for torch at {constants.ENDPOINT}. Name another model in the YAML."
        )
    for file in wanted:
        _check(folder / file.rfilename, file, name)
    return folder


def _wanted(files: "list[RepoSibling]") -> "list[RepoSibling]":
    """Choose what transformers reads: safetensors where a folder has them, else pickled weights, and descriptions."""
    own = sorted((file for file in files if _OWN_FILE.fullmatch(file.rfilename)), key=_folder)
    wanted = []
    for _, group in groupby(own, key=_folder):
        inside = list(group)
        safe = any(file.rfilename.endswith(".safetensors") for file in inside)
        wanted += [
            file
            for file in inside
            if file.rfilename.endswith(_DESCRIPTIONS)
            or (_is_weights(file.rfilename) and file.rfilename.endswith(".safetensors") >= safe)
        ]
    return wanted


def _folder(file: "RepoSibling") -> str:
    return file.rfilename.rpartition("/")[0]


def _is_weights(name: str) -> bool:
    last = name.rpartition("/")[2]
    return last.endswith(".safetensors") or (last.startswith("pytorch_model") and last.endswith(".bin"))


def _check(path: Path, file: "RepoSibling", name: str) -> None:
    """Compare a file with its SHA-256 where the hub states one (all weights), else with the hash that git gave it."""
    if file.lfs:
        expected = file.lfs.sha256
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
    else:
        expected = file.blob_id or ""
        content = path.read_bytes()
        found = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    if found == expected:
        return
    path.resolve().unlink()
    path.unlink(missing_ok=True)
    _revision_file(name).unlink(missing_ok=True)
    raise ShiguanError(
        f"`{file.rfilename}` of `{name}` arrived with the checksum {found}, the hub states {expected}. It was deleted; "
        "run the same command again, and trust neither the mirror nor the proxy in between if it happens twice."
    )
