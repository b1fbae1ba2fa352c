"""Small EPUB files made in memory, with every part replaceable by a broken one."""

import io
import zipfile
from dataclasses import dataclass, field

CONTAINER = (
    '<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
    '<rootfiles><rootfile full-path="{opf}" media-type="application/oebps-package+xml"/></rootfiles></container>'
)
PARAGRAPH = "<p>The garrison of Fanyang marched south before dawn.</p>"


def chapter(body, head="<title>Chapter</title>", attributes='xml:lang="en"'):
    """An XHTML chapter around a body's content."""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<html xmlns="http://www.w3.org/1999/xhtml" '
        f'xmlns:epub="http://www.idpf.org/2007/ops" {attributes}><head>{head}</head><body>{body}</body></html>'
    )


@dataclass
class EpubBuilder:
    """
    An EPUB by its chapters: `{"ch1.xhtml": chapter(...)}`, all in the spine unless `spine` names others.

    `files` adds or replaces entries by their path in the archive; a value of None takes one out.
    """

    chapters: dict = field(default_factory=lambda: {"ch1.xhtml": chapter("<h1>One</h1>" + PARAGRAPH)})
    title: str = "The Test Book"
    creators: list = field(default_factory=lambda: ["Ann Author"])
    language: str = "en"
    spine: list | None = None
    nonlinear: tuple = ()
    nav: str | None = None
    landmarks: str = ""
    ncx: str | None = None
    guide: str = ""
    manifest_extra: str = ""
    metadata_extra: str = ""
    version: str = "3.0"
    files: dict = field(default_factory=dict)
    compression: int = zipfile.ZIP_DEFLATED

    def opf(self):
        items = "".join(
            f'<item id="{name}" href="{name}" media-type="application/xhtml+xml"/>' for name in self.chapters
        )
        if self.nav is not None:
            items += '<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>'
        if self.ncx is not None:
            items += '<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>'
        order = self.chapters if self.spine is None else self.spine
        linear = {name: "no" if name in self.nonlinear else "yes" for name in order}
        refs = "".join(f'<itemref idref="{name}" linear="{linear[name]}"/>' for name in order)
        creators = "".join(f"<dc:creator>{name}</dc:creator>" for name in self.creators)
        return (
            f'<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="{self.version}">'
            '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
            f"<dc:title>{self.title}</dc:title>{creators}<dc:language>{self.language}</dc:language>"
            f"{self.metadata_extra}</metadata><manifest>{items}{self.manifest_extra}</manifest>"
            f'<spine toc="ncx">{refs}</spine>{self.guide}</package>'
        )

    def entries(self):
        entries = {"mimetype": "application/epub+zip", "META-INF/container.xml": CONTAINER.format(opf="EPUB/book.opf")}
        entries["EPUB/book.opf"] = self.opf()
        if self.nav is not None:
            toc = f'<nav epub:type="toc"><ol>{self.nav}</ol></nav>'
            marks = f'<nav epub:type="landmarks"><ol>{self.landmarks}</ol></nav>' if self.landmarks else ""
            entries["EPUB/nav.xhtml"] = chapter(toc + marks)
        if self.ncx is not None:
            entries["EPUB/toc.ncx"] = (
                '<?xml version="1.0"?><ncx xmlns="http://www.daisy.org/z3986/2005/ncx/" version="2005-1">'
                f"<navMap>{self.ncx}</navMap></ncx>"
            )
        entries |= {f"EPUB/{name}": text for name, text in self.chapters.items()}
        entries |= self.files
        return {name: data for name, data in entries.items() if data is not None}

    def build(self):
        return zip_bytes(self.entries(), self.compression)


def zip_bytes(entries, compression=zipfile.ZIP_DEFLATED):
    """A zip archive of a dictionary, or of pairs of `ZipInfo` or name and data."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, data in entries.items() if isinstance(entries, dict) else entries:
            archive.writestr(name, data)
    return buffer.getvalue()


def nav_point(label, src, children=""):
    return f'<navPoint><navLabel><text>{label}</text></navLabel><content src="{src}"/>{children}</navPoint>'
