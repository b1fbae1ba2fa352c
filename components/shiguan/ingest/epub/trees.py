"""Parses XML and XHTML of unknown origin, without entities, DTD or network, and reads the text of their elements."""

import html.entities
import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from lxml import etree

from shiguan.ingest.file_types import declared_encoding, decode_text, superset

_NAMED_ENTITY = re.compile(
    r"&(?!(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|amp|lt|gt|quot|apos);)([A-Za-z][A-Za-z0-9]{0,31}(?:;|(?![\w=;])))?"
)
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_FEEDS = {0x0B: " ", 0x0C: " "}
_ILLEGAL_REFERENCE = re.compile(r"&#(?:0*(?:[0-8]|1[124-9]|2[0-9]|3[01])|[xX]0*(?:[0-8bBcCeEfF]|1[0-9a-fA-F]));")
_DECLARATION = re.compile(r"<\?xml\b[^>]*\?>", re.IGNORECASE)
_SELF_CLOSED = re.compile(r"<([A-Za-z][\w:.-]*)([^<>]*)/>")
_ENDS = re.compile(r"</(?:body|html)\s*>", re.IGNORECASE)  # the parser stops there, and browsers do not
_ANY_TAG = re.compile(r"<(/?)([A-Za-z][\w:.-]*)[^<>]*>")
_MOST_LEVELS = 1_000
_MOST_PIECES = 100
_TAG = re.compile(r"[^\W\d][\w.-]*")
HEADINGS = frozenset("h1 h2 h3 h4 h5 h6".split())
_VOID = frozenset("area base br col embed hr img input link meta param source track wbr".split())
_DOCTYPE = re.compile(r"""<(?:"[^"]*+"|'[^']*+'|\[(?:"[^"]*+"|'[^']*+'|[^]"'])*+]|[^"'\[>])*+>""")

Element = etree._Element


def decode_markup(data: bytes) -> tuple[str, list[str]]:
    """
    Turn the bytes of a markup file into text.

    If no encoding is certain, bytes that are not UTF-8 are replaced. Characters that XML forbids (NUL and other control
    characters) are removed.
    """
    problems: list[str] = []
    declared = declared_encoding(data) or "utf-8"
    # If NUL does not mean UTF-16, it is one of the characters that are removed.
    decoded = decode_text(data, declared) or decode_text(data.replace(b"\0", b"\1"), declared)
    encoding = decoded.encoding if decoded else "utf-8"
    if decoded is None or not (encoding in ("utf-8", superset(declared)) or encoding.startswith("utf-16")):
        problems.append(f"it is not {declared} as it should be and was read as {encoding}")
    if decoded and decoded.damaged:
        problems.append(f"{decoded.damaged:,} places are not {encoding} and are shown as \ufffd")
    text = decoded.text if decoded else data.decode("utf-8", errors="replace")
    # In HTML a form feed is white space.
    clean, removed = _ILLEGAL.subn("", text.translate(_FEEDS))
    if removed:
        problems.append(f"{removed:,} control characters were removed")
    return clean, problems


def parse_xml(data: bytes) -> Element | None:
    """Parse a package file (container, OPF, NCX): entities and DTDs are ignored, errors recovered where possible."""
    text, _ = _without_doctype(decode_markup(data)[0])
    return _localised(_root(_neutral(text), _xml_parser(recover=True)))


_OFFICE = re.compile(
    r"\{http://(?:schemas\.openxmlformats\.org|purl\.oclc\.org/ooxml)/(wordprocessingml|officeDocument)/[^}]*(main|math)\}"
)


def parse_part(data: bytes) -> Element | None:
    """
    Parse a part of an Office file, without entities or a DTD; None where it is not well-formed.

    Names of WordprocessingML, transitional or strict, are bare; those of equations begin with `m_`, others with `o_`.
    """
    text, _ = _without_doctype(decode_markup(data)[0])
    root = _root(_neutral(text), _xml_parser(recover=False))
    for element in root.iter(etree.Element) if root is not None else ():
        tag = str(element.tag)
        found = _OFFICE.match(tag)
        element.tag = ("o_" if found is None else "m_" if found[2] == "math" else "") + local_name(tag)
    return root


