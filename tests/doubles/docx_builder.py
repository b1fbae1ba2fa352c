"""Small Word files made in memory, written element by element as no library can write them."""

from dataclasses import dataclass, field

from tests.doubles.epub_builder import zip_bytes

TRANSITIONAL = {
    "w": "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "m": "http://schemas.openxmlformats.org/officeDocument/2006/math",
}
STRICT = {
    "w": "http://purl.oclc.org/ooxml/wordprocessingml/main",
    "m": "http://purl.oclc.org/ooxml/officeDocument/math",
}
_OTHERS = {
    "v": "urn:schemas-microsoft-com:vml",
    "a": "http://schemas.openxmlformats.org/drawingml/2006/main",
    "wp": "http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing",
    "wps": "http://schemas.microsoft.com/office/word/2010/wordprocessingShape",
    "mc": "http://schemas.openxmlformats.org/markup-compatibility/2006",
    "r": "http://schemas.openxmlformats.org/officeDocument/2006/relationships",
}


def run(text, properties=""):
    return f'<w:r>{properties and f"<w:rPr>{properties}</w:rPr>"}<w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(*content, style="", properties=""):
    """A paragraph of runs and other elements; what is not markup becomes a run."""
    inner = "".join(each if each.startswith("<") else run(each) for each in content)
    named = style and f'<w:pStyle w:val="{style}"/>'
    return f"<w:p><w:pPr>{named}{properties}</w:pPr>{inner}</w:p>"


def table(*rows):
    """A table of rows of cells, each cell the markup of its blocks."""
    cells = ("".join(f"<w:tc><w:tcPr/>{cell}</w:tc>" for cell in row) for row in rows)
    return f"<w:tbl><w:tblPr/>{''.join(f'<w:tr>{row}</w:tr>' for row in cells)}</w:tbl>"


@dataclass
class DocxBuilder:
    """A DOCX by the markup of its body, of its notes by id, and of its styles; `parts` adds others by their path."""

    body: str
    footnotes: dict = field(default_factory=dict)
    endnotes: dict = field(default_factory=dict)
    styles: str = ""
    namespaces: dict = field(default_factory=lambda: TRANSITIONAL)
    parts: dict = field(default_factory=dict)

    def build(self):
        written = {"[Content_Types].xml": "<Types/>", "word/document.xml": self.part("document", self.body_element())}
        for kind, notes in (("footnote", self.footnotes), ("endnote", self.endnotes)):
            inner = f'<w:{kind} w:type="separator" w:id="-1"><w:p/></w:{kind}>'
            inner += "".join(f'<w:{kind} w:id="{key}">{note}</w:{kind}>' for key, note in notes.items())
            written |= {f"word/{kind}s.xml": self.part(f"{kind}s", inner)} if notes else {}
        written |= {"word/styles.xml": self.part("styles", self.styles)} if self.styles else {}
        return zip_bytes(written | self.parts)

    def body_element(self):
        return f"<w:body>{self.body}<w:sectPr/></w:body>"

    def part(self, name, inner):
        declared = " ".join(f'xmlns:{key}="{uri}"' for key, uri in (_OTHERS | self.namespaces).items())
        return f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?><w:{name} {declared}>{inner}</w:{name}>'
