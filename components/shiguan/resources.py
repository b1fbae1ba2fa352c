"""Files: what ships with the code, tables of patterns beside their readers, and files written whole or not at all."""

import json
import os
import re
import secrets
from pathlib import Path
from typing import Any

import yaml

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


def read_patterns(path: Path) -> dict[str, Any]:
    """
    Read a YAML table of regular expressions: every text in it becomes a compiled pattern that ignores case.

    In a pattern white space is layout, an underscore is a space, and `{name}` stands for the pattern of that name
    under `parts`.
    """
    table = yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    parts = {f"{{{name}}}": _pattern(text) for name, text in table.pop("parts", {}).items()}
    return {key: _compiled(value, parts) for key, value in table.items()}


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


def write_json(path: Path, value: Any, *, mode: int = 0o666) -> None:
    """Write a value as JSON, whole or not at all."""
    write_whole(path, (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode(), mode=mode)
