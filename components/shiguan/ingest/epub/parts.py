"""The parts of a book that their titles and words alone show to be no text of it."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import groupby

from shiguan.ingest.epub.blocks import Block
from shiguan.ingest.epub.roles import cues, evidence, kinds_by

_IMPRINT = "imprint"
# What goes by titles and words alone stands in the first or last tenth of the text, or so near to an end.
_END_SHARE, _END = 10, 2000
# A title that a book repeats more often belongs to its text: an anthology says of each author who he was.
_MOST_ALIKE = 2
# Files, each with a title that stands in it.
_Titles = Collection[tuple[str, str]]
_BETWEEN_HAN = re.compile(r"(?<=[\u4e00-\u9fff])\s+(?=[\u4e00-\u9fff])")


@lru_cache(maxsize=4096)
def plain_title(title: str) -> str:
    """Reduce a title to what titles are compared by."""
    return _BETWEEN_HAN.sub("", " ".join(title.casefold().split()).strip(" .:：·-—[]【】《》"))


def leave_out(blocks: Sequence[Block], lines: _Titles, headings: _Titles) -> tuple[list[Block], Counter[str]]:
    """
    Take out the parts that titles and words show to be no text of the book, and name them with their lengths.

    A title counts in the file that holds its heading or that its line of the table of contents leads to: what follows
    in the next file without a heading of its own stands under it, too, and may be a chapter.
    """
    listed = {(href, plain_title(title)) for href, title in lines}
    owned = listed | {(href, plain_title(title)) for href, title in headings}
    runs = [(key, list(run)) for key, run in groupby(blocks, lambda block: _cue_over(block, owned, listed))]
    often = Counter(title for (_, title, _), _ in runs)
    total = sum(_size(run) for (_, title, _), run in runs if not title)
    left: Counter[str] = Counter()
    kept: list[Block] = []
    before = 0
    for (_, title, kind), run in runs:
        text = 0 if title else _size(run)
        start = end = 0
        if min(before, total - before - text) <= max(total // _END_SHARE, _END):
            if not title:
                start, end = _imprint(run)
            elif often[title] <= _MOST_ALIKE and _fits(run, title, kind):
                end = len(run)
        before += text
        gone = [block for block in run[start:end] if not block.kept]
        if gone:
            left[f"{kind} “{title}”" if title else _IMPRINT] += _size(gone)
        kept += run[:start] + [block for block in run[start:end] if block.kept] + run[end:]
    return kept, left


def _size(blocks: Sequence[Block]) -> int:
    return sum(len(block.content) for block in blocks)


def _cue_over(block: Block, owned: _Titles, listed: _Titles) -> tuple[str, str, str]:
    """Tell a block's file and, where the title of such a part stands above it, the title and the kind."""
    href = block.anchor["href"]
    above = [plain_title(heading) for heading in block.section]
    for i, title in enumerate(above):
        kind = kinds_by("titles").get(title) or kinds_by("doubtful").get(title)
        # A chapter whose heading ranks too low stands below such a title, and has a line of its own.
        if kind and (href, title) in owned and not any((href, below) in listed for below in above[i + 1 :]):
            return href, title, kind
    return href, "", ""


def _fits(run: Sequence[Block], title: str, kind: str) -> bool:
    """Tell whether what stands under a title may be what the title says."""
    known, size = cues()[kind], _size(run)
    if size > known["most"]:
        return False
    text = "\n".join(block.content for block in run)
    short = size <= known.get("line", size) * len(text.split("\n"))
    return short and (title in known["titles"] or bool(evidence(text)))


def _imprint(run: Sequence[Block]) -> tuple[int, int]:
    """Find an imprint without a title: where its first mark stands, and where its last one ends."""
    if _size(run) <= cues()[_IMPRINT]["most"]:
        found = [evidence(block.content) for block in run]
        if len(set().union(*found)) >= cues()[_IMPRINT]["untitled"]:
            marked = [i for i, marks in enumerate(found) if marks]
            return marked[0], marked[-1] + 1
    return 0, 0
