"""What counts as text in a chapter: the definition behind an anchor's path and character offset."""

from collections import Counter
from collections.abc import Iterator

from lxml import etree

from shiguan.ingest.epub.trees import Element

# Their start and end separate words, as a line break does; every other element is inline.
BLOCK_ELEMENTS = frozenset(
    "address article aside blockquote body br caption center dd details dir div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav ol p pre section summary table tbody "
    "td text tfoot th thead tr ul frontmatter bodymatter rearmatter level level1 level2 level3 level4 level5 level6 "
    "book poem linegroup line note sidebar prodnote imggroup list svg".split()
)
# Not part of the text: readings beside the base text, what is never shown, and what stands in for media.
UNCOUNTED_ELEMENTS = frozenset(
    "rt rp rtc script style head template metadata defs audio video iframe canvas annotation annotation-xml".split()
)
# Marks that no reader sees: soft hyphen, zero width space, byte order mark, the invisible operators of formulas.
_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\ufeff\u2061\u2062\u2063\u2064"))


def visible(text: str) -> str:
    """Drop the characters that no reader sees."""
    return text if text.isascii() else text.translate(_INVISIBLE)


def element_text(element: Element) -> str:
    """
    Give the text of an element, in which an anchor's `offset` counts code points.

    All character data in document order, without the elements of `UNCOUNTED_ELEMENTS` and without invisible
    characters. Each run of white space counts as one space, and so does each start and end of an element of
    `BLOCK_ELEMENTS`; no space at either end.
    """
    pieces: list[str] = []
    skipping: Element | None = None
    for event, node in etree.iterwalk(element, events=("start", "end")):
        if skipping is not None:
            if event == "end" and node is skipping:
                skipping = None
                if node is not element:
                    pieces.append(node.tail or "")
            continue
        name = str(node.tag)
        if event == "start" and name in UNCOUNTED_ELEMENTS:
            skipping = node
            continue
        if name in BLOCK_ELEMENTS:
            pieces.append(" ")
        if event == "start":
            pieces.append(node.text or "")
        elif node is not element:
            pieces.append(node.tail or "")
    return " ".join(visible("".join(pieces)).split())


def walk(root: Element) -> Iterator[tuple[str, Element, str]]:
    """Walk a tree in document order without recursion."""
    paths: list[str] = [""]
    counts: list[Counter[str]] = [Counter()]
    for event, element in etree.iterwalk(root, events=("start", "end")):
        if event == "start":
            name = str(element.tag)
            counts[-1][name] += 1
            number = counts[-1][name]
            bare = number == 1 and (len(paths) == 1 or name == "body")
            path = f"{paths[-1]}/{name}" if bare else f"{paths[-1]}/{name}[{number}]"
            paths.append(path)
            counts.append(Counter())
            yield "start", element, path
        else:
            counts.pop()
            yield "end", element, paths.pop()
