"""
Pack the sample book into an EPUB.

The sources in `examples/book/` are the book: every file there goes into the archive, unchanged. The bytes are the same
on every machine and at every time, so a book that has not changed is never ingested again: the order of the files is
fixed, the time stamps are those of the zip format's first day, and nothing is compressed (two versions of zlib may pack
the same text differently).

    python examples/build_book.py [TARGET]        # default: .data/an-lushan-rebellion.epub
"""

import sys
import zipfile
from pathlib import Path

BOOK = Path(__file__).resolve().parent / "book"
TARGET = Path(__file__).resolve().parents[1] / ".data" / "an-lushan-rebellion.epub"
_FIRST_DAY = (1980, 1, 1, 0, 0, 0)
_MODE = 0o100644 << 16


def build_book(target: Path = TARGET, source: Path = BOOK) -> Path:
    """
    Write the EPUB and return its path.

    :param target: the file to write; its folder is made, an older file is replaced only if the bytes differ.
    :param source: the folder of the book's sources.
    :returns: `target`.
    :raises FileNotFoundError: if `source` holds no `mimetype` file, so it is no EPUB's folder.
    """
    files = [path for path in source.rglob("*") if path.is_file() and not path.name.startswith(".")]
    names = sorted(path.relative_to(source).as_posix() for path in files)
    if "mimetype" not in names:
        raise FileNotFoundError(f"{source} holds no file `mimetype`; expected the sources of the sample book there.")
    # The EPUB container format wants `mimetype` first and the container file is read next.
    names.sort(key=lambda name: (name != "mimetype", not name.startswith("META-INF/"), name))

    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(target.name + ".part")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_STORED) as archive:
        for name in names:
            entry = zipfile.ZipInfo(name, date_time=_FIRST_DAY)
            entry.create_system = 3
            entry.external_attr = _MODE
            archive.writestr(entry, _content(source / name))
    if target.is_file() and target.read_bytes() == partial.read_bytes():
        partial.unlink()
    else:
        partial.replace(target)
    return target


def _content(path: Path) -> bytes:
    """Read a file; a checkout with Windows line endings still gives the same book."""
    return path.read_bytes().replace(b"\r\n", b"\n")


if __name__ == "__main__":
    print(build_book(Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET))
