"""Reads a whole EPUB into blocks in reading order."""

from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from haystack import Document
from haystack.dataclasses import ByteStream

from shiguan.errors import SourceError
from shiguan.ingest.archives import SafeArchive
from shiguan.ingest.epub.blocks import Block, note_block
from shiguan.ingest.epub.chapter import ChapterReader
from shiguan.ingest.epub.lists import mark_lists
from shiguan.ingest.epub.notes import BookFile, NoteIndex
from shiguan.ingest.epub.package import Package, Resolve, Target, read_package
from shiguan.ingest.epub.pages import begin_pages
from shiguan.ingest.epub.pictures import repeated_alternatives
from shiguan.ingest.epub.roles import Roles, lists_places
from shiguan.ingest.epub.sections import SectionTracker
from shiguan.ingest.epub.styles import Rule, mark_styled, rules_of
from shiguan.ingest.epub.trees import Element, element_text, parse_xhtml, tokens
from shiguan.ingest.file_types import Reports, left_out_sentence
from shiguan.text.passages import SharedDocument

_MAX_CHAPTER_BYTES = 64 * 1024 * 1024
_LONGEST_TITLE, _MOST_HIDDEN = 500, 500
_SHEETS, _MOST_STYLES = 20, 4 * 1024 * 1024
_NEXT_STEP = "Get an undamaged copy of the book"


def read_book(archive: SafeArchive, *, include_front_matter: bool) -> tuple[Package, list[Block]]:
    """Read what a book says about itself, and its blocks in reading order."""
    package = read_package(archive)
    if not (files := list(_files(archive, package))):
        raise SourceError(archive.source, "none of the files in its reading order can be read", _NEXT_STEP)
    return package, _blocks(package, files, include=include_front_matter)


def page_documents(
    page: bytes | Element | None, source: ByteStream, name: str, reports: Reports, meta: dict[str, Any]
) -> list[Document]:
    """Read a page, or the tree that another file was turned into, as the only chapter of a book without metadata."""
    root, problems = page, list[str]()
    if isinstance(page, bytes):
        root, problems = parse_xhtml(page) if len(page) <= _MAX_CHAPTER_BYTES else (None, [])
    # Browsers that save a page write its own address before the places within it.
    package = Package(name, lambda base, href: Target(base, unquote(href.partition("#")[2])))
    if problems:
        package.warn(f"the page was mended: {'; '.join(problems)}.")
    try:
        if not isinstance(root, Element):
            raise SourceError(name, "the page cannot be read", _NEXT_STEP)
        mark_styled(root, _own_rules(root))
        blocks = _blocks(package, [BookFile("", 0, root)], include=False)
    except SourceError as error:
        next_step = "Check that it holds text and not only scripts or pictures"
        raise SourceError(name, "no text was found in it", next_step) from error
    reports.warnings.extend(package.warnings)
    title = next((element_text(title) for title in root.iter("title")), "")[:_LONGEST_TITLE]
    meta = source.meta | ({"title": title} if title else {}) | meta
    if left_out := Counter(meta.get("left_out") or {}) + package.left_out:
        meta["left_out"] = dict(left_out)
    documents: list[Document] = []
    for block in blocks:
        own = dict(block.meta)
        # A page is one file, which needs no name and no place in a reading order; a tree made here has no places.
        anchor = own.pop("anchor")
        if isinstance(page, bytes):
            own["anchor"] = {key: anchor[key] for key in ("path", "offset")}
        if notes := own.get("notes"):
            own["notes"] = [{key: note[key] for key in ("start", "end")} for note in notes]
        documents.append(SharedDocument(content=block.content, meta=meta | own))
    return documents


def _blocks(package: Package, files: list[BookFile], *, include: bool) -> list[Block]:
    blocks, left = _read(package, files, include=include)
    shown = sum(len(block.content) for block in blocks)
    # A page that hides most of its text has a script that shows it.
    if not include and (not blocks or (not package.spine and left["hidden text"] > max(2 * shown, _MOST_HIDDEN))):
        blocks, left = _read(package, files, include=True)
        if blocks:
            marked = (
                "most of its text is hidden" if shown else "the whole text is marked as cover, contents or the like"
            )
            package.warn(f"{marked}; nothing was left out.")
    if not blocks:
        raise SourceError(package.source, "there is no text in it, perhaps only pictures", "Use an edition with text")
    package.left_out = left
    if left:
        advice = "; `include_front_matter: true` keeps all" if package.spine else ""
        package.warnings.append(left_out_sentence(package.source, left, advice))
    return blocks


