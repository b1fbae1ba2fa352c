"""Cuts sources into parents, which the LLM reads, and their children, which retrieval matches."""

import hashlib
import json
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from haystack import Document, component

from shiguan.ingest.chronology import with_times
from shiguan.ingest.passages import Passage, PassageSizes, cut_passages
from shiguan.models.token_counter import TokenCounter
from shiguan.text.passages import SharedDocument
from shiguan.text.places import paragraphs_before

BLOCK_SEPARATOR = "\n\n"
"""The separator of two blocks of a source in the source's text."""

# Meta that describes a block and not its source; the rest is copied to parents and children.
_OF_THE_BLOCK = frozenset({"anchor", "kind", "notes", "start", "file_path", "pages", "cfi", "page_labels", "work"})
_OF_THE_SOURCE = ("tenant_id", "source_id", "file_id", "source", "title", "section", "language", "record_id")
# Texts are counted together up to this many characters, which bounds memory.
_BATCH = 1_000_000


@dataclass
class _Group:
    """Consecutive blocks of one section of one source, joined; `parts` has the place of each in the text."""

    meta: dict[str, Any]
    text: str
    offset: int
    parts: list[dict[str, Any]]


@component
class ParentChildSplitter:
    """
    Cuts sources into parents of a few hundred tokens and their children of one to three sentences.

    It comes between the converters and the stores. A parent is a complete passage: it never crosses a section, a record
    or a source, ends at a paragraph where the sizes allow it, and always at a sentence unless that sentence alone is
    too large. A section smaller than a parent is one parent. Sizes are counted with the embedder's own tokenizer;
    where that cannot be read, in characters, with a warning. A child is counted whole; a parent's size is the sum of
    its sentences, without the tokens of the white space between them.

    For every child, `parent.content[child.meta["start"]:child.meta["end"]] == child.content`; the children of a
    parent have all of its text but the white space between them, in order. `start` and `end` of a parent are its place
    in the source's text: the blocks' contents joined by a blank line, or the whole text of a file or record, of which
    every parent is an exact slice. `blocks` has the origin of each part of the parent, so that a citation can be found
    in the book; so do `pages` (where in the parent a printed page begins), `cfi` (where its stretches are in the file)
    and `paragraph` (the number of its first paragraph in the section), if the source has them. `work` has the
    bibliographic data of the source. None of these is part of an id, so reading them again does not change passages. A
    child's `when` is part of it: the times that it describes, in annals also those that hold from before, each with
    `from` and `to` (years, 0 is 1 BC), `month`, `precision`, `how` (`written` or `carried`) and `as` (how the source
    writes it); `when_from` and `when_to` span them.

    Example:
    ```python
    splitter = ParentChildSplitter()
    result = splitter.run([Document(content="玄宗幸蜀。", meta={"tenant_id": "t", "source_id": "s"})])
    result["children"][0].meta["parent_id"] == result["parents"][0].id
    ```
    """

    def __init__(
        self,
        parent_min_tokens: int = 300,
        *,
        parent_max_tokens: int = 800,
        child_min_tokens: int = 50,
        child_max_tokens: int = 150,
    ) -> None:
        """
        Set the sizes.

        :param parent_min_tokens: The smallest parent, unless its section is smaller.
        :param parent_max_tokens: The largest parent.
        :param child_min_tokens: The smallest child, if the parent's sentences allow it.
        :param child_max_tokens: The largest child.
        :raises ValueError: If a size is not positive or a range is too narrow to fit sentences in.
        """
        for name, low, high in (
            ("parent", parent_min_tokens, parent_max_tokens),
            ("child", child_min_tokens, child_max_tokens),
        ):
            if not 1 <= low < high:
                raise ValueError(
                    f"`{name}_min_tokens` must be positive and smaller than `{name}_max_tokens`, got {low} and {high}."
                )
        if child_max_tokens > parent_max_tokens:
            raise ValueError(
                "`child_max_tokens` must not exceed `parent_max_tokens`, "
                f"got {child_max_tokens} and {parent_max_tokens}."
            )
        self.parent_min_tokens = parent_min_tokens
        self.parent_max_tokens = parent_max_tokens
        self.child_min_tokens = child_min_tokens
        self.child_max_tokens = child_max_tokens
        self._counter = TokenCounter()

    def warm_up(self) -> None:
        """Load the tokenizer; a second call does nothing."""
        self._counter.warm_up()

    @component.output_types(parents=list[Document], children=list[Document], warnings=list[str])
    def run(self, documents: list[Document]) -> dict[str, Any]:
        """
        Split blocks into parents and children.

        :param documents: Blocks in reading order, stamped with `tenant_id` and `source_id`; those of one source are
            consecutive. Blocks without text are left out.
        :returns: `parents` and `children` in reading order; `warnings` if tokens could not be counted, or pages of a
            PDF have no text.
        :raises ValueError: If a block has no `tenant_id` or `source_id`.
        """
        self.warm_up()
        sizes = PassageSizes(
            self.parent_min_tokens, self.parent_max_tokens, self.child_min_tokens, self.child_max_tokens
        )
        parents: list[Document] = []
        children: list[Document] = []
        positions: Counter[tuple[str, str]] = Counter()
        for batch in _batches(_groups(documents)):
            cut = cut_passages([group.text for group in batch], self._counter, sizes)
            for group, passages in zip(batch, cut, strict=True):
                for parent, of_parent in _documents(group, passages, positions):
                    parents.append(parent)
                    children += of_parent
        children = with_times(children, parents)
        # The number of children of its file shows whether an ingest was interrupted.
        units = Counter(child.meta.get("file_id") for child in children)
        for parent in parents:
            parent.meta["units"] = units[parent.meta.get("file_id")]
        warnings = [*self._counter.warnings, *_unread_pages(documents)]
        return {"parents": parents, "children": children, "warnings": warnings}


