"""Refuses to write where a disk is almost full, before the write."""

import shutil
from pathlib import Path

from shiguan.errors import StoreFullError

FOR_WRITING = 64 * 1024 * 1024
"""Free bytes without which nothing new is written: some batches of passages with their vectors, several times over."""

FOR_OPENING = 8 * 1024 * 1024
"""Free bytes without which not even a deletion is begun, which needs a little to write down what is gone."""


def check_free_space(folder: Path, needed: int = FOR_WRITING) -> None:
    """
    Make sure that a write finds room.

    The embedded engine writes through mapped memory. Where the disk is full at that moment, the operating system ends
    the process without a word; so there has to be room before. A quota that the system does not report as free space
    is not seen.
    """
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise StoreFullError(
            f"The disk with `{folder}` has {free / 1_000_000:,.0f} MB free; writing needs "
            f"{needed / 1_000_000:,.0f}. "
            "Free space and run again; what is in the library stays, and can be read."
        )
