"""The roles of a book's parts: what is not text of it, what is verse, what is a table."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from functools import lru_cache, partial
from pathlib import Path

from shiguan.ingest.epub.lists import is_contents
from shiguan.ingest.epub.notes import BookFile
from shiguan.ingest.epub.package import Package
from shiguan.ingest.epub.trees import BLOCK_ELEMENTS, HEADINGS, UNSHOWN, Element, element_text, parse_xhtml, tokens
from shiguan.resources import read_patterns

# Roles of text that may be inside such a part, like an epigraph on a title page.
KEPT = frozenset(
    "epigraph dedication preface foreword introduction prologue epilogue chapter part doc-epigraph "
    "doc-dedication".split()
)
# The classes of what a wiki, a program for formulas or one that reads aloud adds to the text of a page.
ADDED = frozenset(
    "mw-editsection inline-template noprint mathjax_preview margin-toggle sr-only visually-hidden visuallyhidden "
    "screen-reader-text".split()
)
_CONTROLS = frozenset(("button", "select", "textarea", "input"))
# Of these fields nobody reads the value.
_WORDLESS = frozenset("hidden checkbox radio image file range color password".split())
_APART = _CONTROLS.union("audio video iframe canvas datalist meter progress".split())
_VERSE = re.compile(r"verse|poem|poetry|stanza|strophe|line-?group|^lg$|haiku|lyric")
_LAID_OUT = HEADINGS.union(("table", "blockquote", "section", "figure"))
_HOLDERS = frozenset("section div p aside blockquote li article".split())
_SHORT_LINE = 60
_MIN_LINES = 3


cues = partial(read_patterns, Path(__file__).with_name("roles.yaml"))
"""Read the table: the cues of each kind of part, and under `evidence` the patterns."""


@lru_cache(maxsize=8)
def kinds_by(cue: str) -> dict[str, str]:
    """Return the kind of part that each word of a sort of cue means."""
    return {word: kind for kind, known in cues().items() for word in known.get(cue, ())}


def kind_of(words: Collection[str], cue: str) -> str:
    """Return the kind of part that any of the words means, or nothing."""
    known = kinds_by(cue)
    return next((known[word] for word in sorted(words) if word in known), "")


@lru_cache(maxsize=4096)
def kind_of_title(title: str) -> str:
    """Return the kind of part that a title announces, or nothing."""
    named = (kind for kind, known in cues().items() if "named" in known and known["named"].fullmatch(title))
    return kinds_by("titles").get(title) or next(named, "")


def evidence(text: str) -> set[str]:
    """Return the marks of an imprint that a text has."""
    return {name for name, pattern in cues()["evidence"].items() if pattern.search(text)}


class Roles:
    """Decides what is left out, by the book's stated roles and the caller's choice."""

    def __init__(self, package: Package, files: Sequence[BookFile], *, include_front_matter: bool) -> None:
        self._include = include_front_matter
        # Of a page that is not a book only parts with a stated role are left out.
        self._by_class = bool(package.spine)
        self._by_title = files_by_title(files, package) if self._by_class and not self._include else {}
        starts = {landmark.target.href for landmark in package.starts}
        self._targets: dict[tuple[str, str], str] = {
            landmark.target: kind
            for landmark in package.landmarks
            # If a whole book is in one file, its guide may call that file both cover and text.
            if (kind := kind_of(landmark.kinds, "roles"))
            and (landmark.target.fragment or landmark.target.href not in starts)
        }

    def leaves_out_file(self, file: BookFile) -> str:
        """Return the kind of a whole file that is not text of the book, or nothing."""
        if self._include:
            return ""
        if not file.linear:
            return "outside the reading order"
        stated = self._targets.get((file.href, "")) or ("contents" if is_contents(file.root) else "")
        return stated or self._by_title.get(file.href, "")

    def hides(self, element: Element) -> bool:
        """Return whether an element is not shown, unless everything is to be read."""
        return not self._include and is_hidden(element)

    def leaves_out(self, element: Element, href: str) -> str:
        """Return the kind of an element that is not text of the book, or nothing."""
        if element.tag == "del":
            return "deleted text"
        if tokens(element, "class") & ADDED:
            return "text that is not shown or not printed"
        types = tokens(element, "type", "role")
        if element.tag == "nav" and (not self._include or types & {"landmarks", "page-list"}):
            return "contents"
        if self._include or str(element.tag) not in BLOCK_ELEMENTS:
            return ""
        if kind := kind_of(types, "roles"):
            return kind
        element_id = element.get("id")
        if element_id and (href, element_id) in self._targets and element.tag in ("section", "div", "nav", "body"):
            return self._targets[href, element_id]
        kind = _kind_by_class(element)
        return kind if self._by_class or kind == "menu" else ""

    def keeps(self, element: Element, left_out: str) -> bool:
        """Return whether an element is text even inside a part that is left out, such as a poem in the contents."""
        types = tokens(element, "type", "role")
        if element.tag not in _HOLDERS or kind_of(types, "roles"):
            return False
        return bool(types & KEPT) or (left_out.startswith("contents") and _is_poem(element))


def is_hidden(element: Element) -> bool:
    """Return whether a page says that an element is not shown, not even to one who searches it."""
    hidden = element.get("hidden", "until-found").lower() != "until-found"
    return hidden or bool(UNSHOWN.search(element.get("style", "")))


def words_set_apart(element: Element) -> str | None:
    """Return the words of a control or a frame, of a film none, that stands among those around; None for any other."""
    if element.tag not in _APART or is_hidden(element) or tokens(element, "type") & _WORDLESS:
        return None
    if page := element.get("srcdoc"):
        root, _ = parse_xhtml(page.encode("utf-8", "replace"))
        return element_text(root) if root is not None else ""
    words = element.get("value", "") if element.tag == "input" else "".join(map(str, element.itertext()))
    return " ".join(words.split()) if element.tag in _CONTROLS else ""


def is_line_group(element: Element, *, by_name: bool = False) -> bool:
    """Return whether an element has lines that belong together, like a stanza."""
    if element.tag not in ("div", "section", "blockquote", "p", "linegroup", "poem"):
        return False
    if element.tag in ("linegroup", "poem") or any(_VERSE.search(word) for word in tokens(element, "class", "type")):
        return True
    if by_name or element.tag != "div" or len(element) < _MIN_LINES or (element.text or "").strip():
        return False
    length = 0
    for child in element:
        if child.tag != "div" or any(node.tag in BLOCK_ELEMENTS and node.tag != "br" for node in child):
            return False
        length += len(element_text(child))
    return 0 < length <= _SHORT_LINE * len(element)


def lists_places(section: Sequence[str], text: str) -> bool:
    """Return whether a text is below the title of a list, and in lines as short as those of one."""
    title = kind_of_title(plain_title(section[-1])) if section else ""
    return title in ("contents", "index") and len(text) <= cues()["contents"]["line"] * (text.count("\n") + 1)


def _is_poem(element: Element) -> bool:
    """Return whether an element without links is a quotation, verse, or a paragraph in lines."""
    if any(True for _ in element.iter("a", "li", "table")):
        return False
    lines = sum(1 for _ in element.iter("br"))
    quoted = element.tag == "blockquote" or is_line_group(element) or (element.tag == "p" and lines >= _MIN_LINES)
    return quoted and bool(element_text(element))


def is_data_table(table: Element) -> bool:
    """Return whether a table has data, and is not only for layout, as of texts in lines side by side."""
    widest, in_lines = 0, set[bool]()
    for node in table.iter():
        name = str(node.tag)
        if node is not table and name in _LAID_OUT:
            return False
        if name == "tr":
            widest = max(widest, len(node))
            cells = [cell for cell in node.iterchildren("td") if len(cell) or (cell.text or "").strip()]
            in_lines |= {len(cells) > 1 and all(_lines(cell) > 1 for cell in cells)} if cells else set()
    return widest > 1 and in_lines != {True}


def _lines(cell: Element) -> int:
    breaks = sum(1 for each in cell.iter("br") if (each.tail or "").strip())
    return max(breaks + 1, sum(1 for each in cell.iter("p", "div") if (each.text or "").strip()))


def _kind_by_class(element: Element) -> str:
    """Return the kind of an element by its class, unless its text shows otherwise."""
    text, kind = "", kind_of(tokens(element, "class"), "classes")
    if not kind:
        return ""
    for piece in element.itertext():
        text += " " + str(piece).strip()
        if len(text) > cues()[kind]["most"]:
            return ""
    if kind == "menu":
        links = "".join(element_text(link) for link in element.iter("a"))
        return kind if len(re.findall(r"\w", text)) == len(re.findall(r"\w", links)) else ""
    if kind == "running head":
        return "" if any(True for _ in element.iter(*HEADINGS)) else kind
    return kind if evidence(text) else ""


_IMPRINT = "imprint"
# Parts that are found by titles and words alone must be in the first or last tenth of the text, or this near an end.
_END_SHARE, _END = 10, 2000
# A title that a book repeats more often belongs to its text: an anthology introduces each of its authors.
_MOST_ALIKE = 2
_LINES = ("p", "li", "tr", "dt", "br")
_BETWEEN_HAN = re.compile(r"(?<=[\u4e00-\u9fff])\s+(?=[\u4e00-\u9fff])")


def plain_title(title: str) -> str:
    """Normalise a title for comparison."""
    return _BETWEEN_HAN.sub("", " ".join(title.casefold().split()).strip(" .:：·-—[]【】《》"))


def files_by_title(files: Sequence[BookFile], package: Package) -> dict[str, str]:
    """
    Find the files that titles and words show not to be text of the book, and name each by its kind and title.

    Only short ones at either end of the book count, and only if they are less than half of it.
    """
    labels = {entry.target.href: entry.label for entry in reversed(package.nav)}
    found: list[tuple[BookFile, int, str]] = []
    for file in files:
        body = next(file.root.iter("body"), file.root)
        heading = next((element_text(each) for each in body.iter(*HEADINGS)), "")
        titles = [plain_title(title) for title in (labels.get(file.href, ""), heading) if title]
        text = " ".join(" ".join(map(str, body.itertext())).split())
        found.append((file, len(text), _part(titles, body, text)))
    total = sum(size for _, size, part in found if not part)
    often = Counter(part for *_, part in found)
    parts, before = dict[str, str](), 0
    for file, size, part in found:
        if not part:
            before += size
        elif min(before, total - before) <= max(total // _END_SHARE, _END) and often[part] <= _MOST_ALIKE:
            parts[file.href] = part
    left_out = sum(size for file, size, _ in found if file.href in parts)
    return parts if left_out <= total else {}


def _part(titles: Sequence[str], body: Element, text: str) -> str:
    """Return what the titles and the text of a file show it to be, or nothing."""
    if not titles:
        known = cues()[_IMPRINT]
        return _IMPRINT if len(text) <= known["most"] and len(evidence(text)) >= known["untitled"] else ""
    for title in titles:
        certain = kind_of_title(title)
        kind = certain or kinds_by("doubtful").get(title, "")
        known = cues().get(kind, {"most": -1})
        lines = max(1, sum(1 for _ in body.iter(*_LINES)))
        short = len(text) <= min(known["most"], known.get("line", len(text)) * lines)
        if short and (certain or evidence(text)):
            return f"{kind} “{title}”"
    return ""