def parse_xhtml(data: bytes) -> tuple[Element | None, list[str]]:
    """
    Parse a chapter: as XML if it is well-formed, else as HTML, which keeps the text of any tag soup.

    HTML's named entities become characters; entities that the document itself declares are not expanded.
    """
    text, problems = decode_markup(data)
    text, declares_entities = _without_doctype(text)
    if declares_entities:
        problems.append("it declares entities of its own, which are not expanded")
    if not text.strip():
        return None, [*problems, "it is empty"]
    text = _neutral(text)
    root = _localised(_root(text, _xml_parser(recover=False)))
    if root is None:
        root, flattened = _parse_html(text)
        problems.append("it is not well-formed and was read as HTML")
        if flattened:
            problems.append(
                f"its elements are nested too deeply and were read without those below {_MOST_LEVELS:,} levels"
            )
    return root, problems


def local_name(tag: str) -> str:
    """Strip namespace and prefix from a tag or attribute name."""
    return tag.rpartition("}")[2].rpartition(":")[2]


_ATTRIBUTES = etree.XPath("@*")


def attributes(element: Element) -> dict[str, str]:
    """Read all attributes by their local names, at once: looking one up searches all before it."""
    values: Any = _ATTRIBUTES(element)
    return {local_name(value.attrname): str(value) for value in values}


def tokens(element: Element, *names: str) -> frozenset[str]:
    """Read the lower-cased words of attributes, whatever their namespace prefix."""
    if not element.attrib:
        return frozenset()
    words: set[str] = set()
    # Looking up a value searches all attributes before it.
    for key in element.attrib:
        if local_name(str(key)) in names:
            words.update(element.get(key, "").lower().split())
    return frozenset(words)


def _without_doctype(text: str) -> tuple[str, bool]:
    """Cut the document type out, so that no parser ever sees an entity declaration."""
    start = text[:100_000].upper().find("<!DOCTYPE")
    if start < 0:
        return text, False
    found = _DOCTYPE.match(text, start)
    end = found.end() if found else text.find("<html", start)
    end = end if end > 0 else len(text)
    return text[:start] + text[end:], "<!ENTITY" in text[start:end]


def _neutral(text: str) -> str:
    """Remove the encoding declaration, references to forbidden characters, and all entities but XML's own five."""
    text = text.lstrip("\ufeff \t\r\n")
    if declaration := _DECLARATION.match(text):
        text = text[declaration.end() :].lstrip()
    if "epub:" in text and "xmlns:epub" not in text:
        # A prefix used without its declaration is the commonest fault of otherwise well-formed chapters.
        text = text.replace("<html", '<html xmlns:epub="http://www.idpf.org/2007/ops"', 1)
    text = _ILLEGAL_REFERENCE.sub("", text)
    return _NAMED_ENTITY.sub(_entity, text)


def _entity(match: re.Match[str]) -> str:
    name = match.group(1)
    if name and name in html.entities.html5:
        return html.entities.html5[name].replace("&", "&amp;").replace("<", "&lt;")
    return f"&amp;{name or ''}"


def _xml_parser(*, recover: bool) -> "etree.XMLParser":
    return etree.XMLParser(
        encoding="utf-8", resolve_entities=False, no_network=True, load_dtd=False, dtd_validation=False,
        huge_tree=True, remove_comments=True, remove_pis=True, recover=recover,
    )  # fmt: skip


