"""Files: where the YAML pipelines and the prompts are, and how a file is written whole or not at all."""

import json
import os
import secrets
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).resolve().parent


def resource_folder(name: str) -> Path:
    """
    Find a folder of files that ship with Shiguan.

    A wheel carries it inside the package as `<name>_data`; an editable install finds the checkout's own folder, so
    that an edited YAML or prompt counts at once.
    """
    candidates = [_PACKAGE / f"{name}_data", _PACKAGE.parents[1] / name]
    for folder in candidates:
        if folder.is_dir():
            return folder
    raise FileNotFoundError(
        f"The folder `{name}` of Shiguan is missing: looked in {', '.join(str(c) for c in candidates)}. "
        'Install the package again with `pip install --force-reinstall "shiguan"`.'
    )


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


def write_json(path: Path, value: Any, *, mode: int = 0o666) -> None:
    """Write a value as JSON, whole or not at all."""
    write_whole(path, (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode(), mode=mode)
