"""The kinds of files that can be ingested; names and opens sources, and decodes text."""

import codecs
import io
import re
import string
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import chardet
from haystack import Document, component, logging
from haystack.dataclasses import ByteStream

from shiguan.errors import SourceError
from shiguan.resources import read_patterns, read_table
from shiguan.text.passages import changed

logger = logging.getLogger(__name__)


class FileType(NamedTuple):
    """A kind of file from `file_types.yaml`; `name` is for people."""

    name: str
    mime_type: str
    is_text: bool
    endings: list[str]
    content: list[str | None]


TABLE = read_table(Path(__file__).with_name("file_types.yaml"))
_KINDS = [FileType(**kind) for kind in TABLE["kinds"]]
EPUB, PDF, DOCX, HTML, MARKDOWN, TEXT, JSONL, _ = _KINDS


def identify(source: str | Path | ByteStream) -> tuple[str, str, dict[str, Any]]:
    """Return the path of a source as given ("" for bytes without a name), its name for people, and its own meta."""
    path, own = str(source), {}
    if isinstance(source, ByteStream):
        path = str(source.meta.get("file_path") or source.meta.get("file_name") or "")
        own = {key: value for key, value in source.meta.items() if key not in ("file_path", "file_name")}
    return path, Path(path).name or path or "(bytes without a name)", own


@contextmanager
def opened(source: str | Path | ByteStream, name: str) -> Iterator[BinaryIO]:
    """Open a source, or raise an error that says why it cannot be read."""
    if isinstance(source, ByteStream):
        yield io.BytesIO(source.data)
        return
    try:
        path = Path(source)
        if path.is_dir():
            raise SourceError(name, "it is a folder", "Name the files in it")
        if not path.exists():
            raise SourceError(name, "there is no such file", "Check the path")
        if not path.is_file():
            raise SourceError(name, "it is not a regular file", "Copy its content to a file")
        with path.open("rb") as file:
            yield file
    except OSError as error:
        reason = error.strerror or str(error)
        raise SourceError(name, f"it cannot be opened ({reason})", "Check the path and its permissions") from error


class Reports(NamedTuple):
    """What a converter gives out beside documents."""

    skipped: list[dict[str, str]]
    warnings: list[str]


class Converter:
    """What all converters have in common; a hostile file costs no other one, whatever it causes in a parser."""

    @component.output_types(documents=list[Document], skipped=list[dict[str, str]], warnings=list[str])
    def run(self, sources: list[str | Path | ByteStream]) -> dict[str, Any]:
        """
        Convert files.

        :param sources: Paths or byte streams; what these have in their meta goes into their documents.
        :returns: `documents` in reading order; `skipped`, one `{"source", "cause", "next_step"}` for each file (of
            JSONL for each row) that could not be read; `warnings`, sentences on what was mended or left out.
        """
        documents: list[Document] = []
        reports = Reports([], [])
        for source in sources:
            path, name, own = identify(source)
            try:
                with opened(source, name) as file:
                    stream = ByteStream(file.read(), meta=own | ({"file_path": path} if path else {}))
                documents += _told_apart(self._read(stream, name, reports))
            except MemoryError:
                raise
            except Exception as error:
                unforeseen = f"it could not be read ({type(error).__name__})", "Check the file, and report the fault"
                fault = error if isinstance(error, SourceError) else SourceError(name, *unforeseen)
                logger.warning("Skipped {source}: {cause}", source=name, cause=fault.cause)
                reports.skipped.append(fault.record)
        return {"documents": documents, **reports._asdict()}

    def _read(self, source: ByteStream, name: str, reports: Reports) -> list[Document]:
        """Read a file's content with its meta, and its name for people."""
        raise NotImplementedError


def _told_apart(documents: list[Document]) -> list[Document]:
    """Give what a section repeats word for word ids of its own: joiners and stores keep one document of each id."""
    times = Counter[str]()
    for at, document in enumerate(documents):
        times[document.id] += 1
        if (number := times[document.id]) > 1:
            [documents[at]] = changed([document], [{"id": f"{document.id}-{number}"}])
    return documents


def left_out_sentence(source: str, parts: Mapping[str, int], advice: str = "") -> str:
    """Return what of a file was skipped: each kind of part with its number of characters."""
    named = ", ".join(f"{kind} ({size:,} characters)" for kind, size in parts.items())
    return f"{source}: skipped (not body text): {named}{advice}."


def type_by_name(name: str, mime_type: str | None = None) -> FileType | None:
    """Return the kind by the file's name, or by a stated MIME type where the name has no known ending."""
    named = (kind for kind in _KINDS if name.lower().endswith(tuple(kind.endings)))
    return next(named, None) or next((kind for kind in _KINDS if kind.mime_type == mime_type), None)


