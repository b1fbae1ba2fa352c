"""Reading zip archives that may be broken or hostile: bounded, in memory, never written to disk."""

import io
import stat
import struct
import unicodedata
import zipfile
import zlib

from shiguan.errors import SourceError

MAX_UNPACKED_BYTES = 512 * 1024 * 1024
MAX_RATIO = 100
MAX_ENTRIES = 10_000
# Below this size a high ratio is harmless: a megabyte of blank pages or a repeated line is compressed a thousandfold.
RATIO_FLOOR_BYTES = 8 * 1024 * 1024

_CHUNK_BYTES = 64 * 1024
_END_RECORD = struct.Struct("<4s4H2LH")
_END_MAGIC = b"PK\x05\x06"
_END_SEARCH_BYTES = _END_RECORD.size + 0xFFFF
_ZIP64_MARK = 0xFFFF
_MAX_DIRECTORY_BYTES = 64 * 1024 * 1024
_LOCAL_HEADER_BYTES = 30
_COPY_AGAIN = "Copy or download the file again"
_READ_FAULTS = (
    zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, struct.error, ValueError,
    OverflowError, MemoryError,
)  # fmt: skip


class SafeArchive:
    """
    A zip archive whose entries are read into memory within fixed bounds.

    Refused as a whole: more than 10,000 entries, more than 512 MiB unpacked, an entry above 8 MiB packed more than a
    hundredfold, entries that share bytes, names that leave the archive, symbolic links, passwords. The sizes in the
    directory are only claims, so the bytes that come out are counted as well.
    """

    def __init__(self, data: bytes, source: str) -> None:
        self.source = source
        self._unpacked = 0
        self._zip = _open_zip(data, source)
        self._entries = self._check(self._zip.infolist())
        # All files, with forward slashes, in the order of the directory.
        self.names = list(self._entries)
        # Links may differ in case, or have composed characters where the archive has decomposed ones.
        self._folded = {_fold(name): name for name in reversed(self._entries)}

    def find(self, name: str) -> str | None:
        """Find the entry that a link means: the exact name, or else one that differs only in case or composition."""
        return name if name in self._entries else self._folded.get(_fold(name))

    def read(self, name: str, max_bytes: int = MAX_UNPACKED_BYTES) -> bytes:
        info = self._entries[name]
        packed = max(info.compress_size, 1)
        chunks, size = [], 0
        try:
            with self._zip.open(info) as stream:
                while chunk := stream.read(_CHUNK_BYTES):
                    size += len(chunk)
                    self._unpacked += len(chunk)
                    if self._unpacked > MAX_UNPACKED_BYTES:
                        raise _bomb(self.source, f"unpacks to more than {MAX_UNPACKED_BYTES // 2**20} MiB")
                    if size > RATIO_FLOOR_BYTES and size > MAX_RATIO * packed:
                        raise _bomb(self.source, f"entry `{name}` is packed more than {MAX_RATIO} to 1")
                    if size > max_bytes:
                        cause = f"entry `{name}` is larger than {max_bytes:,} bytes"
                        raise SourceError(self.source, cause, "Split it into smaller files")
                    chunks.append(chunk)
        except _READ_FAULTS as error:
            cause = f"entry `{name}` is damaged ({_reason(error)})"
            raise SourceError(self.source, cause, _COPY_AGAIN) from error
        return b"".join(chunks)

    def _check(self, infos: list[zipfile.ZipInfo]) -> dict[str, zipfile.ZipInfo]:
        if len(infos) > MAX_ENTRIES:
            raise _bomb(self.source, f"holds {len(infos):,} entries, the limit is {MAX_ENTRIES:,}")
        if sum(info.file_size for info in infos) > MAX_UNPACKED_BYTES:
            raise _bomb(self.source, f"unpacks to more than {MAX_UNPACKED_BYTES // 2**20} MiB")
        entries: dict[str, zipfile.ZipInfo] = {}
        for info in infos:
            name = self._safe_name(info)
            if info.flag_bits & 0x1:
                raise SourceError(self.source, "the zip archive is protected by a password", "Unlock it first")
            if info.file_size > RATIO_FLOOR_BYTES and info.file_size > MAX_RATIO * max(info.compress_size, 1):
                raise _bomb(self.source, f"entry `{name}` is packed more than {MAX_RATIO} to 1")
            if not name.endswith("/"):
                entries[name] = info
        end = -1
        for info in sorted(infos, key=lambda i: i.header_offset):
            if info.header_offset < end:
                raise _bomb(self.source, f"entry `{info.filename}` shares its bytes with another")
            end = info.header_offset + _LOCAL_HEADER_BYTES + info.compress_size
        return entries

    def _safe_name(self, info: zipfile.ZipInfo) -> str:
        # Some Windows tools write backslashes; they count as separators, so that they cannot hide an escape.
        name = info.filename.replace("\\", "/")
        parts = name.split("/")
        fault = "is a symbolic link" if stat.S_ISLNK(info.external_attr >> 16) else ""
        if name.startswith("/") or ".." in parts or (len(parts[0]) > 1 and parts[0][1] == ":"):
            fault = "has a path that leads out of the archive"
        if fault:
            cause = f"entry `{info.filename}` {fault}"
            raise SourceError(self.source, cause, "Do not trust this file; get it from another place")
        return name


def _bomb(source: str, what: str) -> SourceError:
    return SourceError(source, f"looks like a zip bomb: {what}", "Do not trust this file; check its origin")


def _open_zip(data: bytes, source: str) -> zipfile.ZipFile:
    if not data:
        raise SourceError(source, "the file is empty (0 bytes)", _COPY_AGAIN)
    if not data.startswith(b"PK"):
        raise SourceError(source, "is not a zip archive", "Give the file the extension that fits its content")
    tail = data[-_END_SEARCH_BYTES:]
    _check_directory(tail, source)
    try:
        return zipfile.ZipFile(io.BytesIO(data))
    except _READ_FAULTS as error:
        cause = f"the zip archive is damaged ({_reason(error)})"
        if tail.rfind(_END_MAGIC) < 0:
            cause = f"the zip archive is cut off: its directory is missing after {len(data):,} bytes"
        raise SourceError(source, cause, _COPY_AGAIN) from error


def _check_directory(tail: bytes, source: str) -> None:
    """Refuse a directory that is too large before it is read, which creates an object per entry."""
    at = tail.rfind(_END_MAGIC)
    if at < 0 or len(tail) - at < _END_RECORD.size:
        return
    _, _, _, _, count, size, _, _ = _END_RECORD.unpack_from(tail, at)
    if (count > MAX_ENTRIES and count != _ZIP64_MARK) or size > _MAX_DIRECTORY_BYTES:
        raise _bomb(source, f"holds {count:,} entries, the limit is {MAX_ENTRIES:,}")


def _fold(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _reason(error: BaseException) -> str:
    # An OSError's own text repeats the path; its strerror does not.
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
