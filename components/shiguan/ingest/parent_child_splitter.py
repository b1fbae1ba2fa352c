"""Cuts sources into parents, which the LLM reads, and their children, which retrieval matches."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from haystack import Document, component

from shiguan.ingest.orphan_remover import ProducedIds
from shiguan.ingest.passages import Passage, PassageSizes, cut_passages
from shiguan.models.token_counter import TokenCounter
from shiguan.text.passages import SharedDocument

BLOCK_SEPARATOR = "\n\n"
"""What stands between two blocks of one source in the source's text."""

# Meta of a block that describes the block and not its source; the rest is carried to parents and children.
_OF_THE_BLOCK = frozenset({"anchor", "kind", "notes", "start", "file_path"})
_OF_THE_SOURCE = ("tenant_id", "source_id", "file_id", "source", "title", "section", "language", "record_id")
# Texts are counted together until they reach so many characters, which bounds memory.
_BATCH = 1_000_000


@dataclass
class _Group:
    """Consecutive blocks of one section of one source, joined."""

    blocks: list[Document]
    text: str = ""
    offset: int = 0
    spans: list[tuple[int, int]] = field(default_factory=list)


@component
class ParentChildSplitter:
    """
    Cuts sources into parents of a few hundred tokens and their children of one to three sentences.

    Stands between the converters and the stores. A parent is a complete passage: it never crosses a section, a record
    or a source, ends at a paragraph where the sizes allow it, and always at a sentence unless that sentence alone is
    too large. A section smaller than a parent is one parent. Sizes are counted with the embedder's own tokenizer;
    where that cannot be read, in characters, with a warning. A child is counted whole; a parent's size is the sum of
    its sentences, without what the white space between them may count for.

    For every child, `parent.content[child.meta["start"]:child.meta["end"]] == child.content`; the children of a
    parent hold all of its text but the white space between them, in order. `start` and `end` of a parent are its place
    in the source's text: the blocks' contents joined by a blank line, or the one text of a file or record, of which
    every parent is an exact slice. `blocks` says which part of the parent came from where, so that a citation finds its
    place in the book again.

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
        Check and keep the sizes.

        :param parent_min_tokens: Parents are at least so large wherever their section is.
        :param parent_max_tokens: No parent is larger.
        :param child_min_tokens: Children are at least so large wherever the parent's sentences allow it.
        :param child_max_tokens: No child is larger.
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

    @component.output_types(parents=list[Document], children=list[Document], produced=ProducedIds, warnings=list[str])
    def run(self, documents: list[Document]) -> dict[str, Any]:
        """
        Split blocks into parents and children.

        :param documents: Blocks in reading order, stamped with `tenant_id` and `source_id`; those of one source stand
            together. Blocks without text are left out.
        :returns: `parents` and `children` in reading order; `produced`, their ids, for `OrphanRemover`; `warnings` if
            tokens could not be counted.
        :raises ValueError: If a block carries no `tenant_id` or `source_id`.
        """
        self.warm_up()
        sizes = PassageSizes(
            self.parent_min_tokens, self.parent_max_tokens, self.child_min_tokens, self.child_max_tokens
        )
        parents: list[Document] = []
        children: list[Document] = []
        positions: dict[str, tuple[int, int]] = {}
        for batch in _batches(_groups(documents)):
            cut = cut_passages([group.text for group in batch], self._counter, sizes)
            for group, passages in zip(batch, cut, strict=True):
                _emit(group, passages, parents, children, positions)
        _tell_units(parents, children)
        produced = ProducedIds(
            files=frozenset((parent.meta["tenant_id"], parent.meta.get("file_id", "")) for parent in parents),
            parents=frozenset(parent.id for parent in parents),
            children=frozenset(child.id for child in children),
        )
        return {
            "parents": parents,
            "children": children,
            "produced": produced,
            "warnings": list(self._counter.warnings),
        }


def _tell_units(parents: list[Document], children: list[Document]) -> None:
    """Write into every parent how many children its file has, by which an interrupted ingest shows."""
    units = Counter(child.meta.get("file_id") for child in children)
    for parent in parents:
        parent.meta["units"] = units[parent.meta.get("file_id")]


def _groups(documents: list[Document]) -> Iterator[_Group]:
    offsets: dict[str, int] = {}
    group: _Group | None = None
    for document in documents:
        if not document.content or not document.content.strip():
            continue
        for name in ("tenant_id", "source_id"):
            if not document.meta.get(name):
                raise ValueError(
                    f"A document of `{document.meta.get('source', 'an unnamed source')}` has no `{name}` in its meta. "
                    "Let `SourceStamper` run before `ParentChildSplitter`."
                )
        if group is not None and not _belongs(group.blocks[-1], document):
            yield _joined(group, offsets)
            group = None
        if group is None:
            group = _Group([])
        group.blocks.append(document)
    if group is not None:
        yield _joined(group, offsets)


def _belongs(before: Document, after: Document) -> bool:
    # Blocks that say where they start are slices of a text that only they know; joining would invent another.
    return "start" not in after.meta and all(
        before.meta.get(name) == after.meta.get(name) for name in ("tenant_id", "source_id", "section")
    )


def _joined(group: _Group, offsets: dict[str, int]) -> _Group:
    first = group.blocks[0]
    source = first.meta["source_id"]
    at = 0
    for block in group.blocks:
        length = len(block.content or "")
        group.spans.append((at, at + length))
        at += length + len(BLOCK_SEPARATOR)
    contents = [block.content or "" for block in group.blocks]
    group.text = contents[0] if len(contents) == 1 else BLOCK_SEPARATOR.join(contents)
    group.offset = first.meta.get("start", offsets.get(source, 0))
    offsets[source] = group.offset + len(group.text) + len(BLOCK_SEPARATOR)
    return group


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


def _emit(
    group: _Group,
    passages: list[Passage],
    parents: list[Document],
    children: list[Document],
    positions: dict[str, tuple[int, int]],
) -> None:
    """Make the documents of one group's passages."""
    first = group.blocks[0].meta
    common = {name: first[name] for name in _OF_THE_SOURCE if name in first}
    own = {name: value for name, value in first.items() if name not in common and name not in _OF_THE_BLOCK}
    parts = _parts(group)
    part = 0
    parent_position, child_position = positions.get(first["source_id"], (0, 0))
    seed = hashlib.sha256(json.dumps([common, own], sort_keys=True, default=str, ensure_ascii=True).encode())
    for passage in passages:
        while part + 1 < len(parts) and parts[part]["end"] <= passage.start:
            part += 1
        content = group.text[passage.start : passage.end]
        blocks = _blocks_within(parts, part, passage)
        start = group.offset + passage.start
        parent_id = _identifier(seed, "parent", parent_position, content)
        parents.append(
            SharedDocument(
                id=parent_id,
                content=content,
                meta={
                    **own,
                    **common,
                    "kind": _kind(blocks, 0, len(content)),
                    "position": parent_position,
                    "anchor": blocks[0]["anchor"],
                    "tokens": passage.tokens,
                    "start": start,
                    "end": start + len(content),
                    "blocks": blocks,
                },
            )
        )
        for text_start, text_end in passage.children:
            text = group.text[text_start:text_end]
            child_start = text_start - passage.start
            children.append(
                SharedDocument(
                    id=_identifier(seed, parent_id, child_start, text),
                    content=text,
                    meta={
                        **own,
                        **common,
                        "parent_id": parent_id,
                        "kind": _kind(blocks, child_start, child_start + len(text)),
                        "position": child_position,
                        "start": child_start,
                        "end": child_start + len(text),
                    },
                )
            )
            child_position += 1
        parent_position += 1
    positions[first["source_id"]] = (parent_position, child_position)