# In the declaration of an XML file, or in an element of an HTML page.
_DECLARED = re.compile(
    rb"""<(?:\?xml\b[^>]{0,200}?encoding|meta\b[^>]{0,200}?charset)\s*=\s*["']?([A-Za-z0-9._:-]{1,40})""", re.IGNORECASE
)
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# The detector reads this many bytes; the chosen encoding must then decode all of them.
_SAMPLE = 60_000
_EAST_ASIAN = ("gb18030", "big5hkscs", "euc_jis_2004", "cp932", "cp949")
_COMMON = read_patterns(Path(__file__).with_name("encodings.yaml"))["common"]
_LEAST_SHARE = 0.25
# Where most letters are Cyrillic, Arabic or Hebrew, this share of them is among the commonest small ones.
_SCRIPTS = ("Windows-1251", "ISO-8859-5", "KOI8-U", "IBM866", "Windows-1256", "ISO-8859-6", "Windows-1255")
_LETTERS, _LEAST_LETTERS = frozenset("аеиіклнорствاليمنوترةبعיוהלאתמרבשנם"), 0.5
# A character beyond the first plane as CESU-8 writes it: its two halves, in three bytes each.
_HALVES = re.compile(rb"\xed[\xa0-\xaf][\x80-\xbf]\xed[\xb0-\xbf][\x80-\xbf]")
_EAST_ASIAN_LETTER = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af]")
# Lists of rare names have a twentieth.
_ENOUGH_LETTERS, _LEAST_COMMON = 30, 0.03
# The detector is sure of this much, 0 to 1, or the text is in Latin letters, most of which need no encoding.
_SURE, _FEW = 0.2, 0.2
_LEAD = 0.08
# A decoded text with more than one of these in a thousand characters is not text.
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f\ufffd\ue000-\uf8ff]")


# Of a text that is otherwise certain, one byte in so many may be damaged, and two places in a short one; for each, so
# many characters show that it is UTF-8.
_DAMAGED_SHARE = 1000
_DAMAGED_ANYWAY = 2
_NO_LETTER = re.compile("[\x80-\x84\x86-\x9f]")
# What single bytes that this encoding does not have become.
_NOT_IN_CP932 = re.compile("[\x80\uf8f0-\uf8f3]")
_HIGH = bytes(range(0x80, 0x100))
_LEAST_UTF8 = 10


_SUPERSETS = {
    **dict.fromkeys(("gb2312", "gbk", "x-gbk"), "gb18030"),
    **dict.fromkeys(("shift-jis", "x-sjis", "sjis", "windows-31j"), "cp932"),
    **dict.fromkeys(("euc-kr", "ks-c-5601-1987"), "cp949"),
    "big5": "big5hkscs",
    **dict.fromkeys(("iso-8859-1", "iso8859-1", "latin1", "latin-1", "l1"), "cp1252"),
    **dict.fromkeys(("iso-8859-9", "iso8859-9", "latin5"), "cp1254"),
    **dict.fromkeys(("iso-8859-11", "tis-620", "windows-874"), "cp874"),
}


class DecodedText(NamedTuple):
    """A text, its original encoding, and how many damaged places were replaced by U+FFFD."""

    text: str
    encoding: str
    damaged: int = 0


def declared_encoding(data: bytes) -> str:
    """Return the encoding that a markup file states, or nothing."""
    found = _DECLARED.search(data[:2048])
    return found[1].decode("ascii").lower() if found else ""


