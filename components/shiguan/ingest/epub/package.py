"""The package of an EPUB: container, OPF, spine, metadata, tables of contents and landmarks."""

import posixpath
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from shiguan.errors import SourceError
from shiguan.ingest.archives import SafeArchive
from shiguan.ingest.epub.trees import Element, element_text, parse_xhtml, parse_xml, tokens
from shiguan.text.works import work_of

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_RIGHTS = "META-INF/rights.xml"
_ADEPT = b"http://ns.adobe.com/adept"
# These two only obfuscate fonts, with a key that is in the book itself.
_FONT_OBFUSCATION = {"http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#rc"}
_FONTS = (".otf", ".ttf", ".ttc", ".woff", ".woff2", ".eot")
_TEXT_TYPES = {"application/xhtml+xml", "text/html", "application/x-dtbook+xml", "text/x-oeb1-document"}
_PERHAPS_PAGES = {"image/svg+xml", "application/xml", "text/xml"}
_TEXT_EXTENSIONS = (".xhtml", ".html", ".htm", ".xht")
_NCX_TYPE = "application/x-dtbncx+xml"
_MAX_PACKAGE_BYTES = 64 * 1024 * 1024
_NOT_AN_EPUB = "Check that it is an EPUB book, or give it the extension that fits its content"
_LANGUAGE_NAMES = {
    "jp": "ja", "cn": "zh", "tw": "zh", "kr": "ko", "gr": "el", "eng": "en", "zho": "zh", "chi": "zh", "cmn": "zh",
    "lzh": "zh", "yue": "zh", "jpn": "ja", "kor": "ko", "fra": "fr", "fre": "fr", "deu": "de", "ger": "de", "spa": "es",
    "ita": "it", "por": "pt", "rus": "ru", "ara": "ar", "heb": "he", "hin": "hi", "nld": "nl", "dut": "nl",
    "lat": "la", "ell": "el", "gre": "el", "chinese": "zh", "english": "en", "japanese": "ja",
}  # fmt: skip
_TEXT_START = frozenset("bodymatter text start".split())
_ROLES = {"author": "aut", "editor": "edt", "translator": "trl"}
_MAX_DEPTH = 24
_LISTS = frozenset(("ol", "ul"))
_PAGE_LISTS = frozenset(("page-list", "doc-pagelist"))
_MAX_ENTRIES = 50_000


class Target(NamedTuple):
    """A place inside the book: the entry's name in the archive and, within it, an element's id ('' for its start)."""

    href: str
    fragment: str


Resolve = Callable[[str, str], Target | None]


NOWHERE = Target("", "")


@dataclass(frozen=True, eq=False)
class Entry:
    """A line of a book's contents, landmarks or page list: its words, the place it leads to, and its roles."""

    label: str
    target: Target
    kinds: frozenset[str] = frozenset()
    parent: "Entry | None" = None

    @property
    def depth(self) -> int:
        """The number of lines above it that it is nested in."""
        return 0 if self.parent is None else self.parent.depth + 1


@dataclass
class Package:
    """What a book says about itself: `find` returns where a link leads, `warnings` lists what was wrong."""

    source: str
    find: Resolve
    title: str = ""
    authors: list[str] = field(default_factory=list)
    language: str = ""
    work: dict[str, Any] = field(default_factory=dict)
    # The reading order: each file's place in it, its name, and whether it belongs to the text (`linear`).
    spine: list[tuple[int, str, bool]] = field(default_factory=list)
    nav: list[Entry] = field(default_factory=list)
    landmarks: list[Entry] = field(default_factory=list)
    pages: list[Entry] = field(default_factory=list)
    # The spine as the book's CFIs have it.
    cfi: str = "/6"
    warnings: list[str] = field(default_factory=list)
    # What was skipped, in characters by kind.
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def starts(self) -> list[Entry]:
        """Where the text begins."""
        return [landmark for landmark in self.landmarks if landmark.kinds & _TEXT_START]

    def warn(self, fault: str) -> None:
        self.warnings.append(f"{self.source}: {fault}")