def _root(text: str, parser: "etree.XMLParser | etree.HTMLParser") -> Element | None:
    try:
        return etree.fromstring(text.encode("utf-8"), parser)
    except (etree.XMLSyntaxError, ValueError):
        if any(entry.type == etree.ErrorTypes.ERR_NO_MEMORY for entry in parser.error_log):
            raise MemoryError from None
        return None


def _parse_html(text: str) -> tuple[Element | None, bool]:
    # HTML has no self-closed elements but the void ones: `<a id="x"/>` would contain all that follows.
    text = _SELF_CLOSED.sub(lambda m: m[0] if m[1].lower() in _VOID else f"<{m[1]}{m[2]}></{m[1]}>", text)
    text = _ENDS.sub(" ", text)
    for flattened in (False, True):
        parser = etree.HTMLParser(
            encoding="utf-8", no_network=True, huge_tree=True, remove_comments=True, remove_pis=True, recover=True
        )
        root = _root(_flattened(text) if flattened else text, parser)
        # At 2,048 levels the parser stops, and all that follows would be lost.
        if all(entry.type != etree.ErrorTypes.ERR_RESOURCE_LIMIT for entry in parser.error_log):
            break
    return _localised(root), flattened


def _flattened(text: str) -> str:
    """Remove the tags that are nested deeper than the parser goes, and keep their text."""
    depth = 0

    def kept(tag: re.Match[str]) -> str:
        nonlocal depth
        closing, name = tag[1], tag[2].lower()
        if name not in _VOID:
            depth = max(depth - 1, 0) if closing else depth + 1
        if depth + bool(closing) <= _MOST_LEVELS:
            return tag[0]
        return " " if name in BLOCK_ELEMENTS else ""

    return _ANY_TAG.sub(kept, text)


def _localised(root: Element | None) -> Element | None:
    for element in root.iter(etree.Element) if root is not None else ():
        tag = str(element.tag)
        # Tag soup has names that no tree allows, such as `type='noteref'`.
        name = name if _TAG.fullmatch(name := local_name(tag).lower()) else "unknown"
        above = element.getparent() if name == "button" else None
        alone = element.getprevious() is None and element.getnext() is None
        if above is not None and above.tag in HEADINGS and alone:
            # A heading that opens what is below it.
            name = name if f"{above.text or ''}{element.tail or ''}".strip() else "span"
        if name == "template" and element.get("shadowrootmode"):
            name = "div"  # it is shown
        if name != tag:
            element.tag = name
    return root


# Their start and end separate words, as a line break does; every other element is inline.
BLOCK_ELEMENTS = frozenset(
    "address article aside blockquote body br caption center dd details dir div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav ol p pre section summary table tbody "
    "td text tfoot th thead tr ul frontmatter bodymatter rearmatter level level1 level2 level3 level4 level5 level6 "
    "book poem linegroup line note sidebar prodnote imggroup list svg title desc dialog marquee xmp listing".split()
)
# Not part of the text: ruby readings, elements that are never shown, fallbacks for media, and controls of forms.
UNCOUNTED_ELEMENTS = frozenset(
    "rt rp rtc script style head template metadata defs audio video iframe canvas annotation annotation-xml "
    "button select textarea input datalist meter progress".split()
)
_QUOTE_MARKS = frozenset("\"'“”‘’«»‹›„「」『』")
# Invisible characters: soft hyphen, zero width space, byte order mark, the invisible operators of formulas.
_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\ufeff\u2061\u2062\u2063\u2064"))


def visible(text: str) -> str:
    """Drop invisible characters."""
    return text if text.isascii() else text.translate(_INVISIBLE)


def element_text(element: Element, instead: Callable[[Element], str | None] = lambda _: None) -> str:
    """
    Return the text of an element, in which an anchor's `offset` counts code points.

    All character data in document order, without the elements of `UNCOUNTED_ELEMENTS` and without invisible
    characters; if `instead` returns a text for an element, that replaces it. Each run of white space counts as one
    space, and so does each start and end of an element that `is_separate`; no space at either end.
    """
    return " ".join(visible("".join(_pieces(element, instead))).split())


