"""Adds to each block its tenant, its source and its language."""

import hashlib
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from haystack import Document, component

from shiguan.text.languages import detect_language
from shiguan.text.passages import SharedDocument

# Meta that is only for the way to the store, and not part of a source.
_DROPPED = frozenset({"source_key", "line", "encoding"})
# A block with fewer characters than this gets the language of its section.
_ENOUGH = 24
# How many characters are read to detect the language of a block.
_SAMPLE = 300


@component
class SourceStamper:
    """
    Gives every block its tenant, its source's id and its language.

    It comes between the converters and `ParentChildSplitter`, and adds to each block's meta:

    - `tenant_id`, as given;
    - `file_id`: a hash of the tenant and the file's key, by which `PassageWriter` finds what older versions left;
    - `source_id`: the same for a file; for a JSONL row a hash with its record id, or with its line if it has none;
    - `language`: as stated by the block; else detected, block by block where a block is long enough, so that a
      bilingual file has both;
    - `title`, if it has none: the file's name without its ending.

    The file's key is its resolved absolute path (`source_key`, set by `SourceInspector`): a file that is changed in
    place replaces its own passages, one that is moved or copied is another source. A byte stream's key is its name.
    """

    tenant_role = "stamps"

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document], tenant_id: str) -> dict[str, list[Document]]:
        """
        Stamp blocks.

        :param documents: Blocks in reading order with `source` and `file_path` in their meta.
        :param tenant_id: Whose they are.
        :returns: New documents with the same contents, in the same order.
        :raises ValueError: If the tenant is empty.
        """
        if not tenant_id or not tenant_id.strip():
            raise ValueError("`tenant_id` is empty. Say whose library these sources belong to.")
        stamped: list[Document] = []
        for _, group in groupby(documents, key=lambda block: (_key(block), block.meta.get("section"))):
            blocks = list(group)
            for block, language in zip(blocks, _languages(blocks), strict=True):
                stamped.append(_stamped(block, tenant_id, language))
        return {"documents": stamped}


def _stamped(block: Document, tenant_id: str, language: str) -> Document:
    key = _key(block)
    rows = ((name, block.meta.get(own)) for name, own in (("id", "record_id"), ("line", "line")))
    row = next(((name, str(value)) for name, value in rows if value is not None), ())
    file_id, source_id = _hash(tenant_id, key), _hash(tenant_id, key, *row)
    source = block.meta.get("source") or Path(key).name
    meta: dict[str, Any] = {name: value for name, value in block.meta.items() if name not in _DROPPED}
    meta |= {"tenant_id": tenant_id, "source_id": source_id, "file_id": file_id, "source": source, "language": language}
    meta["title"] = meta.get("title") or Path(source.removesuffix(".gz")).stem
    # The id of a block is never stored; keeping the old id avoids hashing the whole content again.
    return SharedDocument(id=block.id, content=block.content, meta=meta)


def _key(block: Document) -> str:
    path = block.meta.get("file_path")
    return str(block.meta.get("source_key") or (Path(path).resolve() if path else block.meta.get("source") or ""))


def _hash(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        # Lengths keep ("ab", "c") and ("a", "bc") apart.
        data = part.encode("utf-8", "surrogatepass")
        digest.update(f"{len(data)}:".encode() + data)
    return digest.hexdigest()[:32]


def _languages(blocks: list[Document]) -> Iterator[str]:
    """Yield the language of every block of one section."""
    section = None
    for block in blocks:
        stated = str(block.meta.get("language") or "").replace("_", "-").split("-")[0].lower()
        if stated and stated != "und":
            yield stated
            continue
        content = block.content or ""
        found = detect_language(content[:_SAMPLE]) if len(content) >= _ENOUGH else "und"
        if found == "und":
            if section is None:
                section = detect_language("\n".join((each.content or "")[:_SAMPLE] for each in blocks[:20]))
            found = section
        yield found