def _read_nav(root: Element, base: str, package: Package) -> None:
    """Read an EPUB 3 navigation document."""
    navs = list(root.iter("nav"))
    named = [nav for nav in navs if "toc" in tokens(nav, "type", "role")]
    toc = next(iter([*named, *(nav for nav in navs if not tokens(nav, "type"))]), None)
    for nav in navs:
        links = (
            Entry(element_text(link), _target(package, base, link.get("href", "")), tokens(link, "type"))
            for link in islice(nav.iter("a"), _MAX_ENTRIES)
        )
        if "landmarks" in tokens(nav, "type"):
            package.landmarks += [link for link in links if link.target.href]
        elif tokens(nav, "type", "role") & _PAGE_LISTS:
            package.pages += links
    package.nav = _contents(toc, base, package)


def _read_ncx(root: Element, base: str, package: Package) -> None:
    """Read an EPUB 2 table of contents, and its page list, unless the book has those of EPUB 3."""
    package.nav = package.nav or _contents(next(root.iter("navmap"), None), base, package)
    if not package.pages:
        for target in islice(root.iter("pagetarget"), _MAX_ENTRIES):
            label, link = _words(target) or ("", "")
            package.pages.append(Entry(label or target.get("value", ""), _target(package, base, link)))


def _target(package: Package, base: str, link: str) -> Target:
    return (package.find(base, link) if link else None) or NOWHERE


def _contents(root: Element | None, base: str, package: Package) -> list[Entry]:
    """Read the lines of a table of contents; the lines below one without words belong to the line above it."""
    entries: list[Entry] = []
    pending: list[tuple[Element, Entry | None]] = [(line, None) for line in reversed(_lines(root))]
    while pending and len(entries) < _MAX_ENTRIES:
        line, entry = pending.pop()
        if words := _words(line):
            entry = Entry(words[0], _target(package, base, words[1]), parent=entry)
            entries.append(entry)
        if entry is not None and entry.depth < _MAX_DEPTH:
            pending.extend((below, entry) for below in reversed(_lines(line)))
    return entries


def _lines(node: Element | None) -> list[Element]:
    """Return the lines right below a table of contents, or below a line of it."""
    if node is None:
        return []
    items = [item for child in node if child.tag in _LISTS for item in child if item.tag == "li"]
    return items or [child for child in node if child.tag == "navpoint"]


def _words(line: Element) -> tuple[str, str] | None:
    """Return the words of a line and its link."""
    if line.tag != "li":
        label = next((element_text(node) for node in line if node.tag == "navlabel"), "")
        return label, next((node.get("src", "") for node in line if node.tag == "content"), "")
    link = next((node for node in line if node.tag in ("a", "span")), None)
    if link is None:
        link = next((node for child in line if child.tag not in _LISTS for node in child.iter("a")), None)
    return None if link is None else (element_text(link), link.get("href", ""))


def read_package(archive: SafeArchive) -> Package:
    """Read the package of an EPUB 2 or 3."""
    opf_name = _opf_name(archive)
    if lock := next(_locks(archive), ""):
        cause = f"the book is locked: {lock}"
        raise SourceError(archive.source, cause, "Get an edition of the book without copy protection")
    opf = parse_xml(archive.read(opf_name, _MAX_PACKAGE_BYTES))
    if opf is None:
        raise SourceError(archive.source, f"its package file `{opf_name}` cannot be read", "Get an undamaged copy")
    package = Package(archive.source, partial(resolve, archive))
    _read_metadata(opf, package)
    manifest = {
        item.get("id", "").strip(): item for item in reversed([*opf.iter("item")]) if item.getparent() is not None
    }
    _read_spine(opf_name, opf, manifest, package)
    _read_navigation(archive, opf_name, opf, manifest, package)
    return package