def short_text(element: Element) -> str:
    """Return the text of an element that may be a mark; of one of many parts only the beginning, and an ellipsis."""
    if not len(element) and element.tag not in UNCOUNTED_ELEMENTS:
        return " ".join(visible(element.text or "").split())
    pieces = list(islice(_pieces(element), _MOST_PIECES + 1))
    if len(pieces) > _MOST_PIECES:
        pieces.append("…")
    return " ".join(visible("".join(pieces)).split())


def _pieces(element: Element, instead: Callable[[Element], str | None] = lambda _: None) -> Iterator[str]:
    nodes = etree.iterwalk(element, events=("start", "end"))
    for event, node in nodes:
        if is_separate(node):
            yield " "
        if event == "start":
            text = "" if node.tag in UNCOUNTED_ELEMENTS else instead(node)
            if text is not None:
                nodes.skip_subtree()
            yield (node.text or "") if text is None else text
        elif node is not element:
            yield node.tail or ""


INLINE = frozenset("a b cite code em font i label q s small span strong time u".split())
AS_BLOCK = re.compile(r"display\s*:\s*(?:block|flex|flow-root|grid|list-item|table)", re.IGNORECASE)
UNSHOWN = re.compile(r"display\s*:\s*none", re.IGNORECASE)
# An initial beside its word.
FLOATING = re.compile(r"float\s*:\s*(?:left|right)|position\s*:\s*absolute", re.IGNORECASE)


def is_separate(element: Element) -> bool:
    """Return whether the start and the end of an element separate words, by its name or its style."""
    if element.tag == "tspan":
        return element.get("x") is not None  # it begins a line
    if "-" in element.tag and not str(element.tag).startswith("mjx-"):
        # Those of a program's own are mostly blocks, which its style sheet says, where one is right beside another.
        before, after = element.getprevious(), element.getnext()
        follows = before is not None and "-" in before.tag and not before.tail
        return follows or (after is not None and "-" in after.tag and not element.tail)
    if element.tag not in INLINE or not (style := element.get("style")):
        return str(element.tag) in BLOCK_ELEMENTS
    return bool(AS_BLOCK.search(style)) and not FLOATING.search(style)


def is_quoted(element: Element) -> bool:
    """Return whether the marks that a browser puts around a quotation stand in its text, which may be long."""
    first = next((text for text in map(visible, map(str, element.itertext())) if text.strip()), "")
    return first.strip()[:1] in _QUOTE_MARKS


def last_tag(element: Element) -> str:
    """Return the name of the last child, or nothing; the length of an element is counted each time."""
    return next((str(child.tag) for child in element.iterchildren(reversed=True)), "")


def walk(root: Element, cfi: str = "") -> Iterator[tuple[str, Element, str, str]]:
    """
    Walk a tree in document order without recursion: starts and ends of elements, their paths and CFIs.

    At a start it is the CFI of the element, at an end that of the text after it; without a `cfi` of the root, empty.
    """
    # For each open element its path, its CFI, and how many children it had of each name; "" is any name.
    above: list[tuple[str, str, dict[str, int]]] = [("", "", {"": 0})]
    for event, element in etree.iterwalk(root, events=("start", "end")):
        if event == "end":
            path = above.pop()[0]
            _, outer, counts = above[-1]
            yield "end", element, path, outer and f"{outer}/{2 * counts[''] + 1}"
            continue
        path, outer, counts = above[-1]
        name = str(element.tag)
        number = counts[name] = counts.get(name, 0) + 1
        counts[""] += 1
        bare = number == 1 and (not path or name == "body")
        path = f"{path}/{name}" if bare else f"{path}/{name}[{number}]"
        own = cfi if element is root else outer and f"{outer}/{2 * counts['']}"
        above.append((path, own, {"": 0}))
        yield "start", element, path, own
