"""A library of four short texts, for tests that ask whole modes."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from shiguan.engine.library import Library

TEXTS = {
    "salt.txt": "The salt monopoly was set up by Diwu Qi in 758. It paid half of the state's income by 780.",
    "tax.txt": "Yang Yan proposed the two-tax reform in 780. It was collected in summer and autumn.",
    "wall.txt": "The wall of the capital was eight metres high. It was pulled down in 904.",
    "tang.txt": "天宝十四载十一月，安禄山在范阳起兵。次年六月潼关失守，玄宗奔蜀。",
}
TENANT = "a"


def own_library(folder: Path, **texts: dict[str, str]) -> Path:
    """Ingest the texts of each tenant, by the names of their files, into a library in a folder; give its place."""
    (folder / "texts").mkdir()
    library = Library(data_dir=folder / "data")

    def ingest() -> None:
        for tenant_id, own in texts.items():
            for name, text in own.items():
                (folder / "texts" / name).write_text(text, encoding="utf-8")
            files = [folder / "texts" / name for name in sorted(own)]
            assert all(done.parents and not done.skipped for done in library.ingest(files, tenant_id=tenant_id))

    # In a thread, since a fixture of an asynchronous test is set up inside its event loop.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(ingest).result()
    for store in library.stores.values():
        store.close()
    return folder / "data"


def ingest_small_library(folder: Path) -> Path:
    """Ingest the texts for the tenant `a` and one text of its own for `b`."""
    return own_library(
        folder, a=TEXTS, b={"secret.txt": "The two-tax reform of tenant b was proposed by Li Mi in 779."}
    )


def small_library(folder: Path) -> Path:
    """Copy the library into a folder, which is made; the texts were ingested once for all tests of this process."""
    return copy_library(Path(_ingested().name) / "data", folder / "data")


def copy_library(source: Path, target: Path) -> Path:
    """Copy the folder of a library; its files are one thousandth data and otherwise holes, which stay holes."""
    return shutil.copytree(source, target, copy_function=_copy_sparse)


def _copy_sparse(source: str, target: str) -> None:
    with Path(source).open("rb") as old, Path(target).open("wb") as new:
        end, at = os.fstat(old.fileno()).st_size, 0
        while at < end:
            try:
                at = os.lseek(old.fileno(), at, os.SEEK_DATA)
            except OSError:
                break  # nothing but a hole follows
            stop = os.lseek(old.fileno(), at, os.SEEK_HOLE)
            at += os.pwrite(new.fileno(), os.pread(old.fileno(), stop - at, at), at)
        new.truncate(end)


@cache
def _ingested() -> "TemporaryDirectory[str]":
    folder = TemporaryDirectory(prefix="small-library-")
    ingest_small_library(Path(folder.name))
    return folder