def resolve(archive: SafeArchive, base: str, href: str) -> Target | None:
    """Find where a link leads inside the archive."""
    try:
        parts = urlsplit(href.strip())
    except ValueError:
        return None
    if parts.scheme or parts.netloc:
        return None
    fragment = unquote(parts.fragment)
    if not parts.path:
        return Target(base, fragment) if base else None
    folder = posixpath.dirname(base)
    for path in (unquote(parts.path), parts.path):
        joined = posixpath.normpath(posixpath.join(folder, path.replace("\\", "/").lstrip("/")))
        if name := archive.find(joined):
            return Target(name, fragment)
    return None


def primary_language(tag: str) -> str:
    """Reduce a language tag to its language."""
    if not tag:
        return ""
    code = tag.strip().lower().replace("_", "-").partition("-")[0]
    code = _LANGUAGE_NAMES.get(code, code)
    is_code = code.isascii() and code.isalpha() and len(code) in (2, 3)
    return code if is_code and code not in ("und", "mul", "zxx") else ""


def _opf_name(archive: SafeArchive) -> str:
    name = archive.find(_CONTAINER)
    if name is None:
        opfs = [entry for entry in archive.names if entry.lower().endswith(".opf")]
        if not opfs:
            cause = f"this zip archive is not an EPUB: it has no `{_CONTAINER}`"
            raise SourceError(archive.source, cause, _NOT_AN_EPUB)
        return opfs[0]
    container = parse_xml(archive.read(name, _MAX_PACKAGE_BYTES))
    paths = [] if container is None else [root.get("full-path", "") for root in container.iter("rootfile")]
    for path in paths:
        if found := resolve(archive, "", path):
            return found.href
    cause = f"its package file `{paths[0]}` is missing" if paths else f"its `{_CONTAINER}` names no package file"
    raise SourceError(archive.source, cause, "Get an undamaged copy of the book")


def _locks(archive: SafeArchive) -> Iterator[str]:
    """Yield what says that the book can be read only with a key."""
    name = archive.find(_ENCRYPTION)
    root = parse_xml(archive.read(name, _MAX_PACKAGE_BYTES)) if name else None
    for data in root.iter("encrypteddata") if root is not None else ():
        method = next((node.get("Algorithm", "") for node in data.iter("encryptionmethod")), "")
        target = next((node.get("URI", "") for node in data.iter("cipherreference")), "")
        if method.lower() not in _FONT_OBFUSCATION and not target.lower().endswith(_FONTS):
            yield f"`{_ENCRYPTION}` says that `{target or 'its content'}` is encrypted (copy protection)"
    rights = archive.find(_RIGHTS)
    if rights and _ADEPT in archive.read(rights, _MAX_PACKAGE_BYTES):
        yield f"`{_RIGHTS}` holds a licence of Adobe's copy protection"


def _read_metadata(opf: Element, package: Package) -> None:
    refined = {
        (meta.get("refines") or "").lstrip("#"): element_text(meta)
        for meta in opf.iter("meta")
        if meta.get("property") in ("role", "title-type") and meta.get("refines")
    }
    titles = filter(element_text, opf.iter("title"))
    # The first title, unless another is the main one.
    title = max(titles, key=lambda node: refined.get(node.get("id", "")) == "main", default=None)
    package.title = "" if title is None else element_text(title)
    people: dict[str, list[str]] = {}
    for node in opf.iter("creator", "contributor"):
        role = next((str(v) for k, v in node.attrib.items() if str(k).endswith("role")), "")
        role = role or refined.get(node.get("id", ""), "aut" if node.tag == "creator" else "")
        if element_text(node) and element_text(node) not in people.setdefault(role.lower(), []):
            people[role.lower()].append(element_text(node))
    package.authors = people.get("aut", [])
    dates = sorted(opf.iter("date"), key=lambda node: bool(tokens(node, "event") - {"publication"}))
    given = {
        meta.get("property") or meta.get("name") or "": element_text(meta) or meta.get("content")
        for meta in opf.iter("meta")
    }
    package.work = work_of(
        {
            "title": package.title,
            **{name: people.get(role) for name, role in _ROLES.items()},
            "edition": given.get("schema:bookEdition"),
            "year": [element_text(node) for node in dates],
            "publisher": next((element_text(node) for node in opf.iter("publisher")), ""),
            "identifier": [element_text(node) for node in opf.iter("identifier")],
        }
    )
    languages = [primary_language(element_text(node)) for node in opf.iter("language")]
    package.language = next(filter(None, languages), "")


