"""What ships with the code: the folders of pipelines and prompts, and the tables of patterns beside their readers."""

import re
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
