"""Where the public sets are, and how they are read."""

import os
import sys
from pathlib import Path
from typing import Any

from shiguan.evaluation.json_lines import read_json_lines

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("SHIGUAN_PUBLIC_DATA", ROOT.parent / "shared" / "data"))


def is_missing(folder: Path) -> bool:
    """Return whether a folder of the public sets is not there, and print that."""
    if missing := not folder.is_dir():
        print(f"{folder} is missing; see bench/quality/README.md on how to get it.", file=sys.stderr)
    return missing


def read(path: Path) -> list[dict[str, Any]]:
    """Read the rows of a set."""
    return [row for _, row in read_json_lines(path)]