def decode_text(data: bytes, declared: str = "") -> DecodedText | None:
    """Decode a file's bytes, of which one in a thousand may be damaged; None where no encoding is certain."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return _strict(data, encoding) or _lenient(data, encoding)
    if b"\0" in data and (wide := _wide(data)) is not None:
        return wide
    data = data.rstrip(b"\0\x1a")  # where a disk or DOS ended a file
    if b"\0" in data:
        return None
    if b"~{" in data and data.isascii() and (hz := _strict(data, "hz")) and _COMMON.search(hz.text):
        return hz
    declared = declared or ("iso2022_kr" if b"\x1b$)C" in data else "iso2022_jp_ext" if b"\x1b$" in data else "")
    stated = [superset(declared), declared] if declared else []
    # Encodings that switch by escape sequences are valid UTF-8, too.
    for encoding in [*stated, "utf-8"] if b"\x1b" in data else ["utf-8", *stated]:
        if (decoded := _strict(data, encoding)) is not None:
            return decoded
    if (joined := _strict(_HALVES.sub(_whole, data), "utf-8")) is not None:
        return joined
    damaged = _lenient(data, "utf-8")
    if damaged and sum(char > "\x7f" for char in damaged.text) > (_LEAST_UTF8 + 1) * damaged.damaged:
        return damaged
    east_asian = _east_asian(data, _strict) or _scripted(data) or _east_asian(data, _lenient)
    return east_asian or _detected(data) or _wide(data)


def _whole(halves: re.Match[bytes]) -> bytes:
    return halves[0].decode("utf-8", "surrogatepass").encode("utf-16", "surrogatepass").decode("utf-16").encode()


def _lenient(data: bytes, encoding: str) -> DecodedText | None:
    text = data.decode(encoding, errors="replace")
    text = _NOT_IN_CP932.sub("\ufffd", text) if encoding == "cp932" else text
    damaged = text.count("\ufffd")
    return DecodedText(text, encoding.removesuffix("-sig"), damaged) if damaged <= may_be_damaged(data) else None


def may_be_damaged(data: bytes) -> int:
    """Return how many places of a text may be damaged."""
    return _DAMAGED_ANYWAY + len(data) // _DAMAGED_SHARE


def _strict(data: bytes, encoding: str) -> DecodedText | None:
    try:
        text = data.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        return None
    lost = encoding == "cp932" and _NOT_IN_CP932.search(text)
    return None if lost else DecodedText(text, encoding.removesuffix("-sig"))


def superset(name: str) -> str:
    """Return the encoding that files with a stated one really use: of GB2312, Shift_JIS or Latin-1 a larger set."""
    lower = name.lower().replace("_", "-")
    return _SUPERSETS.get(lower, lower)


def _wide(data: bytes) -> DecodedText | None:
    """Read UTF-16 without a byte order mark: the right order gives Latin letters or common characters."""
    cut = len(data) % 2
    for encoding in ("utf-16-le", "utf-16-be"):
        decoded = _strict(data[: len(data) - cut], encoding)
        if decoded is not None and _is_text(decoded.text):
            sample = decoded.text[:_SAMPLE]
            latin = sum(character < "\u0250" for character in sample)
            rest = len(sample) - latin
            if latin > 0.7 * len(sample) or len(_COMMON.findall(sample)) > _LEAST_SHARE * rest:
                return DecodedText(decoded.text + "\ufffd" * cut, encoding, cut)
    return None


def _east_asian(data: bytes, decode: Callable[[bytes, str], DecodedText | None]) -> DecodedText | None:
    """Choose among the East Asian encodings by the share of common characters; None where two come close."""
    scores = []
    for encoding in _EAST_ASIAN:
        decoded = decode(data, encoding)
        if decoded is not None and (decoded.damaged or _is_text(decoded.text)):
            letters = [character for character in decoded.text[:_SAMPLE] if character > "\u02ff"]
            scores.append((len(_COMMON.findall("".join(letters))) / max(len(letters), 1), decoded))
    scores.sort(key=lambda score: -score[0])
    if not scores or scores[0][0] < _LEAST_SHARE:
        return None
    if len(scores) > 1 and scores[0][0] - scores[1][0] < _LEAD and scores[0][1].text != scores[1][1].text:
        return None
    return scores[0][1]


def _scripted(data: bytes) -> DecodedText | None:
    """Choose among encodings with one script beside Latin by the share of the commonest letters; None if it is low."""
    sample = data[:_SAMPLE]
    high = len(sample) - len(sample.translate(None, _HIGH))
    if high < max(_LEAST_UTF8, sum(map(sample.count, string.ascii_letters.encode()))):
        return None
    texts = [decoded for name in _SCRIPTS if (decoded := _strict(data, name)) is not None and _is_text(decoded.text)]
    scores = [(sum(map(decoded.text[:_SAMPLE].count, _LETTERS)) / high, decoded) for decoded in texts]
    scores.sort(key=lambda score: -score[0])
    least = max(_LEAST_LETTERS, scores[1][0] + _LEAD if scores[1:] else 0)
    return scores[0][1] if scores and scores[0][0] >= least else None


def has_common_characters(text: str) -> bool:
    """Return whether the East Asian characters of a text are those that texts are written in; few say nothing."""
    letters = _EAST_ASIAN_LETTER.findall(text)
    return len(letters) < _ENOUGH_LETTERS or len(_COMMON.findall(text)) > _LEAST_COMMON * len(letters)


def _detected(data: bytes) -> DecodedText | None:
    """Use the detector for encodings of one byte a character."""
    sample = data[:_SAMPLE]
    found = chardet.detect(sample, prefer_superset=True)
    few = len(sample) - len(sample.translate(None, _HIGH)) <= _FEW * len(sample)
    if not found["encoding"] or not (few or found["confidence"] >= _SURE):
        return None
    decoded = _strict(data, found["encoding"]) or _lenient(data, found["encoding"])
    if decoded is None or not _is_text(decoded.text):
        return None
    text, lost = _NO_LETTER.subn("\ufffd", decoded.text)
    return DecodedText(text, decoded.encoding, decoded.damaged + lost)


def _is_text(text: str) -> bool:
    return len(_CONTROL.findall(text)) * 1000 <= len(text)