def _unread_pages(documents: list[Document]) -> Iterator[str]:
    for document in documents:
        pages = (document.content or "").split("\f") if document.meta.get("page_labels") else []
        if empty := sum(not page.strip() for page in pages):
            yield (
                f"{document.meta['source']}: {empty} of {len(pages)} pages have no text; run text recognition on the "
                "file if they are pictures."
            )


def _groups(documents: list[Document]) -> Iterator[_Group]:
    offsets: dict[str, int] = {}
    blocks: list[Document] = []
    for document in documents:
        if not document.content or not document.content.strip():
            continue
        for name in ("tenant_id", "source_id"):
            if not document.meta.get(name):
                raise ValueError(
                    f"A document of `{document.meta.get('source', 'an unnamed source')}` has no `{name}` in its meta. "
                    "Let `SourceStamper` run before `ParentChildSplitter`."
                )
        if blocks and not _belongs(blocks[-1], document):
            yield _joined(blocks, offsets)
            blocks = []
        blocks.append(document)
    if blocks:
        yield _joined(blocks, offsets)


def _belongs(before: Document, after: Document) -> bool:
    # Blocks with a `start` are slices of a larger text; joining them would make up another text.
    return "start" not in after.meta and all(
        before.meta.get(name) == after.meta.get(name) for name in ("tenant_id", "source_id", "section")
    )


def _joined(blocks: list[Document], offsets: dict[str, int]) -> _Group:
    meta = blocks[0].meta
    offset = meta.get("start", offsets.get(meta["source_id"], 0))
    parts: list[dict[str, Any]] = []
    at = 0
    for block in blocks:
        parts += _parts(block, at, offset)
        at += len(block.content or "") + len(BLOCK_SEPARATOR)
    offsets[meta["source_id"]] = offset + at
    return _Group(meta, BLOCK_SEPARATOR.join(block.content or "" for block in blocks), offset, parts)


def _parts(block: Document, start: int, offset: int) -> list[dict[str, Any]]:
    """Return the place of a block in its group's text; if it has pages, each counts as a block."""
    text, meta = block.content or "", block.meta
    kind, anchor = meta.get("kind", "text"), meta.get("anchor")
    if ("\f" in text or meta.get("page_labels")) and (anchor is None or "page" in anchor):
        pages = []
        for page, content in enumerate(text.split("\f"), start=anchor["page"] if anchor else 1):
            end = start + len(content)
            label = dict(enumerate(meta.get("page_labels") or (), start=1)).get(page) or str(page)
            place = {"anchor": {"page": page, "offset": 0}, "pages": [(0, label)]}
            pages.append({"start": start, "end": end, "kind": kind, **place})
            start = end + 1
        return pages
    part = {"start": start, "end": start + len(text), "kind": kind, "anchor": anchor or {"offset": offset + start}}
    return [part | {name: meta[name] for name in ("notes", "pages", "cfi") if meta.get(name)}]


