"""Files: where YAML and prompts are, how one is written whole, if there is room for it; and how a time is written."""

import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import platformdirs
import yaml

from shiguan.errors import StoreFullError

_PACKAGE = Path(__file__).resolve().parent
_NAME = re.compile(r"[\w-]+")


def resource_folder(name: str) -> Path:
    """Find a folder that ships with Shiguan: `<name>_data` in a wheel, the checkout's own in an editable install."""
    places = [_PACKAGE / f"{name}_data", _PACKAGE.parents[1] / name]
    found = next((folder for folder in places if folder.is_dir()), None)
    if found is None:
        raise FileNotFoundError(
            f"The folder `{name}` of Shiguan is missing: looked in {places[0]}, {places[1]}. "
            'Install the package again with `pip install --force-reinstall "shiguan"`.'
        )
    return found


def install_command(extra: str) -> str:
    """Write the command that installs what an extra needs: from the checkout, else the packages that it names."""
    pip = f"{sys.executable} -m pip install"
    if (_PACKAGE.parents[1] / "pyproject.toml").is_file():
        return f'{pip} -e "{_PACKAGE.parents[1]}[{extra}]"'
    from importlib.metadata import PackageNotFoundError, requires  # noqa: PLC0415  # only where something is missing

    try:
        needed = [line.partition(";") for line in requires("shiguan") or () if "extra ==" in line]
    except PackageNotFoundError:
        needed = []
    wanted = [name.strip() for name, _, condition in needed if set(extra.split(",")) & set(_NAME.findall(condition))]
    return " ".join([pip, *(f'"{name}"' for name in wanted or [f"shiguan[{extra}]"])])


def utc_time(*, days: int = 0) -> str:
    """Write the present moment, or so many days later (a century at most), to the second."""
    moment = datetime.now(UTC) + timedelta(days=max(-36_500, min(days, 36_500)))
    return moment.isoformat(timespec="seconds")


def data_folder(path: str | Path | None = None) -> Path:
    """Return where a library is: in the folder that is named, else `SHIGUAN_DATA_DIR`, else the user's data folder."""
    return Path(path or os.environ.get("SHIGUAN_DATA_DIR", "").strip() or platformdirs.user_data_dir("shiguan"))


def cache_folder() -> Path:
    """Return the folder of everything that can be made again: `SHIGUAN_CACHE_DIR`, or the user's cache folder."""
    return Path(os.environ.get("SHIGUAN_CACHE_DIR", "").strip() or platformdirs.user_cache_dir("shiguan"))


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML file as it is now."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    table: dict[str, Any] = yaml.load(path.read_text(encoding="utf-8"), Loader=loader)  # noqa: S506
    return table


@cache
def read_table(path: Path) -> dict[str, Any]:
    """Read a YAML table that ships with Shiguan, once for the whole process: it may not be changed."""
    return read_yaml(path)


def read_texts(name: str) -> dict[str, Any]:
    """Read a table of texts that lies with the prompts."""
    return read_table(resource_folder("prompts") / f"{name}.yml")


@cache
def read_patterns(path: Path) -> dict[str, Any]:
    """
    Read a YAML table of regular expressions, once: every text in it becomes a compiled pattern that ignores case.

    In a pattern white space is layout, an underscore is a space, and `{name}` stands for the pattern of that name
    under `parts`.
    """
    table = read_table(path)
    parts = {f"{{{name}}}": _pattern(text) for name, text in table.get("parts", {}).items()}
    return {key: _compiled(value, parts) for key, value in table.items() if key != "parts"}


def _compiled(value: Any, parts: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _compiled(inner, parts) for key, inner in value.items()}
    if not isinstance(value, str):
        return value
    pattern = _pattern(value)
    for name, part in parts.items():
        pattern = pattern.replace(name, part)
    return re.compile(pattern, re.IGNORECASE)


def _pattern(text: str) -> str:
    return "".join(text.split()).replace("_", " ")


def write_whole(path: Path, content: bytes, *, mode: int = 0o666) -> None:
    """Write a file so that a crash, or another writer at the same moment, leaves the old one or the new one whole."""
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with open(aside, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    if os.name == "posix":  # elsewhere a folder cannot be opened, and a rename is safe by itself
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def write_json(path: Path, value: Any, *, mode: int = 0o666, indent: int | None = 1) -> None:
    """Write a value for people to read or, without an indent, in a third of the time."""
    write_whole(path, (json.dumps(value, ensure_ascii=False, indent=indent) + "\n").encode(), mode=mode)


def read_json(path: Path) -> dict[str, Any]:
    """Read an object from a JSON file; an empty one where the file is missing, or holds anything else."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def text_hash(text: str) -> str:
    """Return the SHA-256 of a text, which may have halves of characters."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def file_hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of the fields that `json` read, of which it would else keep the last of each name alone."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"`{next(name for name in names if names.count(name) > 1)[:40]}` is given twice")
    return found


FOR_WRITING = 64 * 1024 * 1024
"""Free bytes without which nothing new is written: some batches of passages with their vectors, several times over."""

FOR_DELETING = 8 * 1024 * 1024
"""Free bytes without which not even a deletion is begun, which needs a little to write down what is gone."""

FOR_OPENING = 1024 * 1024
"""Free bytes without which a library is not opened: the engine writes some 30 KB of its own while it opens."""


def check_free_space(folder: Path, needed: int = FOR_WRITING) -> None:
    """
    Raise a `StoreFullError` where a write would not find room.

    The embedded engine writes through mapped memory: if the disk is full then, the system ends the process.
    """
    free = shutil.disk_usage(folder).free
    if free < needed:
        work, kept = ("opening it", "") if needed == FOR_OPENING else ("writing", ", and can be read")
        raise StoreFullError(
            f"The disk with `{folder}` has {free / 1_000_000:,.1f} MB free; {work} needs {needed / 1_000_000:,.0f}. "
            f"Free space and run again; what is in the library stays{kept}."
        )


_masks: list[int] = []
_masking = threading.Lock()


@contextlib.contextmanager
def private_files() -> Iterator[None]:
    """Let only the owner read what the engine makes inside; the mask is the process's, the last one out restores it."""
    with _masking:
        _masks.append(os.umask(0o077))
    try:
        yield
    finally:
        with _masking:
            mask = _masks.pop()
            if not _masks:
                os.umask(mask)
