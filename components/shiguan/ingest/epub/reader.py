"""A whole EPUB into blocks in reading order."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

from shiguan.errors import SourceError
from shiguan.ingest.archives import SafeArchive
from shiguan.ingest.epub.blocks import Block, BlockBuilder
from shiguan.ingest.epub.chapter import ChapterReader
from shiguan.ingest.epub.notes import NoteFile, NoteIndex
from shiguan.ingest.epub.package import Package, Resolve, Target, read_package, resolve
from shiguan.ingest.epub.roles import Roles, leave_out
from shiguan.ingest.epub.sections import SectionTracker
from shiguan.ingest.epub.trees import Element, parse_xhtml

_MAX_CHAPTER_BYTES = 64 * 1024 * 1024
_MAX_NOTE_FILES = 200
_TEXT_START = frozenset("bodymatter text start".split())
_NEXT_STEP = "Get an undamaged copy of the book"


@dataclass
class Book:
    """A book as read: what it says about itself, its blocks in reading order, and what went wrong on the way."""

    title: str
    authors: list[str]
    language: str
    blocks: list[Block]
    warnings: list[str] = field(default_factory=list)


@dataclass(eq=False)
class _File(NoteFile):
    left_out: bool = False


# The files of the reading order, and all that notes are looked for in.
_Files = tuple[Sequence[_File], Sequence[NoteFile]]


def read_book(archive: SafeArchive, *, include_front_matter: bool = False) -> Book:
    """Read an EPUB."""
    package = read_package(archive)
    warnings = list(package.warnings)
    files = list(_files(archive, package, warnings))
    if not files:
        cause = "none of the files in its reading order can be read"
        raise SourceError(archive.source, cause, _NEXT_STEP)

    def find(base: str, href: str) -> Target | None:
        return resolve(archive, base, href)

    notes = [*files, *_note_files(archive, files, warnings)]
    return _book(archive.source, package, (files, notes), find, warnings, include=include_front_matter)


def read_page(data: bytes, source: str) -> Book:
    """Read one page as the only chapter of a book that says nothing about itself."""
    root, problems = parse_xhtml(data) if len(data) <= _MAX_CHAPTER_BYTES else (None, [])
    if root is None:
        raise SourceError(source, "the page cannot be read", _NEXT_STEP)
    warnings = [f"{source}: the page was mended: {'; '.join(problems)}."] if problems else []

    def find(base: str, href: str) -> Target | None:
        return Target(base, unquote(href[1:])) if href.startswith("#") else None

    files = [_File("", 0, root)]
    return _book(source, Package(), (files, files), find, warnings, include=False)


def _book(source: str, package: Package, files: _Files, find: Resolve, warnings: list[str], *, include: bool) -> Book:
    blocks, left = _read(source, package, files, find, warnings=warnings, include=include)
    if not blocks and not include:
        blocks, left = _read(source, package, files, find, warnings=warnings, include=True)
        if blocks:
            warnings.append(f"{source}: the whole text is marked as cover, contents or the like; nothing was left out.")
    if not blocks:
        raise SourceError(source, "there is no text in it, perhaps only pictures", "Use an edition with text")
    # A page without a package is no book: its menus are left out in silence, as they always are.
    if left and package.spine:
        told = ", ".join(f"{name} ({size:,} characters)" for name, size in left.items())
        warnings.append(f"{source}: left out as no text of the book: {told}; `include_front_matter: true` keeps all.")
    return Book(package.title, package.authors, package.language, blocks, warnings)


def _files(archive: SafeArchive, package: Package, warnings: list[str]) -> Iterator[_File]:
    for item in package.spine:
        root = _parse(archive, item.href, warnings)
        if root is not None:
            yield _File(item.href, item.position, root, left_out=not item.linear)


def _parse(archive: SafeArchive, href: str, warnings: list[str]) -> Element | None:
    try:
        root, problems = parse_xhtml(archive.read(href, _MAX_CHAPTER_BYTES))
    except SourceError as error:
        warnings.append(f"{archive.source}: {error.cause}; this chapter was left out, the rest was read.")
        return None
    if root is None:
        warnings.append(f"{archive.source}: `{href}` cannot be read ({'; '.join(problems)}); the rest was read.")
    elif problems:
        warnings.append(f"{archive.source}: `{href}` was mended: {'; '.join(problems)}.")
    return root


def _read(
    source: str, package: Package, files: _Files, find: Resolve, *, warnings: list[str], include: bool
) -> tuple[list[Block], Counter[str]]:
    chapters, note_files = files
    notes = NoteIndex(note_files, find)
    if notes.dangling and not include:
        warnings.append(f"{source}: {notes.dangling:,} note marks lead nowhere; they were kept as written.")
    starts = [landmark for landmark in package.landmarks if landmark.kinds & _TEXT_START]
    sections = SectionTracker(package.nav, (landmark.label for landmark in starts if landmark.label))
    roles = Roles(package.landmarks, include_front_matter=include, by_class=bool(package.spine))
    left: Counter[str] = Counter()
    blocks: list[Block] = []
    headings: list[Block] = []
    for file in chapters:
        outside = file.left_out and not include
        left_out = "outside the reading order" if outside else roles.leaves_out_file(file.href, file.root)
        reader = ChapterReader(file.href, file.spine, package.language, sections=sections, notes=notes, roles=roles)
        blocks += reader.read(file.root, left_out=left_out)
        headings += reader.headings
        left += reader.left_out
    blocks += _unplaced(notes, package.language)
    if package.spine and not include:
        lines = [(entry.href, entry.label) for entry in package.nav]
        kept, parts = leave_out(blocks, lines, [(heading.anchor["href"], heading.content) for heading in headings])
        if parts.total() <= sum(len(block.content) for block in kept):
            blocks, left = kept, left + parts
        else:
            warnings.append(f"{source}: most of its text looks like {' and '.join(parts)}; it was kept.")
    # A book of nothing but headings is rather shown as such than refused.
    return blocks or headings, left


def _note_files(archive: SafeArchive, files: list[_File], warnings: list[str]) -> Iterator[NoteFile]:
    """Parse the files outside the reading order that note marks lead to."""
    known = {file.href for file in files}
    extra = 0
    for file in files:
        for link in file.root.iter("a"):
            target = resolve(archive, file.href, link.get("href", "")) if "#" in link.get("href", "") else None
            if target is None or target.href in known or extra >= _MAX_NOTE_FILES:
                continue
            known.add(target.href)
            extra += 1
            if target.href.lower().endswith((".xhtml", ".html", ".htm", ".xml")):
                root = _parse(archive, target.href, warnings)
                if root is not None:
                    yield NoteFile(target.href, None, root)


def _unplaced(notes: NoteIndex, language: str) -> list[Block]:
    """Keep, at the end, the notes whose marks stand in parts that were left out, unless they stand there themselves."""
    blocks = []
    for note in notes.notes.values():
        if note.wanted and not (note.placed or note.left_out) and note.spine is not None:
            builder = BlockBuilder("footnote", note.anchor, language, preformatted=False)
            builder.add(notes.text_of(note))
            if block := builder.build([]):
                blocks.append(block)
    return blocks
