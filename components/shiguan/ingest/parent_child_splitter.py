"""Cuts sources into parents, which the LLM reads, and their children, which retrieval matches."""

import hashlib
import json
import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count, groupby, pairwise
from operator import itemgetter
from typing import Any, TypeVar

from haystack import Document, component

from shiguan.ingest.chronology import with_times
from shiguan.ingest.passages import Passage, PassageSizes, cut_passages
from shiguan.models.token_counter import TokenCounter
from shiguan.text.passages import SharedDocument
from shiguan.text.places import Mark, Run, paragraphs_before

BLOCK_SEPARATOR = "\n\n"
"""The separator of two blocks of a source in the source's text."""

# Meta that describes a block and not its source; the rest is copied to parents and children.
_OF_THE_BLOCK = frozenset({"anchor", "kind", "notes", "file_path", "pages", "cfi", "work", "left_out"})
_OF_THE_SOURCE = ("tenant_id", "source_id", "file_id", "source", "title", "section", "language", "record_id")
_NAMED = ("tenant_id", "source_id")
_AnyMark = TypeVar("_AnyMark", Mark, Run)
# Texts are counted together up to this many characters, which bounds memory.
_BATCH = 1_000_000


@dataclass
class _Section:
    """Consecutive blocks of one section of one source, joined: the place of all that they have in its text."""

    meta: dict[str, Any]
    # Where it begins in the source's text.
    offset: int
    text: str
    blocks: list[dict[str, Any]] = field(default_factory=list)
    pages: list[Mark] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)


@component
class ParentChildSplitter:
    """
    Cuts sources into parents of a few hundred tokens and their children of one to three sentences.

    It comes between the converters and the stores. A parent is a complete passage: it never crosses a section, a record
    or a source, ends at a paragraph where the sizes allow it, and always at a sentence unless that sentence alone is
    too large. A section smaller than a parent is one parent. Sizes are counted with the embedder's own tokenizer;
    where that cannot be read, in characters, with a warning. A child is counted whole; a parent's size is the sum of
    its sentences, without the tokens of the white space between them.

    For every child, `parent.content[child.meta["start"]:child.meta["end"]] == child.content`; the children of a parent
    have all of its text but the white space between them, in order. `start` and `end` of a parent are its place in the
    source's text: the blocks' contents joined by a blank line, or the whole text of a file or record, of which every
    parent is an exact slice. `blocks` has the origin of each part of the parent, so that a citation can be found in the
    book; so do `pages` (where in the parent a printed page begins), `cfi` (where its stretches are in the file) and
    `paragraph` (the number of its first paragraph in the section), if the source has them. `work` has the bibliographic
    data of the source, `left_out` what of its file was skipped, in characters by kind. None of these is part of an id,
    so reading them again does not change passages. A child's `when` is part of it: the times that it describes, in
    annals also those that hold from before, each with `from` and `to` (years, 0 is 1 BC), `month`, `precision`, `how`
    (`written` or `carried`) and `as` (how the source writes it); `when_from` and `when_to` span them.

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
        parent, child = (parent_min_tokens, parent_max_tokens), (child_min_tokens, child_max_tokens)
        if not (1 <= parent[0] < parent[1] and 1 <= child[0] < child[1] <= parent[1]):
            raise ValueError(
                "Each `min_tokens` must be positive and smaller than its `max_tokens`, and `child_max_tokens` must not "
                f"exceed `parent_max_tokens`; got {parent} for parents and {child} for children."
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
        :returns: `parents` and `children` in reading order; `warnings` if tokens could not be counted.
        :raises ValueError: If a block has no `tenant_id` or `source_id`.
        """
        self.warm_up()
        sizes = PassageSizes(
            self.parent_min_tokens, self.parent_max_tokens, self.child_min_tokens, self.child_max_tokens
        )
        parents: list[Document] = []
        children: list[Document] = []
        positions: dict[tuple[str, str], Iterator[int]] = defaultdict(count)
        for batch in _batches(_sections(documents)):
            cut = cut_passages([section.text for section in batch], self._counter, sizes)
            for section, passages in zip(batch, cut, strict=True):
                for parent, of_parent in _documents(section, passages, positions):
                    parents.append(parent)
                    children += of_parent
        children = with_times(children, parents)
        # The number of children of its file shows whether an ingest was interrupted.
        units = Counter(child.meta.get("file_id") for child in children)
        left_out = {d.meta.get("file_id"): d.meta["left_out"] for d in documents if d.meta.get("left_out")}
        for parent in parents:
            file = parent.meta.get("file_id")
            parent.meta["units"] = units[file]
            if file in left_out:
                parent.meta["left_out"] = left_out[file]
        return {"parents": parents, "children": children, "warnings": list(self._counter.warnings)}


