"""Weights that pipeline files name and the Hugging Face hub has: where they are, fetching and checking them."""

import re
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from shiguan.errors import ShiguanError

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
    """Download a model into the hub's cache and give its folder; a file of another checksum is deleted."""
    from huggingface_hub import HfApi, constants, snapshot_download  # noqa: PLC0415

    try:
        wanted = _wanted(file.rfilename for file in HfApi().model_info(name).siblings or ())
        folder = Path(snapshot_download(name, allow_patterns=wanted))
        spoiled = HfApi().verify_repo_checksums(name).mismatches
    except Exception as error:  # the client raises what its HTTP library, the disk or the hub has for it
        reason = (str(error).strip().splitlines() or [""])[0]
        raise ShiguanError(
            f"The weights of `{name}` could not be fetched from {constants.ENDPOINT} ({type(error).__name__}: "
            f"{reason}). Check the name, the network and the room in {constants.HF_HUB_CACHE}, and run the same "
            "command again: what has arrived is kept. Without a network, copy that folder from a machine that has it."
        ) from error
    if not any(map(_is_weights, wanted)):
        raise ShiguanError(
            f"`{name}` has no weights for torch at {constants.ENDPOINT}. Name another model in the YAML."
        )
    for file in spoiled:
        path = folder / file["path"]
        path.resolve().unlink()
        path.unlink(missing_ok=True)
        _revision_file(name).unlink(missing_ok=True)
        raise ShiguanError(
            f"`{file['path']}` of `{name}` arrived with the checksum {file['actual']}, the hub states "
            f"{file['expected']}. It was deleted; run the same command again, and trust neither the mirror nor the "
            "proxy in between if it happens twice."
        )
    return folder


def _wanted(files: Iterable[str]) -> list[str]:
    """Choose what transformers reads: safetensors where a folder has them, else pickled weights, and descriptions."""
    wanted = []
    for _, group in groupby(sorted(filter(_OWN_FILE.fullmatch, files), key=_folder), key=_folder):
        inside = list(group)
        weights = [file for file in inside if _is_weights(file)]
        wanted += [file for file in inside if file.endswith(_DESCRIPTIONS)]
        wanted += [file for file in weights if file.endswith(".safetensors")] or weights
    return wanted


def _folder(file: str) -> str:
    return file.rpartition("/")[0]


def _is_weights(file: str) -> bool:
    last = file.rpartition("/")[2]
    return last.endswith(".safetensors") or (last.startswith("pytorch_model") and last.endswith(".bin"))
