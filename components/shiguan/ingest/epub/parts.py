"""The parts of a book that their titles and words alone show to be no text of it."""

import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import groupby

from shiguan.ingest.epub.blocks import Block
from shiguan.ingest.epub.roles import cues, evidence, kinds_by

IMPRINT = "imprint"
# What goes by titles and words alone stands in the first or last tenth of the text, or so near to an end.
_END_SHARE, _END = 10, 2000
# A title that a book repeats more often belongs to its text: an anthology says of each author who he was.
_MOST_ALIKE = 2
_BETWEEN_HAN = re.compile(r"(?<=[\u4e00-\u9fff])\s+(?=[\u4e00-\u9fff])")


@lru_cache(maxsize=4096)
def plain_title(title: str) -> str:
    """Reduce a title to what titles are compared by."""
    return _BETWEEN_HAN.sub("", " ".join(title.casefold().split()).strip(" .:：·-—[]【】《》"))


# Its kind, its title or '', and its length in characters.
Part = tuple[str, str, int]
# Files, each with a title that stands in it.
Titles = Collection[tuple[str, str]]


def leave_out(blocks: Sequence[Block], lines: Titles, headings: Titles) -> tuple[list[Block], list[Part]]:
    """
    Take out the parts that titles and words show to be no text of the book, and name them with their lengths.

    A title counts in the file that holds its heading or that its line of the table of contents leads to: what follows
    in the next file without a heading of its own stands under it, too, and may be a chapter.
    """
    listed = {(href, plain_title(title)) for href, title in lines}
    owned = listed | {(href, plain_title(title)) for href, title in headings}
    runs = [(key, list(run)) for key, run in groupby(blocks, lambda block: _cue_over(block, owned, listed))]
    sizes = [_size(run) for _, run in runs]
    total = sum(size for (key, _), size in zip(runs, sizes, strict=True) if not key[1])
    edge = max(total // _END_SHARE, _END)
    names = [key[1] for key, _ in runs]
    left: list[Part] = []
    kept: list[Block] = []
    before = 0
    for ((_, title, kind), run), size in zip(runs, sizes, strict=True):
        rest = total - before - (0 if title else size)
        at_end = min(before, rest) <= edge
        before += 0 if title else size
        out = []
        if title and at_end and names.count(title) <= _MOST_ALIKE and _fits(run, size, title, kind):
            out = [block for block in run if not block.kept]
        elif not title and at_end and size <= cues()[IMPRINT]["most"]:
            out = list(_imprint(run))
        if out:
            left.append((kind or IMPRINT, title, _size(out)))
        gone = set(map(id, out))
        kept += [block for block in run if id(block) not in gone]
    return kept, left


def _size(blocks: Sequence[Block]) -> int:
    return sum(len(block.content) for block in blocks)


def _cue_over(block: Block, owned: Titles, listed: Titles) -> tuple[str, str, str]:
    """Tell a block's file and, where the title of such a part stands above it, the title and the kind."""
    href = block.anchor["href"]
    above = [plain_title(heading) for heading in block.section]
    for i, title in enumerate(above):
        kind = kinds_by("titles").get(title) or kinds_by("doubtful").get(title)
        # A chapter whose heading ranks too low stands below such a title, and has a line of its own.
        if kind and (href, title) in owned and not any((href, below) in listed for below in above[i + 1 :]):
            return href, title, kind
    return href, "", ""


def _fits(run: Sequence[Block], size: int, title: str, kind: str) -> bool:
    """Tell whether what stands under a title may be what the title says."""
    known = cues()[kind]
    if size > known["most"]:
        return False
    text = "\n".join(block.content for block in run)
    short = size <= known.get("line", size) * len(text.split("\n"))
    return short and (title in known["titles"] or bool(evidence(text)))


def _imprint(run: Sequence[Block]) -> Iterator[Block]:
    """Find the blocks of an imprint without a title: from the first mark of one to the last."""
    found = [evidence(block.content) for block in run]
    if len(set().union(*found)) >= cues()[IMPRINT]["untitled"]:
        marked = [i for i, marks in enumerate(found) if marks]
        yield from (block for block in run[marked[0] : marked[-1] + 1] if not block.kept)