def _sheets(archive: SafeArchive) -> Iterator[tuple[str, list[Rule]]]:
    for name in [name for name in archive.names if name.lower().endswith(".css")][:_SHEETS]:
        try:
            yield name, rules_of(archive.read(name, _MOST_STYLES).decode("utf-8", "replace"))
        except SourceError:
            continue  # it costs a book nothing but the places of its notes


def _own_rules(root: Element) -> list[Rule]:
    return rules_of("\n".join(style.text or "" for style in root.iter("style")))


def _linked(root: Element, href: str, find: Resolve) -> set[str]:
    """Return the style sheets that a chapter links for the screen."""
    links = (link for link in root.iter("link") if link.get("media", "all").lower() in ("", "all", "screen"))
    linked = (link for link in links if tokens(link, "rel") == {"stylesheet"})
    return {target.href for link in linked if (target := find(href, link.get("href", ""))) is not None}


def _files(archive: SafeArchive, package: Package) -> Iterator[BookFile]:
    sheets = dict(_sheets(archive))
    for position, href, linear in package.spine:
        try:
            root, problems = parse_xhtml(archive.read(href, _MAX_CHAPTER_BYTES))
        except SourceError as error:
            package.warn(f"{error.cause}; this chapter was left out, the rest was read.")
            continue
        faults = "; ".join(problems)
        if root is None:
            package.warn(f"`{href}` cannot be read ({faults}); the rest was read.")
            continue
        if problems:
            package.warn(f"`{href}` was mended: {faults}.")
        linked = _linked(root, href, package.find)
        # Books have sheets for some devices beside those that all show.
        rules = (rule for name, own in sheets.items() for rule in own if name in linked or not rule.hides)
        mark_styled(root, [*rules, *_own_rules(root)])
        yield BookFile(href, position, root, linear, "" if problems else f"{package.cfi}/{2 * position + 2}!")


def _read(package: Package, files: list[BookFile], *, include: bool) -> tuple[list[Block], Counter[str]]:
    notes = NoteIndex(files, package.find)
    if notes.dangling and not include:
        package.warn(f"{notes.dangling:,} note marks lead nowhere; numbers joined to a word were left out.")
    sections = SectionTracker(package.nav, (landmark.label for landmark in package.starts if landmark.label))
    roles = Roles(package, files, include_front_matter=include)
    repeated = repeated_alternatives(file.root for file in files)
    pages, faults = begin_pages(files, package.pages, list(notes.notes.values()))
    if faults and not include:
        package.warn(f"its list of pages is not to be trusted: {'; '.join(faults)}.")
    reader = ChapterReader(package.language, sections, notes, roles, repeated, pages)
    for file in files:
        reader.read(file)
    if reader.lost_marks and not include:
        package.warn(f"{reader.lost_marks:,} raised marks of notes lead to no note; they were left out.")
    # A heading without text below it is text itself, or it would be lost.
    blocks = [
        *(block for block in reader.blocks if block.heading is None or not block.heading.seen),
        *_unplaced(notes, package.language),
    ]
    mark_lists(blocks)
    for block in blocks:
        if block.meta["kind"] == "text" and lists_places(block.meta["section"], block.content):
            block.meta["kind"] = "list"
    return blocks or reader.blocks, +reader.left_out


def _unplaced(notes: NoteIndex, language: str) -> Iterator[Block]:
    """Yield the notes whose marks are in parts that were left out, unless the notes are in such parts themselves."""
    for note in notes.notes.values():
        # A note that is in another one is placed by writing that.
        if note.wanted and not (note.placed or note.left_out):
            block = note_block(note, notes.text_of(note), language)
            if block is not None:
                yield block