def _read_spine(opf_name: str, opf: Element, manifest: dict[str, Element], package: Package) -> None:
    itemrefs = list(opf.iter("itemref"))
    if not itemrefs:
        cause = f"its package file `{opf_name}` has an empty spine (reading order)"
        raise SourceError(package.source, cause, "Get an undamaged copy of the book")
    spine = itemrefs[0].getparent()
    if spine is not None and (package_element := spine.getparent()) is not None:
        package.cfi = f"/{2 * package_element.index(spine) + 2}"
    seen: set[str] = set()
    for index, itemref in enumerate(itemrefs):
        idref = itemref.get("idref", "").strip()
        item = _readable(manifest, idref)
        if item is None:
            if idref not in manifest:
                package.warn(f"the reading order names `{idref}`, which the manifest lacks; it was left out.")
            elif not manifest[idref].get("media-type", "").startswith("image/"):
                package.warn(f"`{manifest[idref].get('href', '')}` of the reading order is no page; it was left out.")
            continue
        target = package.find(opf_name, item.get("href", ""))
        if target is None or target.href == opf_name:
            href = item.get("href", "")
            package.warn(f"`{href}` of the reading order is missing from the archive; the rest was read.")
        elif target.href not in seen:
            seen.add(target.href)
            package.spine.append((index, target.href, itemref.get("linear", "").strip().lower() != "no"))
    # Some books leave their notes or a chapter out of it.
    for item in manifest.values() if package.spine else ():
        target = package.find(opf_name, item.get("href", "")) if _is_text(item) else None
        if target and target.href not in seen and "nav" not in tokens(item, "properties"):
            seen.add(target.href)
            package.spine.append((len(itemrefs) + len(package.spine), target.href, False))


def _is_text(item: Element) -> bool:
    kind = item.get("media-type", "").strip().lower()
    return kind in _TEXT_TYPES or item.get("href", "").lower().endswith(_TEXT_EXTENSIONS)


def _readable(manifest: dict[str, Element], item_id: str) -> Element | None:
    """Follow fallbacks from a manifest item to one with text."""
    seen: set[str] = set()
    while item_id in manifest and item_id not in seen and len(seen) < _MAX_DEPTH:
        seen.add(item_id)
        item = manifest[item_id]
        if _is_text(item) or item.get("media-type", "").strip().lower() in _PERHAPS_PAGES:
            return item
        item_id = item.get("fallback", "").strip()
    return None


def _read_navigation(
    archive: SafeArchive, opf_name: str, opf: Element, manifest: dict[str, Element], package: Package
) -> None:
    def read(item: Element) -> tuple[str, bytes] | None:
        target = package.find(opf_name, item.get("href", ""))
        if target is None:
            return None
        try:
            return target.href, archive.read(target.href, _MAX_PACKAGE_BYTES)
        except SourceError as error:
            package.warnings.append(f"{error} The book was read without that table of contents.")
            return None

    for item in manifest.values():
        if "nav" in tokens(item, "properties") and (found := read(item)):
            root, _ = parse_xhtml(found[1])
            if root is not None:
                _read_nav(root, found[0], package)
            break
    ncx = manifest.get(next((spine.get("toc", "") for spine in opf.iter("spine")), ""))
    if ncx is None:
        ncx = next((i for i in manifest.values() if i.get("media-type", "").strip().lower() == _NCX_TYPE), None)
    if not (package.nav and package.pages) and ncx is not None and (found := read(ncx)):
        root = parse_xml(found[1])
        if root is not None:
            _read_ncx(root, found[0], package)
    for reference in opf.iter("reference"):
        if target := package.find(opf_name, reference.get("href", "")):
            package.landmarks.append(Entry(reference.get("title", ""), target, tokens(reference, "type")))