def _sections(documents: list[Document]) -> Iterator[_Section]:
    blocks = [document for document in documents if (document.content or "").strip()]
    lacking = next(((block, name) for block in blocks for name in _NAMED if not block.meta.get(name)), None)
    if lacking is not None:
        raise ValueError(
            f"A document of `{lacking[0].meta.get('source', 'an unnamed source')}` has no `{lacking[1]}` in its meta. "
            "Let `SourceStamper` run before `ParentChildSplitter`."
        )
    ends: dict[str, int] = {}
    for _, group in groupby(blocks, key=lambda block: [block.meta.get(name) for name in (*_NAMED, "section")]):
        parts = [(block.content or "", block.meta) for block in group]
        meta = parts[0][1]
        section = _Section(meta, ends.get(meta["source_id"], 0), BLOCK_SEPARATOR.join(text for text, _ in parts))
        start = 0
        for text, own in parts:
            _add(section, start, text, own)
            start += len(text) + len(BLOCK_SEPARATOR)
        ends[meta["source_id"]] = section.offset + start
        yield section


def _add(section: _Section, start: int, text: str, meta: dict[str, Any]) -> None:
    """Add what a block has, moved to its place in the section; of a file in pages, each counts as a block."""
    kind, anchor = meta.get("kind", "text"), meta.get("anchor")
    if "page" in (anchor or {}) or ("\f" in text and anchor is None):
        for page, (at, end, label) in enumerate(_pages(text, meta), start=(anchor or {"page": 1})["page"]):
            own = {"start": start + at, "end": start + end, "anchor": {"page": page, "offset": 0}}
            section.blocks.append({**own, "kind": kind, "notes": []})
            section.pages.append((start + at, str(page) if label is None else label))
        return
    anchor = anchor or {"offset": section.offset + start}
    notes = [_moved(note, start) for note in meta.get("notes") or ()]
    section.blocks.append({"start": start, "end": start + len(text), "kind": kind, "anchor": anchor, "notes": notes})
    # A block without pages, below one with pages, is on an unknown page.
    pages = meta.get("pages") or ([(0, "")] if section.pages else [])
    section.pages += [(start + at, label) for at, label in pages]
    section.runs += [(start + at, node, offset) for at, node, offset in meta.get("cfi") or ()]


def _pages(text: str, meta: dict[str, Any]) -> Iterator[tuple[int, int, str | None]]:
    """Yield where each page of a block begins and ends, with its label if its source has labels."""
    marks = meta.get("pages") or [(0, None), *((found.end(), None) for found in re.finditer("\f", text))]
    for (at, label), (end, _) in pairwise([*marks, (len(text), None)]):
        yield at, end - text.endswith("\f", at, end), label


def _moved(span: dict[str, Any], by: int) -> dict[str, Any]:
    return {**span, "start": span["start"] + by, "end": span["end"] + by}