def _batches(groups: Iterator[_Group]) -> Iterator[list[_Group]]:
    batch: list[_Group] = []
    characters = 0
    for group in groups:
        batch.append(group)
        characters += len(group.text)
        if characters >= _BATCH:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _documents(
    group: _Group, passages: list[Passage], positions: Counter[tuple[str, str]]
) -> Iterator[tuple[Document, list[Document]]]:
    """Create the documents of one group's passages, each parent with its children."""
    meta = group.meta
    common = {name: meta[name] for name in _OF_THE_SOURCE if name in meta}
    own = {name: value for name, value in meta.items() if name not in common and name not in _OF_THE_BLOCK}
    seed = hashlib.sha256(json.dumps([common, own], sort_keys=True, default=str, ensure_ascii=True).encode())
    parent_count, child_count = (meta["source_id"], "parents"), (meta["source_id"], "children")
    for passage in passages:
        first = bisect_right(group.parts, passage.start, key=itemgetter("end"))
        parts = group.parts[first : bisect_left(group.parts, passage.end, key=itemgetter("start"))]
        content = group.text[passage.start : passage.end]
        blocks = [_block(part, passage) for part in parts if part["start"] < part["end"]]
        start = group.offset + passage.start
        parent_id = _identifier(seed, "parent", positions[parent_count], content)
        placed = {
            "kind": _kind(blocks, 0, len(content)),
            "position": positions[parent_count],
            "anchor": blocks[0]["anchor"],
            "tokens": passage.tokens,
            "start": start,
            "end": start + len(content),
            "blocks": blocks,
        }
        if blocks[0]["anchor"].get("page") is None:
            placed["paragraph"] = 1 + paragraphs_before(group.text, passage.start)
        if pages := _pages(parts, passage):
            placed["pages"] = pages
        if runs := _runs(parts, passage):
            placed["cfi"] = runs
        if meta.get("work"):
            placed["work"] = meta["work"]
        parent = SharedDocument(id=parent_id, content=content, meta={**own, **common, **placed})
        children: list[Document] = []
        for text_start, text_end in passage.children:
            text = group.text[text_start:text_end]
            start, end = text_start - passage.start, text_end - passage.start
            placed = {
                "parent_id": parent_id,
                "kind": _kind(blocks, start, end),
                "position": positions[child_count],
                "start": start,
                "end": end,
            }
            child_id = _identifier(seed, parent_id, start, text)
            children.append(SharedDocument(id=child_id, content=text, meta={**own, **common, **placed}))
            positions[child_count] += 1
        positions[parent_count] += 1
        yield parent, children


def _block(part: dict[str, Any], passage: Passage) -> dict[str, Any]:
    """Cut a block to one parent, with offsets in its content and the anchor moved to where the block now begins."""
    start, end = max(part["start"], passage.start), min(part["end"], passage.end)
    anchor, shift = part["anchor"], part["start"] - passage.start
    block = {
        "start": start - passage.start,
        "end": end - passage.start,
        "kind": part["kind"],
        "anchor": {**anchor, "offset": anchor.get("offset", 0) + start - part["start"]},
    }
    notes = [
        {**note, "start": note["start"] + shift, "end": note["end"] + shift}
        for note in part.get("notes", ())
        if note["start"] < end - part["start"] and note["end"] > start - part["start"]
    ]
    return block | ({"notes": notes} if notes else {})


def _pages(parts: list[dict[str, Any]], passage: Passage) -> list[list[Any]]:
    """Return where pages begin in one parent; the page that it begins on begins at its beginning."""
    found: list[list[Any]] = []
    for part in parts:
        # A block without pages, below one with pages, is on an unknown page.
        for at, label in part.get("pages") or ([(0, "")] if found else []):
            place = part["start"] + at - passage.start
            if place <= 0:
                found = []
            if place < passage.end - passage.start:
                found.append([max(place, 0), label])
    return found if any(label for _, label in found) else []


def _runs(parts: list[dict[str, Any]], passage: Passage) -> list[list[Any]]:
    """Return the runs of one parent (see `places.Run`); a node is written only where it differs from the one before."""
    found: list[tuple[int, str, int]] = []
    for part in parts:
        for at, node, offset in part.get("cfi", ()):
            place = part["start"] + at - passage.start
            if place <= 0:
                found = []
            if place < passage.end - passage.start:
                found.append((max(place, 0), node, offset - min(place, 0) if offset >= 0 else offset))
    nodes = ["", *(node for _, node, _ in found)]
    return [
        [at, "" if node == before else node, offset] for before, (at, node, offset) in zip(nodes, found, strict=False)
    ]


def _kind(blocks: list[dict[str, Any]], start: int, end: int) -> str:
    kinds = {block["kind"] for block in blocks if block["start"] < end and block["end"] > start}
    return str(kinds.pop()) if len(kinds) == 1 else "text"


def _identifier(seed: Any, *parts: object) -> str:
    """Hash what identifies a document: tenant, source, meta, place and text."""
    digest = seed.copy()
    digest.update(json.dumps(parts).encode())
    return str(digest.hexdigest())
