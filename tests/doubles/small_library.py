"""A library of four short texts, for tests that ask whole modes."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from shiguan.engine.library import IngestedFile, Library

TEXTS = {
    "salt.txt": "The salt monopoly was set up by Diwu Qi in 758. It paid half of the state's income by 780.",
    "tax.txt": "Yang Yan proposed the two-tax reform in 780. It was collected in summer and autumn.",
    "wall.txt": "The wall of the capital was eight metres high. It was pulled down in 904.",
    "tang.txt": "天宝十四载十一月，安禄山在范阳起兵。次年六月潼关失守，玄宗奔蜀。",
}
TENANT = "a"


def ingest_small_library(folder: Path) -> Path:
    """Ingest the texts for the tenant `a` and one text of its own for `b`."""
    texts = folder / "texts"
    texts.mkdir()
    for name, text in TEXTS.items():
        (texts / name).write_text(text, encoding="utf-8")
    secret = folder / "secret.txt"
    secret.write_text("The two-tax reform of tenant b was proposed by Li Mi in 779.", encoding="utf-8")
    data = folder / "data"
    library = Library(data_dir=data)

    def ingest() -> list[IngestedFile]:
        return [*library.ingest(sorted(texts.iterdir()), tenant_id=TENANT), *library.ingest([secret], tenant_id="b")]

    # In a thread, since a fixture of an asynchronous test is set up inside its event loop.
    with ThreadPoolExecutor(1) as pool:
        results = pool.submit(ingest).result()
    assert [result.parents for result in results] == [1] * 5
    for store in library.stores.values():
        store.close()
    return data


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
    with ThreadPoolExecutor(1) as pool:
        pool.submit(ingest_small_library, Path(folder.name)).result()
    return folder