def _batches(sections: Iterator[_Section]) -> Iterator[list[_Section]]:
    batch: list[_Section] = []
    characters = 0
    for section in sections:
        batch.append(section)
        characters += len(section.text)
        if characters >= _BATCH:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _documents(
    section: _Section, passages: list[Passage], positions: dict[tuple[str, str], Iterator[int]]
) -> Iterator[tuple[Document, list[Document]]]:
    """Create the documents of one section's passages, each parent with its children."""
    meta, source_id = section.meta, section.meta["source_id"]
    common = {name: meta[name] for name in _OF_THE_SOURCE if name in meta}
    own = {name: value for name, value in meta.items() if name not in common and name not in _OF_THE_BLOCK}
    seed = hashlib.sha256(json.dumps([common, own], sort_keys=True, default=str, ensure_ascii=True).encode())
    shared = own | common
    for passage in passages:
        content, place = section.text[passage.start : passage.end], _place(section, passage)
        position = next(positions[source_id, "parents"])
        parent_id = _identifier(seed, "parent", position, content)
        parent_meta = {**shared, **place, "position": position, "tokens": passage.tokens}
        children: list[Document] = []
        for text_start, text_end in passage.children:
            start, end = text_start - passage.start, text_end - passage.start
            child_meta = {
                **shared,
                "parent_id": parent_id,
                "kind": _kind(place["blocks"], start, end),
                "position": next(positions[source_id, "children"]),
                "start": start,
                "end": end,
            }
            child_id = _identifier(seed, parent_id, start, content[start:end])
            children.append(SharedDocument(id=child_id, content=content[start:end], meta=child_meta))
        yield SharedDocument(id=parent_id, content=content, meta=parent_meta), children


def _place(section: _Section, passage: Passage) -> dict[str, Any]:
    """Return the place of a parent: in the source's text, in its blocks, on pages, and in the file."""
    first = bisect_right(section.blocks, passage.start, key=itemgetter("end"))
    touched = section.blocks[first : bisect_left(section.blocks, passage.end, key=itemgetter("start"))]
    blocks = [_block(block, passage) for block in touched if block["start"] < block["end"]]
    place = {
        "kind": _kind(blocks, 0, passage.end - passage.start),
        "anchor": blocks[0]["anchor"],
        "start": section.offset + passage.start,
        "end": section.offset + passage.end,
        "blocks": blocks,
    }
    if blocks[0]["anchor"].get("page") is None:
        place["paragraph"] = 1 + paragraphs_before(section.text, passage.start)
    at, begins = passage.start, touched[0]["start"]
    pages = [[max(mark - at, 0), label] for mark, label in _marks(section.pages, begins, passage)]
    if any(label for _, label in pages):
        place["pages"] = pages
    if runs := _runs(_marks(section.runs, begins, passage), at):
        place["cfi"] = runs
    if section.meta.get("work"):
        place["work"] = section.meta["work"]
    return place


def _block(block: dict[str, Any], passage: Passage) -> dict[str, Any]:
    """Cut a block to one parent, with offsets in its content and the anchor moved to where the block now begins."""
    start, end = max(block["start"], passage.start), min(block["end"], passage.end)
    anchor = block["anchor"]
    cut = {
        "start": start - passage.start,
        "end": end - passage.start,
        "kind": block["kind"],
        "anchor": {**anchor, "offset": anchor.get("offset", 0) + start - block["start"]},
    }
    notes = [_moved(note, -passage.start) for note in block["notes"] if note["start"] < end and note["end"] > start]
    return cut | ({"notes": notes} if notes else {})


def _marks(marks: list[_AnyMark], begins: int, passage: Passage) -> list[_AnyMark]:
    """Return what a parent has of its section's marks, of those before it the last, if its first block has that."""
    inside = bisect_right(marks, passage.start, key=itemgetter(0))
    end = bisect_left(marks, passage.end, key=itemgetter(0))
    holds = inside > 0 and marks[inside - 1][0] >= begins
    return marks[inside - holds : end]


def _runs(runs: list[Run], start: int) -> list[list[Any]]:
    """Move runs to a parent (see `places.Run`); a node is written only where it differs from the one before."""
    found: list[list[Any]] = []
    last = ""
    for at, node, offset in runs:
        moved = offset + max(start - at, 0) if offset >= 0 else offset
        found.append([max(at - start, 0), "" if node == last else node, moved])
        last = node
    return found


def _kind(blocks: list[dict[str, Any]], start: int, end: int) -> str:
    kinds = {block["kind"] for block in blocks if block["start"] < end and block["end"] > start}
    return str(kinds.pop()) if len(kinds) == 1 else "text"


def _identifier(seed: Any, *parts: object) -> str:
    """Hash what identifies a document: tenant, source, meta, place and text."""
    digest = seed.copy()
    digest.update(json.dumps(parts).encode())
    return str(digest.hexdigest())
