"""Reads a whole EPUB into blocks in reading order."""

from collections import Counter
from collections.abc import Iterator
from urllib.parse import unquote

from shiguan.errors import SourceError
from shiguan.ingest.archives import SafeArchive
from shiguan.ingest.epub.blocks import Block, note_block
from shiguan.ingest.epub.chapter import ChapterReader
from shiguan.ingest.epub.lists import mark_lists
from shiguan.ingest.epub.notes import BookFile, NoteIndex
from shiguan.ingest.epub.package import Package, Target, read_package
from shiguan.ingest.epub.pages import begin_pages
from shiguan.ingest.epub.pictures import repeated_alternatives
from shiguan.ingest.epub.roles import Roles, lists_places
from shiguan.ingest.epub.sections import SectionTracker
from shiguan.ingest.epub.trees import Element, element_text, parse_xhtml
from shiguan.ingest.file_types import left_out_sentence

_MAX_CHAPTER_BYTES = 64 * 1024 * 1024
_LONGEST_TITLE = 500
_NEXT_STEP = "Get an undamaged copy of the book"


def read_book(archive: SafeArchive, *, include_front_matter: bool = False) -> tuple[Package, list[Block]]:
    """Read what a book says about itself, and its blocks in reading order."""
    package = read_package(archive)
    files = list(_files(archive, package))
    if not files:
        raise SourceError(archive.source, "none of the files in its reading order can be read", _NEXT_STEP)
    return package, _blocks(package, files, include=include_front_matter)


def read_page(page: bytes | Element, source: str) -> tuple[Package, list[Block]]:
    """Read a page, or its tree, as the only chapter of a book that has no metadata but a title."""
    root, problems = page if isinstance(page, Element) else None, list[str]()
    if isinstance(page, bytes) and len(page) <= _MAX_CHAPTER_BYTES:
        root, problems = parse_xhtml(page)
    if root is None:
        raise SourceError(source, "the page cannot be read", _NEXT_STEP)
    package = Package(source, lambda base, href: Target(base, unquote(href[1:])) if href.startswith("#") else None)
    package.warnings += [f"{source}: the page was mended: {'; '.join(problems)}."] if problems else []
    files = [BookFile("", 0, root)]
    package.title = next((element_text(title) for title in root.iter("title")), "")[:_LONGEST_TITLE]
    return package, _blocks(package, files, include=False)


def _blocks(package: Package, files: list[BookFile], *, include: bool) -> list[Block]:
    source, warnings = package.source, package.warnings
    blocks, left = _read(package, files, include=include)
    if not blocks and not include:
        blocks, left = _read(package, files, include=True)
        if blocks:
            warnings.append(f"{source}: the whole text is marked as cover, contents or the like; nothing was left out.")
    if not blocks:
        raise SourceError(source, "there is no text in it, perhaps only pictures", "Use an edition with text")
    package.left_out = left
    if left:
        advice = "; `include_front_matter: true` keeps all" if package.spine else ""
        warnings.append(left_out_sentence(source, left, advice))
    return blocks


def _files(archive: SafeArchive, package: Package) -> Iterator[BookFile]:
    for position, href, linear in package.spine:
        try:
            root, problems = parse_xhtml(archive.read(href, _MAX_CHAPTER_BYTES))
        except SourceError as error:
            package.warnings.append(f"{error.source}: {error.cause}; this chapter was left out, the rest was read.")
            continue
        faults = "; ".join(problems)
        if root is None:
            package.warnings.append(f"{package.source}: `{href}` cannot be read ({faults}); the rest was read.")
            continue
        if problems:
            package.warnings.append(f"{package.source}: `{href}` was mended: {faults}.")
        yield BookFile(href, position, root, linear, "" if problems else f"{package.cfi}/{2 * position + 2}!")


def _read(package: Package, files: list[BookFile], *, include: bool) -> tuple[list[Block], Counter[str]]:
    notes = NoteIndex(files, package.find)
    if notes.dangling and not include:
        package.warnings.append(
            f"{package.source}: {notes.dangling:,} note marks lead nowhere; numbers joined to a word were left out."
        )
    sections = SectionTracker(package.nav, (landmark.label for landmark in package.starts if landmark.label))
    roles = Roles(package, files, include_front_matter=include)
    repeated = repeated_alternatives(file.root for file in files)
    pages, faults = begin_pages(files, package.pages, list(notes.notes.values()))
    if faults and not include:
        package.warnings.append(f"{package.source}: its list of pages is not to be trusted: {'; '.join(faults)}.")
    reader = ChapterReader(package.language, sections, notes, roles, repeated, pages)
    for file in files:
        reader.read(file)
    if reader.lost_marks and not include:
        package.warnings.append(
            f"{package.source}: {reader.lost_marks:,} raised numbers of notes lead to no note; they were left out."
        )
    blocks = [*reader.blocks, *_unplaced(notes, package.language)]
    mark_lists(blocks)
    for block in blocks:
        if block.meta["kind"] == "text" and lists_places(block.meta["section"], block.content):
            block.meta["kind"] = "list"
    # A book of nothing but headings is shown as such, rather than refused.
    return blocks or reader.headings, reader.left_out


def _unplaced(notes: NoteIndex, language: str) -> Iterator[Block]:
    """Yield the notes whose marks are in parts that were left out, unless the notes are in such parts themselves."""
    for note in notes.notes.values():
        # A note that is in another one is placed by writing that.
        if note.wanted and not (note.placed or note.left_out):
            block = note_block(note, notes.text_of(note), language)
            if block is not None:
                yield block