def _parts(group: _Group) -> list[dict[str, Any]]:
    """List the group's blocks, in its text's offsets; pages count as blocks where a text has them."""
    parts: list[dict[str, Any]] = []
    for block, (start, end) in zip(group.blocks, group.spans, strict=True):
        meta = block.meta
        kind = meta.get("kind", "text")
        anchor = meta.get("anchor")
        paged = anchor is None or "page" in anchor
        if paged and group.text.find("\f", start, end) >= 0:
            at = start
            first_page = anchor["page"] if anchor else 1
            for page, text in enumerate(group.text[start:end].split("\f"), start=first_page):
                parts.append({"start": at, "end": at + len(text), "kind": kind, "anchor": {"page": page, "offset": 0}})
                at += len(text) + 1
            continue
        if anchor is None:
            anchor = {"offset": group.offset + start}
        part = {"start": start, "end": end, "kind": kind, "anchor": anchor}
        if meta.get("notes"):
            part["notes"] = meta["notes"]
        parts.append(part)
    return parts


def _blocks_within(parts: list[dict[str, Any]], first: int, passage: Passage) -> list[dict[str, Any]]:
    """Cut the blocks to one parent, with offsets in its content and anchors moved to where each now begins."""
    found = []
    for part in parts[first:]:
        if part["start"] >= passage.end:
            break
        start, end = max(part["start"], passage.start), min(part["end"], passage.end)
        if start >= end:
            continue
        skipped = start - part["start"]
        block = {
            "start": start - passage.start,
            "end": end - passage.start,
            "kind": part["kind"],
            "anchor": {**part["anchor"], "offset": part["anchor"].get("offset", 0) + skipped},
        }
        shift = part["start"] - passage.start
        notes = [
            {**note, "start": note["start"] + shift, "end": note["end"] + shift}
            for note in part.get("notes", ())
            if note["start"] < skipped + end - start and note["end"] > skipped
        ]
        if notes:
            block["notes"] = notes
        found.append(block)
    return found


def _kind(blocks: list[dict[str, Any]], start: int, end: int) -> str:
    kinds = {block["kind"] for block in blocks if block["start"] < end and block["end"] > start}
    return str(kinds.pop()) if len(kinds) == 1 else "text"


def _identifier(seed: Any, *parts: object) -> str:
    """Hash what makes a document that document: tenant, source, meta, place and text."""
    digest = seed.copy()
    digest.update(json.dumps(parts).encode())
    return str(digest.hexdigest())
